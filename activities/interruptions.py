"""Notice that a run, or the worker, interrupts an activity, and whether calls that were not sent yet are let go of."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from temporalio import activity

LOOK_S = 1.0
"""How often a run that has interrupted an activity is asked what it wants by now, while calls are under way."""


class Interruption:
    """Hold whether an activity was interrupted, and what that means for its calls.

    Temporal tells an activity of the first interruption only: a run that is paused and then cancelled must be asked.
    """

    def __init__(self, run_lets_go: Callable[[], Awaitable[bool]]) -> None:
        """Know how to ask whether the run lets go of calls that were not sent yet."""
        self._run_lets_go = run_lets_go
        self._begun = self._lets_go = False

    async def lets_go(self) -> bool:
        """Return whether calls that were not sent yet are not to be made: the worker stops, or the run wants so."""
        if self._begun and not self._lets_go:
            self._lets_go = not by_run() or activity.is_worker_shutdown() or await self._run_lets_go()
        return self._lets_go

    async def wait_for(self, acting: "asyncio.Future[Any]") -> bool:
        """Wait for calls; return whether the run interrupted them meanwhile.

        Those that were not sent yet end early where they are let go of.
        """
        cancelled = False
        while not acting.done():
            try:
                await asyncio.wait([acting], timeout=LOOK_S if self._begun and not cancelled else None)
            except asyncio.CancelledError:
                self._begun = True
            if not cancelled and not acting.done() and await self.lets_go():
                cancelled = acting.cancel()
        if self._begun and not by_run():
            raise asyncio.CancelledError
        acting.result()
        return self._begun


async def at_once() -> bool:
    """Let go of reads: nothing but the end of their run interrupts them."""
    return True


def by_run() -> bool:
    """Return whether the run itself asked for the cancellation, and no worker that stops."""
    details = activity.cancellation_details()
    return details is not None and details.cancel_requested
