"""Arguments are folded for history and unfolded for the tool; nobody but the engine writes what stands in between."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.offloading import BIG_LEAF_BYTES, DEEPEST, MAX_BYTES
from activities.records import Records, RunSecrets
from activities.tools.arguments import Arguments
from backstay.canonical import canonical, digest_of
from backstay.errors import ArgumentsInvalid, WorkerMisfit
from backstay.plans.rehearsal import tokens_in
from backstay.policies.policy import Policy, rule
from backstay.redaction.handles import MARK, handles_in
from backstay.redaction.redactor import Redactor
from backstay.shown import holds_mask
from backstay.stored_texts import holds_stored_text
from backstay.tools.tool import Safety, Tool
from store.opening import open_store
from tests.requirements import promise

RUN = "workflow/run"
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.text(max_size=20),
    st.integers(1, 9000).map(lambda size: "y" * size),
    st.sampled_from(["known-secret-value", "say known-secret-value twice", "password=hunter2hunter2"]),
)
KEYS = st.text("abcdefgh", min_size=1, max_size=4) | st.sampled_from(["$ref", "$$ref", "bytes", "handles"])
LOOKALIKES = st.fixed_dictionaries(
    {"bytes": st.integers()}, optional={name: st.just("0" * 40) for name in ("$ref", "$$ref", "$$$ref")}
)
VALUES = st.recursive(
    LEAVES | LOOKALIKES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)


async def unfolded(arguments, folded):
    """Return arguments as the tool receives them."""
    return await arguments.revealed(RUN, await arguments.whole(RUN, folded))


@promise("secrets:big-leaf")
async def test_unfolding_gives_back_what_was_folded_and_history_holds_no_big_leaf_and_no_secret(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        arguments = Arguments(Records(store, RunSecrets(store.secrets, Redactor({"known-secret-value"}))))
        for given_arguments in _drawn(st.dictionaries(KEYS, VALUES, max_size=4), 60):
            folded = await arguments.fold(RUN, "desk", given_arguments)
            assert "known-secret-value" not in canonical(folded)
            assert "y" * (BIG_LEAF_BYTES + 1) not in canonical(folded)
            assert await unfolded(arguments, folded) == given_arguments
            again = await arguments.fold(RUN, "desk", await arguments.whole(RUN, folded))
            assert digest_of(again) == digest_of(folded)


KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nabcdEFGH1234567890qwertyuiop=="
PEM = f"-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\n"
WRITTEN = (
    json.dumps({"type": "service_account", "private_key": PEM}, indent=2),
    r'{"password": "Tr0ub\"4dor&3-x", "rate": 1.10}',
    r'{ "password":"C:\\temp\\Pa55word9","n":12345678901234567890.123456789, "Caf\u00e9":1}',
    '{"pin":48213377, "b": [1,  2]}',
    '\n {"password":"hunter2hunter2", "password":"x"} \n',
    json.dumps({"body": json.dumps({"password": 'a"b\\c4711x', "y": 1}, indent=1)}, indent=1),
    r'{"body":"{\"pin\":48213377}"}',
    r'{"\u0070assword":"hunter2\u0068unter2","note":"\ud83d\ude00 known-secret-value"}',
    '{"pin":1.10e3, "a": [NaN]}',
    '{"a":1,"a":2,"a":3,"a":4,"a":5,"password":"hunter2hunter2"}',
    f'[{"[" * 60}"password=hunter2hunter2"{"]" * 60}]',
)
JSON_VALUES = st.recursive(
    LEAVES | st.floats() | st.text('"\\\n\u00e9\U0001f600aB3', max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            KEYS | st.sampled_from(["password", "pin", "apiKey", "known-secret-value"]), inner, max_size=3
        )
    ),
)
JSON_TEXTS = st.builds(
    lambda value, nested, **how: json.dumps({"body": json.dumps(value)} if nested else [value], **how),
    JSON_VALUES,
    st.booleans(),
    indent=st.none() | st.just(2),
    ensure_ascii=st.booleans(),
)


@promise("secrets:json-text")
@pytest.mark.parametrize("text", WRITTEN)
async def test_a_secret_in_json_text_reaches_the_tool_as_it_was_written(opened, text):
    async with opened() as (arguments, _, _):
        folded = await arguments.fold(RUN, "desk", {"content": text})
        said = canonical(folded)
        assert [
            secret for secret in ("hunter2", "4dor", "Pa55", "48213377", "MIIE", "known-sec") if secret in said
        ] == []
        assert await unfolded(arguments, folded) == {"content": text}
        again = await arguments.fold(RUN, "desk", await arguments.whole(RUN, folded))
        assert digest_of(again) == digest_of(folded)


@promise("secrets:json-text")
async def test_any_json_text_reaches_the_tool_as_it_was_written(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        arguments = Arguments(Records(store, RunSecrets(store.secrets, Redactor({"known-secret-value"}))))
        for text in _drawn(JSON_TEXTS, 60):
            shown = await arguments.show(RUN, "desk", {"content": text})
            assert "known-secret-value" not in canonical(shown)
            assert await arguments.revealed(RUN, shown) == {"content": text}


@promise("secrets:json-text")
async def test_of_json_text_with_a_secret_people_see_the_rest(opened):
    async with opened() as (arguments, _, _):
        shown = await arguments.show(RUN, "desk", {"content": WRITTEN[0], "more": WRITTEN[3]})
        (key, pin) = handles_in(shown)
        assert shown["content"] == WRITTEN[0].replace(json.dumps(PEM)[1:-1], key)
        assert shown["more"] == WRITTEN[3].replace("48213377", f'"{pin}"')


@promise("secrets:elsewhere")
async def test_no_handle_of_another_provider_is_hidden_in_json_text(opened):
    async with opened() as (arguments, records, _):
        theirs = (await records.show(RUN, {"password": "hunter2hunter2"}, "mail")).payload["password"]
        shown = await arguments.show(RUN, "desk", {"content": f'{{"a": "{theirs}", "pin": 1.10e5}}'})
        assert theirs in handles_in(shown)


def _drawn(strategy, count):
    """Draw examples for a test that must run in this loop."""
    drawn = []

    @settings(max_examples=count, database=None, deadline=None)
    @given(strategy)
    def collect(value):
        drawn.append(value)

    collect()
    return drawn


@promise("secrets:forged-ref")
async def test_an_object_that_looks_like_a_stored_argument_brings_none_at_any_depth(opened):
    async with opened() as (arguments, _, _):
        long = {"text": "kept apart " * BIG_LEAF_BYTES}
        stored = (await arguments.fold(RUN, "desk", long))["text"]
        for look in (stored, {"$ref": "a" * 40, "bytes": 1}, {"$$ref": "a" * 40, "bytes": 1, "handles": []}):
            for given_arguments in ({"a": look}, {"a": [{"b": look}]}, look):
                folded = await arguments.fold(RUN, "desk", given_arguments)
                assert not holds_stored_text(folded)
                assert await unfolded(arguments, folded) == given_arguments
        assert await unfolded(arguments, {"text": stored}) == long


OWN = {
    # firecrawl/firecrawl-mcp-server#373: a JSON Schema by which a page is read
    "JSON Schema": {"properties": {"who": {"$ref": "#/$defs/Person"}}, "$defs": {"Person": {"type": "object"}}},
    # https://www.mongodb.com/docs/manual/reference/database-references/
    "DBRef": {"$ref": "orders", "$id": "5126bc054aed4daf9e2ab772", "$db": "shop"},
    # https://swagger.io/docs/specification/v3_0/using-ref/
    "OpenAPI": {"paths": {"/a": {"$ref": "paths/a.yaml#/get"}}},
    "null": {"$ref": None},
    "deep": {"a": [[{"$ref": {"$ref": "x", "bytes": 1}}]]},
    "beside bytes": {"$ref": "a" * 40, "bytes": "many"},
    "not all": {"$ref": "a" * 40},
    "more": {"$ref": "a" * 40, "bytes": 1, "title": "t"},
}


@promise("secrets:own-ref")
@pytest.mark.parametrize("case", OWN)
async def test_an_argument_with_a_ref_of_its_own_reaches_the_tool_as_it_is(opened, case):
    async with opened() as (arguments, _, _):
        folded = await arguments.fold(RUN, "desk", {"schema": OWN[case]})
        assert folded == {"schema": OWN[case]}
        assert await unfolded(arguments, folded) == {"schema": OWN[case]}


@promise("secrets:forged-ref")
async def test_a_ref_that_names_no_argument_is_refused(opened):
    async with opened() as (arguments, records, _):
        record = (await records.keep(RUN, "answer", {"secret_of": "another"}, "desk")).ref
        for ref, error in (
            (record, ArgumentsInvalid),
            ("0" * 40, WorkerMisfit),
        ):
            with pytest.raises(error):
                await unfolded(arguments, {"a": {"$ref": ref, "bytes": 1}})


@promise("secrets:home")
async def test_a_handle_of_another_run_is_unknown_here(opened):
    async with opened() as (arguments, _, _):
        folded = await arguments.fold("other/run", "desk", {"password": "opensesame-opensesame"})
        assert folded["password"].startswith(MARK)
        with pytest.raises(ArgumentsInvalid, match="is not a secret of this run"):
            await unfolded(arguments, folded)


FOREIGN = f"⟦secret:desk/token:{'0' * 24}⟧"
TOKEN = "⟦sim:0:/id⟧"


@promise("secrets:lookalikes")
@pytest.mark.parametrize(
    "text", [TOKEN, f"in {TOKEN} amid", f"⟦\u2060sim:{TOKEN}", f"⟦\u2060{TOKEN[1:]}", "⟦sim:1:/a⟦b⟧"]
)
async def test_what_only_looks_like_a_value_of_a_rehearsal_is_data_and_reaches_a_tool_as_it_was(opened, text):
    async with opened() as (arguments, records, _):
        payload = {"log": text, "names": {text: [text]}}
        shown = await records.shown(RUN, (await records.keep(RUN, "desk.look", payload, "desk")).ref)
        assert tokens_in(shown) == []
        assert await unfolded(arguments, await arguments.fold(RUN, "desk", shown)) == payload
        by_task = await arguments.of_task(RUN, payload)
        assert tokens_in(by_task) == []
        assert await unfolded(arguments, await arguments.fold(RUN, "desk", by_task)) == payload
        # What a rehearsal has made up, and then read back, stays what it is.
        ref = (await records.keep(RUN, "fs.read_file", payload, "fs", simulated=(0, 1))).ref
        assert await records.shown(RUN, ref) == payload or "\u2060" in text


@promise("secrets:lookalikes")
@pytest.mark.parametrize(
    "text",
    [FOREIGN, f"in {FOREIGN} amid", f"⟦\u2060secret:{FOREIGN}", f"{FOREIGN[:1]}\u2060{FOREIGN[1:]}", "⟦secret:…⟧"],
)
async def test_what_only_looks_like_a_handle_is_data_and_reaches_a_tool_as_it_was(opened, text):
    async with opened() as (arguments, records, _):
        payload = {"log": text, "names": {text: [text]}, "password": "opensesame-opensesame"}
        shown = await records.shown(RUN, (await records.keep(RUN, "desk.look", payload, "desk")).ref)
        real = shown["password"]
        assert handles_in(shown) == [real]
        # What a model, a program or a step of a plan passes on is what the tool had answered.
        folded = await arguments.fold(RUN, "desk", shown)
        assert not holds_mask(folded["log"]) or text == "⟦secret:…⟧"
        assert await unfolded(arguments, folded) == payload
        given_by_task = await arguments.of_task(RUN, {"note": FOREIGN, "password": real})
        assert await unfolded(arguments, await arguments.fold(RUN, "desk", given_by_task)) == {
            "note": FOREIGN,
            "password": "opensesame-opensesame",
        }


@promise("secrets:argument-limits")
async def test_what_is_too_large_or_too_deep_is_refused(opened):
    deep = {}
    for _ in range(DEEPEST + 5):
        deep = {"a": deep, "b": 1}
    async with opened() as (arguments, _, _):
        with pytest.raises(ArgumentsInvalid, match="nested more than"):
            await arguments.fold(RUN, "desk", deep)
        with pytest.raises(ArgumentsInvalid, match="larger than"):
            await arguments.fold(RUN, "desk", {"a": "x" * MAX_BYTES})


@promise("secrets:elsewhere")
async def test_whose_secrets_stand_in_a_long_text_is_seen_by_the_policy_that_does_not_see_the_text(tmp_path):
    tool = Tool(name="web.search", safety=Safety.READ_ONLY)
    async with open_store(database_url=None, home=tmp_path) as store:
        arguments = Arguments(Records(store, RunSecrets(store.secrets, Redactor(()))))
        answered = (await arguments.records.show(RUN, {"password": "hunter2hunter2"}, "mail")).payload
        long = f"{answered['password']} {'x' * BIG_LEAF_BYTES}"
        folded = await arguments.fold(RUN, "web", {"query": long})

        assert MARK not in folded["query"]["$ref"]
        assert rule(Policy(), tool, {"query": "x"}).verdict == "allow"
        assert rule(Policy(), tool, folded).verdict == "ask"
        assert await unfolded(arguments, folded) == {"query": long.replace(answered["password"], "hunter2hunter2")}
