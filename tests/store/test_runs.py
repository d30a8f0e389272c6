"""The runs a store has seen."""

import pytest
from sqlalchemy import event

from backstay.errors import Pruned
from store.opening import open_store
from store.secrets.handles import SecretValue
from tests.requirements import promise


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def opening(workflow_id: str, run_id: str, **changes):
    return {
        "run": f"{workflow_id}/{run_id}",
        "workflow_id": workflow_id,
        "workflow_run_id": run_id,
        "user_id": "ana",
        "text": "remind them",
        "opened": {"model": "m"},
        **changes,
    }


@promise("store:runs")
async def test_a_run_is_recorded_from_beginning_to_end(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        await store.runs.opened(**opening("w", "r1"))
        begun = await store.runs.get("w")
        assert begun.model_dump() == {
            "run": "w/r1",
            "workflow_id": "w",
            "workflow_run_id": "r1",
            "user_id": "ana",
            "text": "remind them",
            "state": "open",
            "opened_at": 100.0,
            "closed_at": None,
            "opened": {"model": "m"},
            "store": store.stamp,
            "result": None,
            "pruned_at": None,
            "session_id": None,
            "follows": None,
            "context": None,
            "metadata": None,
            "checked_at": 100.0,
            "lost_at": None,
        }
        clock.now = 160
        head = await store.runs.closed("w/r1", {"outcome": "completed"})
        ended = await store.runs.get("w", "r1")
    assert (ended.state, ended.closed_at) == ("closed", 160)
    assert ended.result == {"outcome": "completed", "ledger_head": head}


@promise("store:runs")
async def test_opening_again_changes_nothing(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        await store.runs.opened(**opening("w", "r1", store="first/1"))
        await store.runs.closed("w/r1", {"outcome": "failed"})
        before = await store.runs.get("w")
        clock.now = 200
        await store.runs.opened(**opening("w", "r1", text="other", store="second/1"))
        assert await store.runs.get("w") == before
        assert before.store == "first/1"


@promise("store:runs-ended")
async def test_the_last_word_on_how_a_run_ended_counts(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await store.runs.opened(**opening("w", "r1"))
        await store.runs.closed("w/r1", {"outcome": "failed"})
        await store.runs.closed("w/r1", {"outcome": "completed"})
        assert (await store.runs.get("w")).result["outcome"] == "completed"


@promise("store:runs-ended")
async def test_the_end_of_a_run_whose_beginning_is_lost_is_kept(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await store.runs.closed("a/b/r1", {"outcome": "completed"})
        row = await store.runs.get("a/b", "r1")
    assert (row.run, row.state, row.result["outcome"]) == ("a/b/r1", "closed", "completed")


@promise("store:runs-found")
async def test_a_workflow_id_names_its_latest_run_and_any_run_id_its_own(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        await store.runs.opened(**opening("w", "r1"))
        await store.runs.opened(**opening("w", "r2", run="w/r1"))
        clock.now = 200
        await store.runs.opened(**opening("w", "r3"))
        await store.runs.opened(**opening("v", "r9"))
        assert (await store.runs.get("w")).run == "w/r3"
        assert (await store.runs.get("w", "r1")).run == "w/r1"
        assert (await store.runs.get("w", "r2")).run == "w/r1"
        assert await store.runs.get("w", "r9") is None
        assert await store.runs.get("unknown") is None


@promise("store:runs-found")
async def test_the_newest_runs_come_first(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        for n in range(5):
            clock.now += 1
            await store.runs.opened(**opening(f"w{n}", "r"))
        assert [row.workflow_id for row in await store.runs.newest(3)] == ["w4", "w3", "w2"]


@promise("store:runs-long-text")
async def test_long_text_is_cut(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await store.runs.opened(**opening("w", "r1", text="x" * 10_000))
        assert len((await store.runs.get("w")).text) == 500


@promise("sessions:handles")
async def test_a_run_takes_the_handles_of_the_run_that_it_follows_once(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path, clock=Clock()) as store:
        await store.runs.opened(**opening("w", "r1", session_id="s"))
        secret = SecretValue(provider="vault", value="the secret of turn 1")
        await store.secrets.remember("w/r1", {"handle": secret})
        await store.secrets.remember("w/r2", {"own": SecretValue(provider="task", value="another")})
        for _ in range(2):
            await store.runs.take_handles("w/r2", "w/r1")
            await store.runs.opened(**opening("w", "r2", session_id="s", follows="w/r1"))
        await store.runs.opened(**opening("w", "r3", follows="w/r2"))

        assert await store.secrets.reveal("w/r2", ["handle"]) == {"handle": secret}
        assert (await store.secrets.new_of_run("w/r2", ()))[0] == 2
        assert [row.run for row in await store.runs.later("w/r1")] == ["w/r2", "w/r3"]
        third = await store.runs.get("w", "r3")
        assert [row.run for row in await store.runs.earlier(third)] == ["w/r1", "w/r2", "w/r3"]
        assert (third.follows, third.session_id) == ("w/r2", None)
        (prunable,) = [run for run in await store.pruning.idle(1000) if run.run == "w/r3"]
        assert await store.pruning.prune(prunable, 1000) is not None
        with pytest.raises(Pruned):
            await store.runs.take_handles("w/r4", "w/r3")
        with pytest.raises(Pruned):
            await store.runs.opened(**opening("w", "r4", follows="w/r3"))


@promise("page:list")
async def test_runs_are_paged_newest_first_and_chosen_by_state_words_and_user(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        for number in range(6):
            clock.now = 100.0 + number // 2
            user, text = ("ana", "Write to Ümit 100%") if number % 2 else ("bo", "count the invoices")
            await store.runs.opened(**opening(f"w{number}", "r", user_id=user, text=text, session_id=f"s{number}"))
        await store.runs.closed("w0/r", {"outcome": "completed"})
        await store.runs.closed("w1/r", {"outcome": "rejected"})

        async def page(**asked):
            return [row.workflow_id for row in await store.runs.page(**asked)]

        first = await store.runs.page(limit=2)
        seen = await page(limit=10, before=(first[-1].opened_at, first[-1].run))
        assert [[row.workflow_id for row in first], seen] == [["w5", "w4"], ["w3", "w2", "w1", "w0"]]
        assert await page(state="open") == ["w5", "w4", "w3", "w2"]
        assert await page(state="waiting") == []
        assert (await page(state="completed"), await page(state="rejected")) == (["w0"], ["w1"])
        assert await page(user_id="bo") == ["w4", "w2", "w0"]
        assert await page(words="WRITE 100%") == ["w5", "w3", "w1"]
        assert (await page(words="100_"), await page(words="Ümit w1")) == ([], ["w1"])
        assert (await page(words="s4"), await page(words="w3 ana"), await page(words="w3 bo")) == (["w4"], ["w3"], [])


@promise("store:runs-of-user")
async def test_the_runs_of_one_user_are_found_without_looking_at_those_of_others(tmp_path):
    asked = []
    async with open_store(database_url=None, home=tmp_path) as store:
        engine = store._database._engine
        event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2:4]))
        await store.runs.page(user_id="ana", named="mcp-", before=(1.0, "w/r"))
        ((statement, values),) = [each for each in asked if "FROM runs" in each[0]]
        plan = await store._database.read(
            lambda connection: connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
        )
    assert "SEARCH runs USING INDEX runs_of_user (user_id=?" in plan[0][3]
