"""Wait for a store that is locked, where giving up would lose what was just learnt or paid for."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from backstay.errors import StoreUnavailable

Answer = TypeVar("Answer")
PAUSE_S = 0.5


async def patiently(work: Callable[[], Awaitable[Answer]], *, until: float) -> Answer:
    """Return what the work returns; while the store cannot be reached do it again, until a unix time.

    Raises StoreUnavailable.
    """
    while True:
        try:
            return await work()
        except StoreUnavailable:
            if time.time() >= until:
                raise
            await asyncio.sleep(PAUSE_S)
