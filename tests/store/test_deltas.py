"""What a model is just saying, for those who watch."""

import asyncio

from store.deltas import KEPT_S, WATCH_S
from store.opening import open_store
from tests.requirements import promise


async def told(deltas, count):
    """The next deltas of a reading, within a bound."""
    async with asyncio.timeout(150):
        return [await anext(deltas) for _ in range(count)]


@promise("store:deltas")
async def test_nothing_is_written_while_nobody_watches(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        assert await store.deltas.begin("w/r", 1) is None
        assert await store.deltas.of_run("w/r") == []


@promise("store:deltas-order")
async def test_a_reader_gets_what_is_said_and_then_what_is_said_next(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await store.deltas.watch("w/r", "somebody")
        stream = await store.deltas.begin("w/r", 3)
        assert await store.deltas.append("w/r", stream, 3, "Hello ")
        reading = store.deltas.after("w/r")
        first = await told(reading, 2)
        assert await store.deltas.append("w/r", stream, 3, "there")
        (last,) = await told(reading, 1)
        await reading.aclose()
    assert [(delta.text, delta.step, delta.stream) for delta in (*first, last)] == [
        ("", 3, stream),
        ("Hello ", 3, stream),
        ("there", 3, stream),
    ]
    assert first[0].position == stream < first[1].position < last.position
    assert last.event("w/r") == {
        "n": None,
        "name": "model.delta",
        "task_id": "w",
        "step_index": 3,
        "text": "there",
        "data": {"position": last.position, "stream": stream},
    }


@promise("store:deltas-overtaken")
async def test_another_answer_takes_the_place_of_the_one_before_which_adds_nothing_more(tmp_path, database_url):
    async with (
        open_store(database_url=database_url, home=tmp_path) as dying,
        open_store(database_url=database_url, home=tmp_path) as store,
    ):
        await store.deltas.watch("w/r", "somebody")
        lost = await dying.deltas.begin("w/r", 1)
        await dying.deltas.append("w/r", lost, 1, "half an ans")
        again = await store.deltas.begin("w/r", 1)
        assert not await dying.deltas.append("w/r", lost, 1, "wer that nobody waits for")
        await store.deltas.append("w/r", again, 1, "the answer")
        assert [(delta.stream, delta.text) for delta in await store.deltas.of_run("w/r")] == [
            (again, ""),
            (again, "the answer"),
        ]
        assert again > lost


@promise("store:deltas-moment")
async def test_the_end_of_an_answer_can_be_read_for_a_moment_when_the_next_one_has_begun(tmp_path):
    now = [1000.0]
    async with open_store(database_url=None, home=tmp_path, clock=lambda: now[0]) as store:
        await store.deltas.watch("w/r", "somebody")
        first = await store.deltas.begin("w/r", 1)
        await store.deltas.append("w/r", first, 1, "the end")
        second = await store.deltas.begin("w/r", 2)
        assert not await store.deltas.append("w/r", first, 1, "too late")
        assert [delta.text for delta in await store.deltas.of_run("w/r", first)] == ["the end", ""]
        now[0] += 4
        third = await store.deltas.begin("w/r", 3)
        assert second < third
        assert [(delta.stream, delta.text) for delta in await store.deltas.of_run("w/r")] == [(third, "")]


@promise("store:deltas-swept")
async def test_a_run_that_ends_leaves_nothing_and_one_that_died_is_swept(tmp_path):
    now = [1000.0]
    async with open_store(database_url=None, home=tmp_path, clock=lambda: now[0]) as store:
        for run in ("w/ended", "w/died"):
            await store.deltas.watch(run, "somebody")
            stream = await store.deltas.begin(run, 1)
            await store.deltas.append(run, stream, 1, "text")
        await store.deltas.forget("w/ended")
        assert await store.deltas.of_run("w/ended") == []
        now[0] += KEPT_S + 1
        await store.deltas.sweep()
        assert await store.deltas.of_run("w/died") == []


@promise("store:deltas")
async def test_who_no_longer_looks_no_longer_watches(tmp_path):
    now = [1000.0]
    async with open_store(database_url=None, home=tmp_path, clock=lambda: now[0]) as store:
        await store.deltas.watch("w/r", "somebody")
        stream = await store.deltas.begin("w/r", 1)
        now[0] += WATCH_S + 1
        assert not await store.deltas.append("w/r", stream, 1, "text")
        assert await store.deltas.begin("w/r", 2) is None
        assert await store.deltas.of_run("w/r") == []


@promise("store:deltas-order")
async def test_many_readers_watch_one_run(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await asyncio.gather(*(store.deltas.watch("w/r", f"reader {n}") for n in range(20)))
        stream = await store.deltas.begin("w/r", 1)
        readings = [store.deltas.after("w/r") for _ in range(5)]
        await store.deltas.append("w/r", stream, 1, "to all")
        for reading in readings:
            assert [delta.text for delta in await told(reading, 2)] == ["", "to all"]
            await reading.aclose()
