"""Locks between processes, each tied to a file that stays; the kernel releases them when their process dies."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from filelock import AsyncFileLock, FileLock

_MODE = 0o600
_POLL_S = 0.02


@contextmanager
def file_lock(path: Path) -> Generator[None]:
    """Hold the lock of a file; the thread waits for it without end."""
    # A file that is kept is also one that no lock by mere existence may replace, which would outlive its process.
    with FileLock(path, mode=_MODE, poll_interval=_POLL_S, preserve_lock_file=True):
        yield


@asynccontextmanager
async def async_file_lock(path: Path, *, wait_s: float = -1) -> AsyncGenerator[None]:
    """Hold the lock of a file; waiting for it can be cancelled, and is unbounded when `wait_s` is negative.

    Raises TimeoutError when another holder does not release it in time.
    """
    # An attempt never blocks, so it needs no thread; a thread that waits could not be cancelled.
    lock = AsyncFileLock(path, mode=_MODE, poll_interval=_POLL_S, preserve_lock_file=True, run_in_executor=False)
    async with await lock.acquire(timeout=wait_s):
        yield
