"""Arguments are folded for history and unfolded for the tool; nobody but the engine writes what stands in between."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.offloading import BIG_LEAF_BYTES, DEEPEST, MAX_BYTES
from activities.records import Records, RunSecrets
from activities.tools.arguments import Arguments
from backstay.canonical import canonical, digest_of
from backstay.errors import ArgumentsInvalid, WorkerMisfit
from backstay.policies.policy import Policy, rule
from backstay.redaction.handles import MARK
from backstay.redaction.redactor import Redactor
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
KEYS = st.text("abcdefgh", min_size=1, max_size=4)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))


@promise("secrets:big-leaf")
async def test_unfolding_gives_back_what_was_folded_and_history_holds_no_big_leaf_and_no_secret(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        arguments = Arguments(Records(store, RunSecrets(store.secrets, Redactor({"known-secret-value"}))))
        for given_arguments in _drawn(st.dictionaries(KEYS, VALUES, max_size=4), 60):
            folded = await arguments.fold(RUN, "desk", given_arguments)
            assert "known-secret-value" not in canonical(folded)
            assert "y" * (BIG_LEAF_BYTES + 1) not in canonical(folded)
            assert await arguments.unfold(RUN, folded, {}) == given_arguments
            again = await arguments.fold(RUN, "desk", await arguments.whole(RUN, folded))
            assert digest_of(again) == digest_of(folded)


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
async def test_an_element_that_only_the_engine_may_write_is_refused_at_any_depth(opened):
    async with opened() as (arguments, _, _):
        for forged in ({"$ref": "a"}, {"a": [{"b": {"$ref": "a" * 40, "bytes": 1}}]}):
            with pytest.raises(ArgumentsInvalid, match=r"\$ref is reserved"):
                await arguments.fold(RUN, "desk", forged)


@promise("secrets:forged-ref")
async def test_a_ref_that_names_no_argument_is_refused(opened):
    async with opened() as (arguments, records, _):
        record = (await records.keep(RUN, "answer", {"secret_of": "another"}, "desk")).ref
        for ref, error in (
            (record, ArgumentsInvalid),
            ("0" * 40, WorkerMisfit),
            ("../../etc/passwd", ArgumentsInvalid),
        ):
            with pytest.raises(error):
                await arguments.unfold(RUN, {"a": {"$ref": ref, "bytes": 1}}, {})


@promise("secrets:home")
async def test_a_handle_of_another_run_is_unknown_here(opened):
    async with opened() as (arguments, _, _):
        folded = await arguments.fold("other/run", "desk", {"password": "opensesame-opensesame"})
        assert folded["password"].startswith(MARK)
        with pytest.raises(ArgumentsInvalid, match="is not a secret of this run"):
            await arguments.unfold(RUN, folded, {})


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
        assert await arguments.unfold(RUN, folded, {}) == {
            "query": long.replace(answered["password"], "hunter2hunter2")
        }
