"""Locks between processes, each tied to a file or folder that stays; the kernel releases them with their process."""

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

_MODE = 0o600
_POLL_S = 0.02


@contextmanager
def file_lock(path: Path) -> Generator[None]:
    """Hold the lock of a file; the thread waits for it without end."""
    from filelock import FileLock

    # A file that is kept is also one that no lock by mere existence may replace, which would outlive its process.
    with FileLock(path, mode=_MODE, poll_interval=_POLL_S, preserve_lock_file=True):
        yield


@asynccontextmanager
async def async_file_lock(path: Path, *, wait_s: float = -1) -> AsyncGenerator[None]:
    """Hold the lock of a file; waiting for it can be cancelled, and is unbounded when `wait_s` is negative.

    Raises TimeoutError when another holder does not release it in time.
    """
    from filelock import AsyncFileLock

    # An attempt never blocks, so it needs no thread; a thread that waits could not be cancelled.
    lock = AsyncFileLock(path, mode=_MODE, poll_interval=_POLL_S, preserve_lock_file=True, run_in_executor=False)
    async with await lock.acquire(timeout=wait_s):
        yield


def is_locked(path: Path) -> bool:
    """Return whether anybody holds the lock of a file; raises OSError for a file that cannot be opened."""
    tried = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return not _locked(tried)
    finally:
        os.close(tried)


@asynccontextmanager
async def folder_lock(folder: Path, *, wait_s: float = 0) -> AsyncGenerator[int]:
    """Hold the lock of a folder, and yield the open file that holds it.

    A child that inherits this file holds the lock too: it is free only when this block and every such child have ended,
    whatever became of their parent. Raises TimeoutError when another holder does not release it in time.
    """
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        ends = time.monotonic() + wait_s
        while not _locked(held):
            if time.monotonic() >= ends:
                raise TimeoutError(f"{folder} is locked")
            await asyncio.sleep(_POLL_S)
        yield held
    finally:
        os.close(held)


def _locked(held: int) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
