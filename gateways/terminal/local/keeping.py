"""Keep a part of one machine running: start it again when it dies, and another in its place when its files change."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from backstay.errors import SettingsInvalid
from gateways.terminal.local.reloading import Watch
from gateways.terminal.terminal import Terminal
from system.child import Child

DRAIN_S = 8.0
"""How long a part may take to end."""
REPLACED_S = 45.0
"""The same for one that another has replaced: the activities of a worker end within 35 seconds."""
_READY_S = 60.0
_LONGEST_PAUSE_S = 30.0


class KeptPart:
    """Keep one part running."""

    def __init__(
        self,
        terminal: Terminal,
        start: Callable[[], Awaitable[Child]],
        ready: Callable[[str], None],
        watch: Watch,
        *,
        together: bool = False,
        stop_s: float = DRAIN_S,
    ) -> None:
        """`ready` is told what a part says once it is ready; `together`: two may run while one replaces the other.

        `stop_s`: how long a part may take to end when this is to end.
        """
        self._terminal = terminal
        self._start = start
        self._ready = ready
        self._watch = watch
        self._together = together
        self._stop_s = stop_s
        self._started_once = False
        self._running: set[Child] = set()
        self._replaced: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Keep it running until cancelled; raises SettingsInvalid when it cannot start at all."""
        pause = 1.0
        try:
            while True:
                part = await self._started()
                pause = 1.0 if await self._got_ready(part) else pause
                part = await self._until_it_ends(part)
                code = await part.ended()
                await self._stop(part, DRAIN_S)
                said = " / ".join(list(part.last)[-2:])
                if not self._started_once and code == 2:
                    raise SettingsInvalid(said.removeprefix(f"backstay {part.name}: ").removeprefix("backstay: "))
                how = f"the {part.name} ended with {code}: {said}; starting another in {pause:g} s"
                self._terminal.say(how, "red")
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_S)
        finally:
            await asyncio.gather(*(self._stop(part, self._stop_s) for part in [*self._running]))

    async def _started(self) -> Child:
        part = await self._start()
        self._running.add(part)
        return part

    async def _stop(self, part: Child, seconds: float) -> None:
        await part.stop(seconds)
        self._running.discard(part)

    async def _got_ready(self, part: Child) -> bool:
        said = await part.is_ready(_READY_S)
        if said is None:
            return False
        self._ready(f"{said} (log: {part.log})")
        self._started_once = True
        return True

    async def _until_it_ends(self, part: Child) -> Child:
        """Wait until a part ends by itself; return it, which may be a later one by then."""
        changed = asyncio.ensure_future(self._watch.changed())
        ended = asyncio.ensure_future(part.ended())
        try:
            while True:
                await asyncio.wait({ended, changed}, return_when=asyncio.FIRST_COMPLETED)
                if ended.done():
                    return part
                files, fault = changed.result()
                changed = asyncio.ensure_future(self._watch.changed())
                if (newer := await self._in_place_of(part, files, fault)) is not part:
                    ended.cancel()
                    part, ended = newer, asyncio.ensure_future(newer.ended())
        finally:
            changed.cancel()
            ended.cancel()

    async def _in_place_of(self, part: Child, files: Sequence[Path], fault: str) -> Child:
        """Start a part that obeys changed files; return the old one where they cannot be obeyed."""
        named = ", ".join(path.name for path in files)
        if fault:
            self._terminal.say(f"changed     {named}: not obeyed, as {fault}", "red")
            return part
        self._terminal.say(f"changed     {named}; starting another {part.name}", "yellow")
        if not self._together:
            # A signal meanwhile must not cut the drain short: `run` ends what is left.
            await asyncio.shield(self._replace(part))
        newer = await self._started()
        if await self._got_ready(newer) or not self._together:
            if self._together:
                self._replace(part)
            return newer
        await self._stop(newer, DRAIN_S)
        said = " / ".join(list(newer.last)[-2:])
        self._terminal.say(f"the {part.name} goes on with what it read before: {said}", "red")
        return part

    def _replace(self, old: Child) -> asyncio.Task[None]:
        """Let a part end its work; return the task in which it does."""
        ending = asyncio.create_task(self._stop(old, REPLACED_S))
        self._replaced.add(ending)
        ending.add_done_callback(self._replaced.discard)
        return ending


def stop_on_signal() -> asyncio.Event:
    """Return an event that Ctrl-C and SIGTERM set."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    return stop
