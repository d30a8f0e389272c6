"""Pruning in the store: what may go, what is left, and that nothing of another run is touched."""

import asyncio

import pytest

from backstay.errors import Pruned, StoreMismatch, WorkerMisfit
from backstay.task.attachment import attached_to
from backstay.task.event import Event
from store.blobs.shown import Missing
from store.effects.types import Intent
from store.opening import open_store
from store.secrets.handles import SecretValue
from tests.requirements import promise

BEFORE = 1000.0
FIRST = {"idempotency_ttl": None, "attempt": 1, "epoch_differs": False}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def opening(name):
    return {
        "run": f"w/{name}",
        "workflow_id": "w",
        "workflow_run_id": name,
        "user_id": "ana",
        "text": "t",
        "opened": {"model": "m"},
    }


def intent(run, n=1):
    return Intent(effect_id=f"{run}/{n}", run=run, n=n, tool="t", args_digest="d", lease_s=30, user_id="ana")


def event(at):
    return Event(n=1, name="run.started", at=at, step=0, text="t")


async def a_whole_run(store, name):
    """Record one run with an effect, an event, a secret, and payloads that every run writes alike."""
    run = f"w/{name}"
    await store.runs.opened(**opening(name))
    await store.effects.begin(intent(run), **FIRST)
    await store.events.append(run, [event("1970-01-01T00:01:40.000+00:00")])
    await store.secrets.remember(run, {"handle": SecretValue(provider="p", value="secret")})
    refs = await store.blobs.of(run).put_json("shown by all"), await store.blobs.of(run).seal_json("sealed by all")
    await store.blobs.of(run).put(b"a large one" * 10_000)
    await store.runs.closed(run, {"outcome": "completed"})
    return refs


@promise("store:pruned-row")
async def test_a_pruned_run_leaves_one_row_and_no_payload_and_the_others_all_of_theirs(tmp_path, database_url):
    async with (
        open_store(database_url=database_url, home=tmp_path, clock=Clock()) as store,
        open_store(database_url=database_url, home=tmp_path, clock=Clock()) as worker,
    ):
        shown, sealed = await a_whole_run(store, "r1")
        # The worker believes both payloads written for either run: it has them in memory.
        for run in ("w/r1", "w/r2"):
            await worker.blobs.of(run).put_json("shown by all")
        await a_whole_run(store, "r2")
        first = (await store.pruning.idle(BEFORE))[0]

        rows = await store.pruning.prune(first, BEFORE)
        files = await store.pruning.free_payloads(await store.pruning.pruned())

        assert (rows.runs, rows.effects, rows.events, rows.secrets) == (1, 1, 1, 1)
        assert (files.payloads, files.bytes > 0) == (3, True)
        left = await store.runs.get("w", "r1")
        assert (left.pruned_at, left.text, left.user_id, left.opened, left.result) == (100.0, "", "", {}, None)
        assert await store.effects.of_run("w/r1") == await store.events.of_run("w/r1") == []
        assert await store.secrets.reveal("w/r1", ["handle"]) == {}
        assert len(await store.effects.of_run("w/r2")) == len(await store.events.of_run("w/r2")) == 1
        assert await worker.blobs.of("w/r2").put_json("shown by all") == shown
    async with open_store(database_url=database_url, home=tmp_path) as fresh:
        assert await fresh.blobs.of("w/r2").get_json(shown) == "shown by all"
        assert await fresh.blobs.of("w/r2").unseal_json(sealed) == "sealed by all"
        with pytest.raises(WorkerMisfit):
            await fresh.blobs.of("w/r1").get_json(shown)


@promise("runs:attachments-awaited")
async def test_what_is_attached_to_the_next_run_of_an_id_stays_when_earlier_ones_are_pruned(tmp_path, database_url):
    clock, files = Clock(), [b"small", b"large" * 20_000]
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        there = store.blobs.of(attached_to("w"))

        async def left():
            await store.pruning.free_payloads(["w/r1", "w/r2"][: 1 + (clock.now > 700)])
            return {ref: await there.unseal(ref) for ref in refs}

        async def gone():
            with pytest.raises(Missing):
                await left()
            return True

        await store.blobs.attach("w", [b"first" * 20_000], clock.now)
        clock.now += 100
        await store.runs.opened(**opening("r1"))
        clock.now += 400
        refs = await store.blobs.attach("w", files, clock.now)
        assert [*(await left()).values()] == files
        clock.now += 100
        await store.runs.opened(**opening("r2"))
        assert [*(await left()).values()] == files
        clock.now += 100
        assert await gone()
        refs = await store.blobs.attach("w", files, clock.now)
        assert [*(await left()).values()] == files
        # Nobody begins the run: it was attached again to one that had begun.
        clock.now += 31 * 86_400
        assert await gone()


@promise("store:tombstone")
async def test_every_later_intent_of_a_pruned_run_is_refused(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path, clock=Clock()) as store:
        await a_whole_run(store, "r1")
        await store.pruning.prune((await store.pruning.idle(BEFORE))[0], BEFORE)
        for again in (
            store.effects.begin(intent("w/r1"), **FIRST),
            store.effects.begin(intent("w/r1", 2), **FIRST),
            store.runs.opened(**opening("r1")),
            store.runs.closed("w/r1", {"outcome": "completed"}),
            store.runs.add_execution("w/r1", workflow_id="undo-w", workflow_run_id="u1"),
        ):
            with pytest.raises(Pruned, match=r"run w/r1 was pruned on 1970-01-01"):
                await again
        left = await store.runs.get("w")
        assert (left.pruned_at, left.result, await store.effects.of_run("w/r1")) == (100.0, None, [])


@promise("store:retention-ended")
@pytest.mark.parametrize("moved", ["opened", "closed", "effect", "event"])
async def test_a_run_of_which_anything_was_recorded_lately_is_not_idle(tmp_path, moved, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        clock.now = 2000 if moved == "opened" else 100
        await store.runs.opened(**opening("r1"))
        clock.now = 2000 if moved == "effect" else 100
        await store.effects.begin(intent("w/r1").model_copy(update={"lease_s": 0}), **FIRST)
        at = "1970-01-01T00:33:20.000+00:00" if moved == "event" else "1970-01-01T00:01:40.000+00:00"
        await store.events.append("w/r1", [event(at)])
        clock.now = 2000 if moved == "closed" else 100
        await store.runs.closed("w/r1", {})
        assert await store.pruning.idle(BEFORE) == []
        assert [run.run for run in await store.pruning.idle(2001)] == ["w/r1"]


@promise("store:races")
async def test_a_run_that_moves_after_temporal_was_asked_is_not_pruned(tmp_path, database_url):
    clock = Clock()
    async with open_store(database_url=database_url, home=tmp_path, clock=clock) as store:
        for name in ("r1", "r2", "r3"):
            await a_whole_run(store, name)
        found = await store.pruning.idle(BEFORE)
        clock.now = 2000
        await store.effects.begin(intent("w/r1", 2), **FIRST)
        await store.runs.add_execution("w/r2", workflow_id="undo-w", workflow_run_id="u1")
        answers = [await store.pruning.prune(run, BEFORE) for run in found]
    assert [answer and answer.runs for answer in answers] == [None, None, 1]


@promise("store:races")
async def test_of_an_intent_and_a_pruning_at_once_only_one_comes_through(tmp_path, database_url):
    clock = Clock()
    async with (
        open_store(database_url=database_url, home=tmp_path, clock=clock) as store,
        open_store(database_url=database_url, home=tmp_path, clock=lambda: 2000.0) as worker,
    ):
        for n in range(20):
            await store.runs.opened(**opening(f"r{n}"))
        for run in await store.pruning.idle(BEFORE):
            pruned, begun = await asyncio.gather(
                store.pruning.prune(run, BEFORE),
                worker.effects.begin(intent(run.run), **FIRST),
                return_exceptions=True,
            )
            assert isinstance(begun, Pruned) == (pruned is not None)
            assert len(await store.effects.of_run(run.run)) == (1 if pruned is None else 0)


@promise("store:kills")
async def test_a_pruning_that_was_killed_between_rows_and_files_is_finished_by_the_next(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path, clock=Clock()) as store:
        await a_whole_run(store, "r1")
        await store.pruning.prune((await store.pruning.idle(BEFORE))[0], BEFORE)
    async with open_store(database_url=database_url, home=tmp_path) as again:
        assert await again.pruning.idle(BEFORE) == []
        assert (await again.pruning.free_payloads(await again.pruning.pruned())).payloads == 3
        assert (await again.pruning.free_payloads(await again.pruning.pruned())).payloads == 0
    assert list((tmp_path / "blobs").iterdir()) == []


@promise("store:epoch-earlier")
async def test_a_worker_of_an_earlier_epoch_may_begin_nothing_new(tmp_path, database_url):
    clock = Clock()
    async with (
        open_store(database_url=database_url, home=tmp_path, clock=clock) as worker,
        open_store(database_url=database_url, home=tmp_path, clock=clock) as operator,
    ):
        begun = await worker.effects.begin(intent("w/r"), **FIRST)
        new = await operator.new_epoch()
        with pytest.raises(StoreMismatch, match=rf"is in epoch {new.epoch} now.*restart the worker"):
            await worker.effects.begin(intent("w/r", 2), **FIRST)
        # What is recorded is true in every epoch.
        assert (await worker.effects.begin(intent("w/r"), **FIRST)).kind == "wait"
        assert begun.kind == (await operator.effects.begin(intent("w/r", 2), **FIRST)).kind == "go"
