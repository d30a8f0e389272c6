"""Leave an endpoint alone for as long as it has asked, whichever worker it told.

Without this each run learns by a refusal of its own that there are too many requests, and each refusal counts against
the limit of most endpoints.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable

from backstay.errors import ModelUnavailable, StoreUnavailable
from store.pauses import LONGEST_PAUSE_S, Pauses
from system.clock import uptime

LONGEST_WAIT_S = 10.0
"""How long a request waits here; for a longer pause the run waits, and no activity is held."""
LOOK_S = 1.0
"""How old what this worker knows of an endpoint may be."""
SPREAD = 0.25
"""The part of a pause over which those who waited for its end are spread, so that they do not all come at once."""
MOST_SPREAD_S = 5.0


class Pausing:
    """Wait for the end of pauses, and tell the other workers of new ones."""

    def __init__(self, pauses: Pauses, dice: Callable[[], float] = random.random) -> None:
        """Look into the store once a second for each endpoint that is used."""
        self._pauses = pauses
        self._dice = dice
        self._until: dict[str, float] = {}
        self._looked: dict[str, float] = {}
        self._looking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def wait(self, endpoint: str) -> None:
        """Return once a request may be sent; raises ModelUnavailable, unbilled and held, where that takes longer."""
        left = await self._left(endpoint)
        if not left:
            return
        left += min(left * SPREAD, MOST_SPREAD_S) * self._dice()
        if left > LONGEST_WAIT_S:
            raise ModelUnavailable(
                f"the model endpoint has asked to send nothing for a while, of which {left:.0f} s are left",
                unbilled=True,
                held=True,
                retry_after=round(left, 1),
            )
        await asyncio.sleep(left)

    async def note(self, endpoint: str, seconds: float) -> None:
        """Say that an endpoint has asked to wait; where the store is away, only this worker knows."""
        seconds = min(seconds, LONGEST_PAUSE_S)
        until = uptime() + seconds
        if until <= self._until.get(endpoint, 0.0) + LOOK_S:
            return
        self._until[endpoint] = until
        try:
            await self._pauses.pause(endpoint, seconds)
        except StoreUnavailable:
            return

    async def _left(self, endpoint: str) -> float:
        # Those who come while one looks wait for what it finds, or they would send on what was known before.
        async with self._looking[endpoint]:
            if uptime() - self._looked.get(endpoint, float("-inf")) >= LOOK_S:
                await self._look(endpoint)
        return max(0.0, self._until.get(endpoint, 0.0) - uptime())

    async def _look(self, endpoint: str) -> None:
        try:
            left = await self._pauses.left(endpoint)
        except StoreUnavailable:
            left = 0.0
        now = uptime()
        self._looked[endpoint] = now
        # A pause that only this worker knows, since the store was away, still counts.
        self._until[endpoint] = max(self._until.get(endpoint, 0.0), now + left)
