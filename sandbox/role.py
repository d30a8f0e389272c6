"""Run the sandbox role as a child process of the worker: the same program, without the worker's secrets."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

import structlog

from system.child import Child

_READY_TIMEOUT_S = 60
_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0
_CANNOT = 2
"""The exit code of a worker that lacks something which only an operator can give."""
_log = structlog.get_logger("backstay.sandbox")


class SandboxChild:
    """Keep one process of the sandbox role running: what dies is started again, with pauses, for ever."""

    def __init__(self, start: Callable[[], Awaitable[Child]], first: Child) -> None:
        """Take over a child that was just started."""
        self._start = start
        self._starting: asyncio.Future[Child] | None = None
        self._child: Child | None = first
        self._pause_s = _PAUSE_S

    async def said(self) -> str:
        """Wait for the first child and return what there is to say of it."""
        child = self._child
        if child is None or await child.is_ready(_READY_TIMEOUT_S) is not None:
            return ", programs in jails"
        return f", no programs: {child.last[-1] if child.last else 'the sandbox does not start'}"

    async def keep_up(self) -> None:
        """Start it again whenever it dies; a first one that lacks something needs an operator, and a new worker."""
        was_ready = False
        while True:
            if self._child is not None:
                code = await self._child.ended()
                if self._child.ready.done():
                    was_ready, self._pause_s = True, _PAUSE_S
                elif code == _CANNOT and not was_ready:
                    return
                last = self._child.last[-1] if self._child.last else ""
                _log.error("sandbox.lost", code=code, said=last, again_in_s=self._pause_s)
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
            await self._again()

    async def _again(self) -> None:
        self._starting = asyncio.ensure_future(self._start())
        try:
            self._child = child = await asyncio.shield(self._starting)
        except OSError as error:
            self._child = None
            _log.error("sandbox.lost", said=str(error), again_in_s=self._pause_s)
            return
        if await child.is_ready(_READY_TIMEOUT_S) is not None:
            _log.info("sandbox.back")

    async def stop(self, seconds: float) -> None:
        """End what runs, also what is just being started."""
        if self._starting is not None:
            with suppress(OSError):
                self._child = await self._starting
        if self._child is not None:
            await self._child.stop(seconds)


@asynccontextmanager
async def sandbox_child(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    drain: timedelta,
    *,
    heard: Callable[[str], None] | None = None,
) -> AsyncGenerator[asyncio.Task[str]]:
    """Run the sandbox role beside this process, without its secrets; the task returns a note on whether it started.

    On exit, it has `drain` to finish what it is doing. `heard` gets every line that it says.
    """
    options = {"environment": environment, "log": log, "ready": "backstay sandbox ready", "heard": heard}
    start = partial(Child.start, "sandbox", command, **options)
    child = SandboxChild(start, await start())
    starting = asyncio.create_task(child.said())
    keeping = asyncio.create_task(child.keep_up())
    try:
        yield starting
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping
        await child.stop(drain.total_seconds())
