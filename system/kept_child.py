"""Keep a child process running: a process that dies is started again, with pauses, for as long as it is wanted."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from system.child import Child

READY_TIMEOUT_S = 60
_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0
_CANNOT = 2
"""The exit code of a program that lacks something which only an operator can give."""


class Loss(NamedTuple):
    """Tell of a child that has died, or could not be started."""

    code: int | None
    """None where it could not be started."""
    said: str
    """The last line of its output, or why it could not be started."""
    again_in_s: float


class KeptChild:
    """Hold the child that runs now."""

    def __init__(
        self,
        start: Callable[[], Awaitable[Child]],
        first: Child,
        lost: Callable[[Loss], None],
        back: Callable[[], None],
    ) -> None:
        """Take over a child that was just started; `lost` and `back` are told when one dies, and when one is ready."""
        self.child: Child | None = first
        self._start = start
        self._lost = lost
        self._back = back
        self._starting: asyncio.Future[Child] | None = None
        self._pause_s = _PAUSE_S

    async def keep_up(self) -> None:
        """Start it again whenever it dies; a first one that lacks something needs an operator, and ends this."""
        was_ready = False
        while True:
            if self.child is not None:
                code = await self.child.ended()
                if self.child.ready.done():
                    was_ready, self._pause_s = True, _PAUSE_S
                elif code == _CANNOT and not was_ready:
                    return
                said = self.child.last[-1] if self.child.last else ""
                self._lost(Loss(code, said, self._pause_s))
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
            await self._again()

    async def _again(self) -> None:
        self._starting = asyncio.ensure_future(self._start())
        try:
            self.child = child = await asyncio.shield(self._starting)
        except OSError as error:
            self.child = None
            self._lost(Loss(None, str(error), self._pause_s))
            return
        if await child.is_ready(READY_TIMEOUT_S) is not None:
            self._back()

    async def stop(self, seconds: float) -> None:
        """End what runs, also what is just being started."""
        if self._starting is not None:
            with suppress(OSError):
                self.child = await self._starting
        if self.child is not None:
            await self.child.stop(seconds)


@asynccontextmanager
async def kept_child(
    start: Callable[[], Awaitable[Child]], lost: Callable[[Loss], None], back: Callable[[], None], *, drain_s: float
) -> AsyncGenerator[KeptChild]:
    """Start a child and keep it running; on exit, it has `drain_s` seconds to finish what it is doing."""
    kept = KeptChild(start, await start(), lost, back)
    keeping = asyncio.create_task(kept.keep_up())
    try:
        yield kept
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping
        await kept.stop(drain_s)
