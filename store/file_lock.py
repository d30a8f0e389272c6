"""A lock between processes of one host."""

import asyncio
import fcntl
import math
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from backstay.errors import StoreUnavailable
from store.faults import faults

_POLL_S = 0.02
_log = structlog.get_logger(__name__)


@asynccontextmanager
async def file_lock(path: Path, *, wait_s: float) -> AsyncGenerator[None]:
    """Hold an exclusive lock on a file; raise StoreUnavailable when somebody else does not let go."""
    with faults():
        opened = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        if not _acquired(opened):
            _log.info("store.waits", lock=str(path))
            await _wait(opened, path, wait_s)
        yield
    finally:
        os.close(opened)


async def _wait(opened: int, path: Path, wait_s: float) -> None:
    """Poll, because a thread that blocks in the lock could not be cancelled."""
    for _ in range(math.ceil(wait_s / _POLL_S)):
        if _acquired(opened):
            return
        await asyncio.sleep(_POLL_S)
    raise StoreUnavailable(f"store: another process has held {path} for {wait_s:g} s; see what it is doing")


def _acquired(opened: int) -> bool:
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
