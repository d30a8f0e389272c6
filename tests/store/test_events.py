"""Timelines of runs."""

import asyncio

from backstay.task.event import Event, EventDraft, NumberedDraft
from store.opening import open_store
from tests.requirements import promise


def event(n: int, second: int = 0, text: str = "") -> Event:
    return Event(
        n=n, name="action.called", at=f"2026-03-01T10:00:{second:02}+00:00", step_index=n, text=text, data={"n": n}
    )


@promise("store:safenet")
async def test_events_come_back_in_order_and_by_run(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await store.events.append("w/r", [event(3), event(1)])
        await store.events.append("w/r", [event(2)])
        await store.events.append("w/s", [event(1, text="another run")])
        await store.events.append("w/r", [])
        assert await store.events.of_run("w/r") == [event(1), event(2), event(3)]
        assert await store.events.of_run("w/r", after=2) == [event(3)]
        assert await store.events.of_run("w/unknown") == []


@promise("store:events")
async def test_a_repeat_changes_nothing(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        for _ in range(3):
            await store.events.append("w/r", [event(1), event(2)])
        assert await store.events.of_run("w/r") == [event(1), event(2)]


@promise("store:events")
async def test_of_two_events_with_one_number_the_newer_stays(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await store.events.append("w/r", [event(1), event(2, second=5, text="before the reset"), event(3, second=6)])
        await store.events.append("w/r", [event(2, second=30, text="after the reset")])
        await store.events.append("w/r", [event(2, second=5, text="a sleeper's"), event(4, second=7)])
        assert [e.text for e in await store.events.of_run("w/r")] == ["", "after the reset", "", ""]
        await store.events.append("w/r", [event(5, second=9, text="new"), event(5, second=8, text="old")])
        assert (await store.events.of_run("w/r", after=4))[0].text == "new"


@promise("store:events")
async def test_many_writers_lose_nothing(tmp_path, database_url):
    async with (
        open_store(database_url=database_url, home=tmp_path) as first,
        open_store(database_url=database_url, home=tmp_path) as other,
    ):
        await asyncio.gather(
            *(store.events.append("w/r", [event(n), event(n + 1)]) for n in range(1, 30) for store in (first, other))
        )
        assert [e.n for e in await first.events.of_run("w/r")] == list(range(1, 31))


@promise("store:safenet")
async def test_hostile_text_is_kept(tmp_path, database_url):
    text = "\u202e \0 ⟦secret⟧ '; DROP TABLE events; -- 🪢"
    kept = Event(n=1, name="x", at="2026-03-01T10:00:00+00:00", text=text, data={text: [text]})
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await store.events.append(text, [kept])
        assert await store.events.of_run(text) == [kept]


def draft(number: int, text: str) -> Event:
    return EventDraft(name="action.called", text=text).under(number).of("w/r", "ana", None)


@promise("store:events")
async def test_a_draft_joins_the_timeline_once_it_has_a_number(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        left = await store.events.append("w/r", [event(1), draft(7, "lost"), draft(8, "other")])
        again = await store.events.append("w/r", [draft(7, "of the retry")])
        assert (left and left.events, again and again.events) == ([event(1)], [])
        assert await store.events.of_run("w/r") == [event(1)]
        assert await store.events.last("w/r", below=5) == 1

        numbered = [NumberedDraft(2, 7, 1_772_359_209_000), NumberedDraft(3, 99, 1_772_359_209_000)]
        for known in (False, True):
            told = await store.events.append("w/r", [event(4, second=10)], numbered)
            assert told is not None
            assert [(event.n, event.text) for event in told.events] == ([] if known else [(2, "of the retry"), (4, "")])
        assert [(e.n, e.text) for e in await store.events.of_run("w/r")] == [(1, ""), (2, "of the retry"), (4, "")]
