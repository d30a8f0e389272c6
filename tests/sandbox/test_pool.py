"""The pool: jails that are ready before anyone needs one, each for one program."""

import asyncio
import time
from pathlib import Path

import pytest

from backstay.errors import SandboxLost
from sandbox.programs.pool import JailPool
from tests.requirements import promise
from tests.sandbox.playing import children, jails_in, opened, play


async def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        await asyncio.sleep(0.005)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


# A loop of its own: what other tests share in theirs comes and goes by itself.
@pytest.mark.asyncio(loop_scope="function")
@promise("programs:closing")
async def test_closing_ends_every_jail_and_leaves_no_process_file_or_task_behind(tmp_path):
    files, tasks = open_files(), asyncio.all_tasks()
    async with opened(tmp_path, ready=2) as box:
        paused = [await play(box, "print(1)\nawait mail.find()\nwhile True: pass", batches=1) for _ in range(3)]
        for number, item in enumerate(paused):
            box.keep(str(number), item.halted)
        held = await play(box, "await mail.find()", batches=1)
        assert held.halted.kind == "waiting"
        await play(box, "return 1")
        await until(lambda: box.ready == 2)
        # Whatever else this process has started, such as the sandbox that other tests share, comes and goes by itself.
        begun = jails_in(tmp_path)
        assert len(begun) >= 6
    assert jails_in(tmp_path) == set()
    assert begun & children() == set()
    assert open_files() <= files
    assert asyncio.all_tasks() == tasks


@promise("programs:pool")
async def test_the_pool_fills_up_and_again_after_each_program(tmp_path):
    async with opened(tmp_path, ready=2) as box:
        await until(lambda: box.ready == 2)
        waiting = await play(box, "await mail.find()", batches=1)
        assert box.ready < 2
        await until(lambda: box.ready == 2)
        box.discard(waiting.halted)


@promise("programs:pool")
async def test_no_two_programs_share_a_jail(tmp_path):
    source = "import os, builtins\nwas = hasattr(builtins, 'mark') or os.path.exists('/tmp/mark')\n"
    source += "builtins.mark = 1\nopen('/tmp/mark', 'w').close()\nreturn was"
    async with opened(tmp_path, ready=1) as box:
        assert [(await play(box, source)).result for _ in range(3)] == [False, False, False]


@promise("programs:pool")
async def test_more_programs_than_ready_jails_all_run(tmp_path):
    async with opened(tmp_path, ready=1) as box:
        played = await asyncio.gather(*(play(box, f"return {n}") for n in range(5)))
    assert [program.result for program in played] == list(range(5))


@promise("programs:pool")
async def test_a_jail_that_died_while_it_was_ready_is_not_given_away(tmp_path):
    async with opened(tmp_path, ready=1) as box:
        await until(lambda: box.ready == 1)
        jail = box._pool._ready[0]
        await jail.end()
        assert box.ready == 0
        assert (await play(box, "return 1")).result == 1


@promise("programs:pool")
async def test_ready_jails_that_grow_old_are_replaced(tmp_path):
    async with opened(tmp_path, ready=1, oldest_s=1.5) as box:
        await until(lambda: box.ready == 1)
        old = box._pool._ready[0]
        await asyncio.wait_for(asyncio.shield(old.gone), 150)
        await until(lambda: box.ready == 1)
        assert (await play(box, "return 1")).result == 1


@promise("programs:pool")
async def test_a_pool_that_cannot_start_jails_says_why_to_whoever_takes_one_and_tries_again():
    tried, ended = [], []

    async def failing():
        tried.append(1)
        raise SandboxLost("no jail today")

    pool = JailPool(failing, size=1, oldest_s=60, end=ended.append)
    pool.open()
    await until(lambda: len(tried) >= 2)
    with pytest.raises(SandboxLost, match="no jail today"):
        await pool.take()
    await pool.close()
    assert (len(pool), ended) == (0, [])
