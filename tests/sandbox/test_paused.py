"""Paused programs go on at once while their jails are kept; otherwise a replay of their journals brings them back."""

import asyncio
import time

import pytest

from backstay.errors import SandboxLost
from tests.requirements import promise
from tests.sandbox.playing import TOOLS, answers, opened, play

ASKS = "a = await mail.find(n=1)\nb = await mail.find(n=2)\nreturn [a, b]"


async def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        await asyncio.sleep(0.005)


async def paused(box, key):
    played = await play(box, ASKS, batches=1)
    box.keep(key, played.halted)
    return played


async def go_on(box, played, key):
    async def rounds():
        return played.rounds

    frame = answers(played.halted, 1_700_000_100.0, lambda _tool, arguments: arguments)
    halted = await box.advance(
        box.image_hash, played.start, key=key, frame=frame, rounds=rounds, tools=TOOLS, first_call=1
    )
    box.discard(halted)
    return halted


@promise("programs:fast-path")
async def test_a_kept_program_goes_on_without_a_replay_and_only_once(tmp_path):
    async with opened(tmp_path, ready=0) as box:
        played = await paused(box, "run/1")
        assert box.kept == 1
        first = await go_on(box, played, "run/1")
        assert box.kept == 0
        second = await go_on(box, played, "run/1")
    assert (first.replayed, second.replayed) == (0, 1)
    assert first.round.came == second.round.came


@promise("programs:fast-path")
async def test_an_unknown_key_or_none_is_replayed(tmp_path):
    async with opened(tmp_path, ready=0) as box:
        played = await paused(box, "run/1")
        assert (await go_on(box, played, "run/2")).replayed == 1
        assert (await go_on(box, played, None)).replayed == 1
        assert box.kept == 1


@promise("programs:kept-bounded")
async def test_the_least_recently_kept_makes_room_and_its_process_ends(tmp_path):
    async with opened(tmp_path, ready=0, kept=2) as box:
        first, second, third = [await paused(box, f"run/{n}") for n in range(3)]
        assert box.kept == 2
        await asyncio.wait_for(asyncio.shield(first.halted.jail.gone), 150)
        assert (await go_on(box, second, "run/1")).replayed == 0
        assert (await go_on(box, third, "run/2")).replayed == 0
        assert (await go_on(box, first, "run/0")).replayed == 1


@promise("programs:kept-bounded")
async def test_memory_is_bounded_by_what_the_kept_programs_hold_for_themselves(tmp_path):
    async with opened(tmp_path, ready=0, kept=10, kept_mb=60) as box:
        small = await paused(box, "small")
        large = await play(box, "x = bytearray(b'x' * (48 << 20))\nawait mail.find(n=1)", batches=1)
        assert large.halted.jail.anonymous_mb() > 48
        box.keep("large", large.halted)
        assert box.kept == 1
        await asyncio.wait_for(asyncio.shield(small.halted.jail.gone), 150)
        huge = await play(box, "x = bytearray(b'x' * (80 << 20))\nawait mail.find(n=1)", batches=1)
        box.keep("huge", huge.halted)
        assert box.kept == 0, "one that is too large by itself is not kept"


@promise("programs:kept-bounded")
async def test_a_program_that_nobody_goes_on_with_is_ended_after_a_while(tmp_path):
    async with opened(tmp_path, ready=0, idle_s=0.2) as box:
        played = await paused(box, "run/1")
        await until(lambda: box.kept == 0)
        await asyncio.wait_for(asyncio.shield(played.halted.jail.gone), 150)


@promise("programs:fast-path")
async def test_forgetting_a_run_ends_its_programs_and_no_others(tmp_path):
    async with opened(tmp_path, ready=0) as box:
        first, other = await paused(box, "a/1"), await paused(box, "ab/1")
        await box.forget("a/")
        assert box.kept == 1
        await asyncio.wait_for(asyncio.shield(first.halted.jail.gone), 150)
        assert (await go_on(box, other, "ab/1")).replayed == 0


@promise("programs:fast-path")
async def test_a_second_program_under_the_same_key_takes_the_place_of_the_first(tmp_path):
    async with opened(tmp_path, ready=0) as box:
        first, second = await paused(box, "same"), await paused(box, "same")
        assert box.kept == 1
        await asyncio.wait_for(asyncio.shield(first.halted.jail.gone), 150)
        assert (await go_on(box, second, "same")).replayed == 0


@promise("programs:kept-bounded")
async def test_a_discarded_program_is_ended_and_nothing_is_kept_by_a_closed_sandbox(tmp_path):
    async with opened(tmp_path, ready=0) as box:
        dropped = await play(box, ASKS, batches=1)
        box.discard(dropped.halted)
        await asyncio.wait_for(asyncio.shield(dropped.halted.jail.gone), 150)
        held = await play(box, ASKS, batches=1)
    box.keep("late", held.halted)
    assert box.kept == 0
    assert held.halted.jail.gone.done()
    with pytest.raises(SandboxLost, match="stopping"):
        await play(box, ASKS)


@promise("programs:kept-bounded")
async def test_a_paused_program_that_nobody_keeps_or_discards_is_bounded_like_the_others(tmp_path):
    async with opened(tmp_path, ready=0, kept=2) as box:
        first, second, third = [await play(box, ASKS, batches=1) for _ in range(3)]
        await asyncio.wait_for(asyncio.shield(first.halted.jail.gone), 150)
        box.keep("late", first.halted)
        box.keep("run", second.halted)
        assert (await go_on(box, first, "late")).replayed == 1
        assert (await go_on(box, second, "run")).replayed == 0
        box.discard(third.halted)
        assert box.kept == 0


@promise("programs:fast-path")
async def test_discarding_a_program_that_is_going_on_does_not_end_it(tmp_path):
    async with opened(tmp_path, ready=0) as box:
        played = await paused(box, "run")
        going_on = asyncio.create_task(go_on(box, played, "run"))
        await until(lambda: box.kept == 0)
        box.discard(played.halted)
        halted = await going_on
    assert (halted.kind, halted.replayed) == ("waiting", 0)
