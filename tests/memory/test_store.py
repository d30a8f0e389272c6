"""Memory in the store, on SQLite and Postgres: what is found, whose it is, and what is left of what was forgotten."""

import unicodedata
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from backstay.budgets.share import Share
from backstay.effects.effect import EffectState
from backstay.errors import RunNotFound, TaskInvalid, WorkerMisfit
from backstay.memory import words
from backstay.memory.item import MemoryItem, owner_of
from backstay.memory.words import asked_words, excerpt, words_of
from store.effects.types import BoundUndo, Intent
from store.memory.items import NewItem
from store.subruns import Subrun
from tests.ledger.recorded import a_store, keys_of
from tests.memory.corpus import QUESTIONS, asked, ordinary
from tests.memory.recorded import Call, Recorded, record_of_output, ref_of_output, remember, sources
from tests.requirements import promise
from tests.sizes import sized

BOILER = Recorded(
    "boiler", "See to the boiler", (Call("mail.read", '{"id":"m1"}', "The boiler of Zwolle leaks at valve 9."),),
    "Valve 9 of the boiler was replaced.",
)  # fmt: skip


@promise("store:memory-questions")
async def test_of_twenty_questions_that_one_run_among_a_thousand_answers_eighteen_find_it(tmp_path, database_url):
    others = sized(980, 400 if database_url is None else 40)
    async with a_store(tmp_path, database_url, signer=None) as store:
        around = ordinary(others)
        await remember(store, "ana", *around[::2], *asked(), *around[1::2])
        found = [sources(await store.memory.search("ana", question)) for question, *_ in QUESTIONS]
    right = [number for number, runs in enumerate(found) if runs[:1] == [f"q{number}"]]
    assert len(right) >= 18, sorted({*range(len(QUESTIONS))} - {*right})


WORD = st.sampled_from(["boiler", "valve", "invoice", "zwolle", "ana"])
RUNS = st.lists(
    st.tuples(st.sampled_from(["ana", "bo", "Ana", "an\0a", "\ud800"]), st.lists(WORD, min_size=1)), max_size=8
)


@promise("store:memory-apart")
@settings(max_examples=sized(300, 25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=RUNS, query=st.one_of(WORD, st.text(max_size=40)))
async def test_nobody_finds_or_is_shown_what_runs_of_another_user_left(tmp_path_factory, runs, query):
    async with a_store(tmp_path_factory.mktemp("apart"), signer=None) as store:
        for number, (user, words) in enumerate(runs):
            await remember(store, user, Recorded(str(number), " ".join(words), (), f"answer {number}"))
        users = {user for user, _ in runs} | {"ana"}
        numbers = range(1, 2 * len(runs) + 1)
        for user in users:
            own = {str(number) for number, (whose, _) in enumerate(runs) if whose == user}
            found = await store.memory.search(user, query)
            shown = [item for number in numbers if (item := await store.memory.show(user, number)) is not None]
            assert {*sources(found)} <= own
            assert {*sources(shown)} == own
            wanted = {str(n) for n, (whose, words) in enumerate(runs) if whose == user and query in words}
            assert wanted <= {*sources(found)}


@promise("store:memory-whose")
@pytest.mark.parametrize(
    ("user", "by", "services", "owner"),
    [
        ("ana", "ana", [], "ana"),
        ("ana", "", [], ""),
        ("ana", "", [""], ""),
        ("ana", "bo", [], ""),
        ("ana", "desk", ["desk"], "ana"),
        ("singleton", "ana", [], "ana"),
        ("singleton", "", [], ""),
        ("singleton", "singleton", [], ""),
        ("singleton", "desk", ["desk"], ""),
        ("", "desk", ["desk"], ""),
        ("desk", "desk", ["desk"], "desk"),
        ("Ana@example.com", "ana@example.com", [], ""),
    ],
)
def test_memory_is_that_of_a_user_to_whom_a_run_was_proven_to_belong(user, by, services, owner):
    assert owner_of(user, by, services) == owner


QUERIES = (
    '"', 'boiler" OR owner : "', "NEAR(boiler valve)", "boiler AND NOT valve", "words : boiler", "^boiler*",
    "-boiler", "'); DROP TABLE memory_items; --", "\0boiler", "\ud800 boiler", "boiler " * 200_000, "(" * 1000,
    "&|!:*<->", "\N{FULLWIDTH LATIN SMALL LETTER B}oiler", "日本語", "", " ", "the of and",
)  # fmt: skip


@promise("store:memory-queries")
async def test_whatever_a_question_holds_is_looked_for_as_words(tmp_path, database_url):
    async with a_store(tmp_path, database_url, signer=None) as store:
        await remember(store, "ana", BOILER)
        found = {query: sources(await store.memory.search("ana", query)) for query in QUERIES}
    assert found == {query: ["boiler"] if "oiler" in query else [] for query in QUERIES}


@promise("store:memory-queries")
async def test_a_text_of_any_kind_and_length_is_remembered_and_told_in_part(tmp_path, database_url):
    odd = f"\0\ud800 日本語 {'x' * 500} {'lorem ipsum ' * 5000} the heron sleeps {'dolor ' * 60_000}"
    async with a_store(tmp_path, database_url, signer=None) as store:
        await remember(store, "ana", Recorded("odd", "odd", (Call("t.read", "{}", odd),), "done"))
        assert sources(await store.memory.search("ana", "日本語")) == ["odd"]
        (found,) = [told for told in await store.memory.search("ana", "lorem") if told.item.kind == "tool_output"]
        assert (len(found.text) <= 700, found.is_cut, "lorem" in found.text) == (True, True, True)


@promise("store:memory-bounded")
def test_a_text_that_grows_as_it_is_read_costs_no_more_than_another(monkeypatch):
    read = []

    def normalized(form, given):
        read.append(len(given))
        return unicodedata.normalize(form, given)

    monkeypatch.setattr(words, "unicodedata", SimpleNamespace(normalize=normalized))
    # One sign that stands for eighteen.
    text = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 1_000_000
    assert len(excerpt(text, asked_words("boiler valve"), 700)) <= 700
    words_of(text)
    assert sum(read) <= 3 * words.MOST_READ


@promise("store:memory-bounded")
@pytest.mark.parametrize("before", [0, 50, 40_000])
def test_the_part_that_is_told_holds_the_words_that_were_asked_for(before):
    text = f"{'lorem ' * (before // 6)}the valves {'dolor ' * 30} of Zwolle's boiler leak {'sit amet ' * 500}"
    told = excerpt(text, asked_words("Zwolle boiler valve"), 400)
    assert len(told) <= 400
    assert {"valves", "Zwolle's", "boiler"} <= {*told.split()}


@promise("store:s003-memory")
async def test_each_kind_is_found_by_words_and_the_newest_of_it_by_user_and_session(tmp_path, database_url):
    async with a_store(tmp_path, database_url, signer=None) as store:
        await remember(store, "ana", BOILER, session="heating")
        await remember(store, "ana", Recorded("later", "mend the roof", (), "done"), session="roof")
        found = {told.item.kind: told.text for told in await store.memory.search("ana", "see boiler Zwolle valve m1")}
        newest = {
            (kind, session): sources(await store.memory.newest("ana", kind=kind, session_id=session))
            for kind in found
            for session in ("heating", "roof", "other")
        }
        assert sources(await store.memory.newest("bo", kind="final_answer")) == []
        assert sources(await store.memory.newest("ana", kind="final_answer")) == ["later", "boiler"]
    assert found == {
        "run_metadata": "See to the boiler (completed)",
        "tool_call": 'mail.read {"id":"m1"}',
        "tool_output": "The boiler of Zwolle leaks at valve 9.",
        "final_answer": "Valve 9 of the boiler was replaced.",
    }
    assert {session for (_, session), runs in newest.items() if runs == ["boiler"]} == {"heating"}
    assert newest["final_answer", "roof"] == ["later"]


def item_of(items, kind):
    return next(item for item in items if item.kind == kind)


@promise("store:memory-forgotten")
@pytest.mark.parametrize("kind", ["tool_output", "tool_call", "final_answer", "run_metadata"])
async def test_of_a_forgotten_item_neither_words_nor_payload_stay_and_the_chain_still_verifies(
    tmp_path, database_url, kind
):
    async with a_store(tmp_path, database_url) as store:
        await remember(store, "ana", BOILER)
        key, blobs = "task-boiler/r", store.blobs.of("task-boiler/r")
        item = item_of(await store.memory.items.of_run("ana", key), kind)
        before = await store.memory.show("ana", item.id)
        await store.forgetting.item(item, by="ana@example.com")

        assert await store.memory.show("ana", item.id) is None
        assert item.id not in {found.item.id for found in await store.memory.search("ana", before.text)}
        assert len(await store.memory.items.of_run("ana", key)) == 3
        assert before.text not in str(await store.memory.told([item]))
        if kind == "tool_output":
            assert await blobs._common.rows.get(key, ref_of_output(BOILER.calls[0].output)) is None
        (chain,) = [chain async for chain in store.chains.read([key])]
        assert ("memory", "memory.forgotten") in {(row.kind, row.name) for row in chain.rows}
        assert (await store.auditing.verify(keys_of())).is_good
        with pytest.raises(RunNotFound, match="forgotten already"):
            await store.forgetting.item(item, by="ana@example.com")


@promise("store:memory-forgotten")
async def test_a_forgotten_run_is_pruned_at_once_and_leaves_nothing_in_the_index(tmp_path, database_url):
    async with a_store(tmp_path, database_url) as store:
        await remember(store, "ana", BOILER, Recorded("other", "another boiler", (), "done"))
        await store.forgetting.run("task-boiler/r", "ana", by="ana@example.com")
        row = await store.runs.get("task-boiler")
        assert (row.pruned_at is not None, row.text, row.result) == (True, "", None)
        assert sources(await store.memory.search("ana", "boiler")) == ["other"]
        left = "SELECT count(*) FROM memory_index"
        assert await store._database.read(lambda connection: connection.execute(text(left)).scalar_one()) == 2
        assert (await store.auditing.verify(keys_of())).is_good


@promise("store:memory-forgotten")
async def test_what_a_later_run_goes_on_from_and_what_has_not_ended_is_not_forgotten(tmp_path):
    async with a_store(tmp_path) as store:
        await remember(store, "ana", BOILER)
        named = {"run": "w/2", "workflow_id": "w", "workflow_run_id": "2", "user_id": "ana", "text": "t", "opened": {}}
        await store.runs.opened(**named, follows="task-boiler/r")
        item = item_of(await store.memory.items.of_run("ana", "task-boiler/r"), "final_answer")
        for forgetting in (store.forgetting.item(item, by="a"), store.forgetting.run("task-boiler/r", "ana", by="a")):
            with pytest.raises(TaskInvalid, match="w goes on from it"):
                await forgetting
        with pytest.raises(TaskInvalid, match="has not ended"):
            await store.forgetting.run("w/2", "ana", by="a")
        assert sources(await store.memory.search("ana", "boiler")) == ["boiler"]


@promise("store:memory-forgotten-subrun")
async def test_a_sub_run_is_forgotten_only_after_the_run_that_delegated_to_it(tmp_path, database_url):
    async with a_store(tmp_path, database_url, signer=None) as store:
        await remember(store, "ana", BOILER, Recorded("above", "see to the house", (), "done"))
        share = Share(max_steps=1, max_tool_calls=1, max_code_runs=0)
        part = Subrun(
            workflow_id="task-boiler", parent="task-above/r", n=1, step=1, task_digest="d", context="c", share=share
        )
        await store.subruns.begin([part], most=1)
        await store.subruns.opened("task-boiler", "task-boiler/r", "d")
        sent = {"run": "task-boiler/r", "n": 1, "tool": "mail.send", "args_digest": "d", "lease_s": 30}
        intent = Intent(effect_id="task-boiler/r/1", user_id="ana", **sent)
        begun = await store.effects.begin(intent, idempotency_ttl=None, attempt=1, epoch_differs=False)
        await store.effects.settle(intent.effect_id, begun.token, EffectState.APPLIED)
        await store.subruns.adopt("task-above/r", None)

        with pytest.raises(TaskInvalid, match=r"task-boiler: task-above delegated to it.* task-above first"):
            await store.forgetting.run("task-boiler/r", "ana", by="ana@example.com")
        assert [row.made_by for row in await store.effects.open_of_run("task-above/r")] == ["task-boiler"]
        assert sources(await store.memory.search("ana", "boiler")) == ["boiler"]
        for run in ("task-above/r", "task-boiler/r"):
            await store.forgetting.run(run, "ana", by="ana@example.com")
        assert sources(await store.memory.search("ana", "boiler house")) == []


@promise("store:memory-erased")
async def test_an_item_whose_payload_is_gone_is_not_told_and_a_run_that_ends_again_is_remembered_once(tmp_path):
    async with a_store(tmp_path, signer=None) as store:
        await remember(store, "ana", BOILER)
        output = item_of(await store.memory.items.of_run("ana", "task-boiler/r"), "tool_output")
        await store.blobs.of(output.run).erase([output.ref])
        assert "tool_output" not in {found.item.kind for found in await store.memory.search("ana", "boiler Zwolle")}
        about = MemoryItem(run=output.run, n=0, owner="ana", kind="run_metadata")
        await store.memory.items.keep(output.run, [NewItem(about, words_of("See to the boiler"))])
        assert [item.n for item in await store.memory.items.of_run("ana", output.run)] == [0]
        assert sources(await store.memory.search("ana", "valve")) == []


@promise("store:memory-forgotten-undo")
@pytest.mark.parametrize("needed", ["undo", "arguments", "task", ""])
async def test_a_payload_that_an_effect_needs_outlives_a_forgotten_output_that_holds_the_same(
    tmp_path, database_url, needed
):
    async with a_store(tmp_path, database_url, signer=None) as store:
        await remember(store, "ana", BOILER)
        key, blobs = "task-boiler/r", store.blobs.of("task-boiler/r")
        sealed = await blobs.seal_json({"id": "m1"})
        output = await blobs.put_json({**record_of_output("hidden"), "raw": sealed})
        own = MemoryItem(run=key, n=9, owner="ana", kind="tool_output", tool="mail.send", ref=output)
        await store.memory.items.keep(key, [NewItem(own, words_of("hidden"))])
        sent = Intent(effect_id=f"{key}/1", run=key, n=1, tool="mail.send", args_digest="d", lease_s=30, user_id="ana")
        sent = sent.model_copy(update={"arguments_sealed": sealed if needed == "arguments" else None})
        begun = await store.effects.begin(sent, idempotency_ttl=None, attempt=1, epoch_differs=False)
        if needed == "task":
            await store.effects.hand_over(sent.effect_id, begun.token, sealed)
        undo = BoundUndo(tool="mail.recall", sealed_ref=sealed, shown="recall") if needed == "undo" else None
        values = {"result_ref": output, "undo": undo}
        await store.effects.settle(sent.effect_id, begun.token, EffectState.APPLIED, **values)

        (item,) = [item for item in await store.memory.items.of_run("ana", key) if item.n == 9]
        await store.forgetting.item(item, by="ana@example.com")
        fresh = store.blobs.of(key)
        if needed:
            assert await fresh.unseal_json(sealed) == {"id": "m1"}
        else:
            with pytest.raises(WorkerMisfit):
                await fresh.unseal_json(sealed)
        with pytest.raises(WorkerMisfit):
            await fresh.get_json(output)
        assert (await store.verifying.payloads()).faults == ()
