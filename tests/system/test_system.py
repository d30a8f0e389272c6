"""What other rooms rely on of the operating system."""

import asyncio
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from system.files import write_whole
from system.locks import async_file_lock, file_lock
from system.output import BoundedOutput
from tests.requirements import promise

HOLDER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from system.locks import file_lock
with file_lock(Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_elsewhere(path):
    command = (sys.executable, "-c", HOLDER, str(Path(__file__).parents[2]), str(path))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        try:
            yield holder
        finally:
            holder.kill()


@promise("operations:locks")
async def test_a_lock_ends_with_its_process_and_its_private_file_stays(tmp_path):
    path = tmp_path / "lock"
    with held_elsewhere(path) as holder:
        with pytest.raises(TimeoutError):
            async with async_file_lock(path, wait_s=0.05):
                pass
        holder.kill()
        holder.wait()
        async with async_file_lock(path, wait_s=0):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.exists()


@promise("operations:locks")
async def test_a_child_that_starts_while_a_lock_is_held_does_not_keep_it(tmp_path):
    path = tmp_path / "lock"
    with file_lock(path):
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "input()", stdin=subprocess.PIPE, close_fds=False
        )
    try:
        async with async_file_lock(path, wait_s=0):
            assert child.returncode is None
    finally:
        await child.communicate(b"\n")


@promise("operations:locks-cancelled")
async def test_waiting_for_a_lock_can_be_cancelled_and_takes_nothing(tmp_path):
    path = tmp_path / "lock"
    with file_lock(path):

        async def wait():
            async with async_file_lock(path):
                raise AssertionError

        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with async_file_lock(path, wait_s=0):
        pass


@promise("operations:locks-tasks")
async def test_tasks_of_one_process_hold_a_lock_one_after_another(tmp_path):
    inside, most = 0, 0

    async def work():
        nonlocal inside, most
        async with async_file_lock(tmp_path / "lock"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(5)))
    assert most == 1


@promise("operations:files")
def test_a_file_is_replaced_whole_and_nothing_unfinished_stays(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    write_whole(path, b"after")
    assert path.read_bytes() == b"after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_whole(tmp_path / "folder", b"data")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


@promise("operations:output")
def test_output_keeps_its_ends_and_says_how_much_is_left_out_between_them():
    output = BoundedOutput(4, 3)
    for piece in (b"ab", b"cdef", b"ghijk"):
        output.add(piece)
    assert (output.total, output.dropped, output.kept) == (11, 4, b"abcdijk")
    assert output.text == "abcd\n[4 bytes are left out here]\nijk"
    whole = BoundedOutput(4, 3)
    whole.add(b"abcdefg")
    assert whole.text == "abcdefg"
