"""What a worker runs programs with: jails that are ready, jails that are paused, and the way back from a journal."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Self

from backstay.errors import ImageMissing, SandboxLost
from sandbox.images.image import Image, find_image
from sandbox.isolation.cgroups import Cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import Profile, command, outside_uid
from sandbox.isolation.spawn import allow_files
from sandbox.limits import Limits
from sandbox.programs.crash import ProgramCrashed, rounds_reached
from sandbox.programs.frames import Done, read_frame
from sandbox.programs.jail import Jail
from sandbox.programs.paused import Halted, PausedJails
from sandbox.programs.pool import JailPool, Slots
from sandbox.programs.replay import feed, feed_last
from sandbox.programs.types import Round

_STARTS_AT_ONCE = 2
_FILES_PER_JAIL = 4
_OTHERS = 200


class Sandbox:
    """Run programs in jails, one round at a time; nothing here knows what their calls do.

    Open it in a thread that lives as long as the worker: the kernel ends its jails with that thread.
    """

    def __init__(
        self,
        *,
        nsjail: Nsjail,
        image: Image,
        images: Path,
        folder: Path,
        cgroups: Cgroups | None = None,
        limits: Limits | None = None,
        ready: int = 2,
        oldest_s: float = 600.0,
        kept: int = 32,
        kept_mb: float = 512.0,
        idle_s: float = 600.0,
    ) -> None:
        """Start new programs in `image`, and those that began in another one in that, from the folder `images`.

        So many jails are ready, none older than `oldest_s`; so many paused ones are kept, of at most `kept_mb` of
        memory together, each for at most `idle_s`. `folder` takes configuration files.
        """
        self.limits = limits or Limits()
        self._nsjail = nsjail
        self._image = image
        self._images = images
        self._folder = folder
        self._cgroups = cgroups or Cgroups()
        self._most = ready + kept
        self._slots = Slots()
        self._commands: dict[tuple[str, int], list[str]] = {}
        self._jails: set[Jail] = set()
        self._ends: set[asyncio.Future[None]] = set()
        self._starting = asyncio.Semaphore(_STARTS_AT_ONCE)
        self._closing = False
        self._pool = JailPool(lambda: self._started(image), size=ready, oldest_s=oldest_s, end=self._end)
        self._paused = PausedJails(jails=kept, mb=kept_mb, idle_s=idle_s, end=self._end)

    @property
    def image_hash(self) -> str:
        """Name the image that new programs begin in."""
        return self._image.hash

    @property
    def ready(self) -> int:
        """Return how many jails are ready."""
        return len(self._pool)

    @property
    def kept(self) -> int:
        """Return how many paused programs are kept."""
        return len(self._paused)

    async def open(self) -> None:
        """Begin to make jails ready."""
        allow_files(_FILES_PER_JAIL * (self._most + _OTHERS))
        self._pool.open()

    async def close(self) -> None:
        """End every jail and return when none is left; a round that is under way ends as SandboxLost."""
        self._closing = True
        await self._pool.close()
        self._paused.clear()
        for jail in list(self._jails):
            self._end(jail)
        while self._ends:
            await asyncio.wait(self._ends)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def advance(
        self,
        image_hash: str,
        start_frame: bytes,
        *,
        key: str | None,
        frame: bytes | None,
        rounds: Callable[[], Awaitable[Sequence[Round]]],
        tools: AbstractSet[str],
        first_call: int,
        progress: Callable[[], None] | None = None,
    ) -> Halted:
        """Let a program run until it halts again.

        `frame` holds the answers to its last calls, None when it has not run yet. A paused jail under `key` goes on;
        without one, a new jail is first fed `rounds`, all that happened before, and `progress` is called after each.
        Hand a Halted that waits to `keep` or `discard`.

        Raises SandboxLost when the jail is taken away, ProgramDiverged when what it is fed leads elsewhere, and
        ImageMissing.
        """
        jail = self._paused.take(key) if key is not None else None
        fed = 0
        try:
            if jail is None:
                jail = await self._new(image_hash)
                before = await rounds()
                await feed(jail, start_frame, before, tools=tools, limits=self.limits, progress=progress)
                fed = len(before)
                jail.lap_s()
            sent = _next_frame(jail, start_frame, frame)
            return await self._halted(jail, sent, tools, first_call=first_call, fed=fed)
        except BaseException:
            if jail is not None:
                self._end(jail)
            raise

    async def verify(
        self,
        image_hash: str,
        start_frame: bytes,
        rounds: Sequence[Round],
        *,
        tools: AbstractSet[str],
        last: Round | None = None,
        progress: Callable[[], None] | None = None,
    ) -> None:
        """Feed a journal to a new jail and forget the jail; nothing is raised when it leads to the same place.

        `last` is the round in which the program ended, which must end in the same bytes.

        Raises ProgramDiverged when it leads elsewhere, SandboxLost and ImageMissing when that could not be found out.
        """
        jail = await self._new(image_hash)
        try:
            await feed(jail, start_frame, rounds, tools=tools, limits=self.limits, progress=progress)
            if last is not None:
                await feed_last(jail, last.sent if rounds else start_frame, last)
        finally:
            self._end(jail)

    def keep(self, key: str, halted: Halted) -> None:
        """Keep the paused jail of a program that waits, for `advance` with the same key; a jail with that key goes."""
        if halted.jail is not None:
            self._paused.rename(_held(halted.jail), key)

    def discard(self, halted: Halted) -> None:
        """End the paused jail of a program that waits."""
        if halted.jail is not None:
            self._paused.discard(halted.jail)

    async def forget(self, prefix: str) -> int:
        """End every kept jail whose key begins so; return how many there were."""
        return self._paused.forget(prefix)

    async def _halted(self, jail: Jail, sent: bytes, tools: AbstractSet[str], *, first_call: int, fed: int) -> Halted:
        """Send one new frame and tell where it led."""
        first, began, came = jail.rounds == 0, time.perf_counter(), b""
        kind, calls, done = "crashed", (), Done()
        try:
            came = await jail.exchange(sent, wall_s=self.limits.wall_s)
            told = read_frame(came, tools=tools, first_call=first_call, limits=self.limits)
            if isinstance(told, Done):
                kind, done = "crashed" if told.error else "finished", told
            elif jail.rounds > self.limits.rounds:
                raise rounds_reached(self.limits)
            else:
                kind, calls = "waiting", told
        except ProgramCrashed as crash:
            if crash.lost or self._closing:
                raise SandboxLost(f"the jail was lost: {crash.message}") from None
            # What is refused is no entry of a journal, and may be no text at all.
            came, done = b"", Done(error=crash.plain())
        took = Round(
            sent=b"" if first else sent,
            came=came,
            cpu_s=jail.lap_s(),
            wall_s=time.perf_counter() - began,
        )
        if kind == "waiting":
            # Whoever it is for may fail before he keeps or discards it, so it is among the paused ones from the start.
            self._paused.put(_held(jail), jail)
        else:
            self._end(jail)
        return Halted(
            kind=kind,
            round=took,
            calls=calls,
            result=done.result,
            error=done.error,
            output=jail.output,
            output_dropped=jail.output_dropped,
            fed=fed,
            jail=jail if kind == "waiting" else None,
        )

    async def _new(self, image_hash: str) -> Jail:
        self._refuse_when_closing()
        if image_hash == self._image.hash:
            return await self._pool.take()
        image = await asyncio.to_thread(find_image, image_hash, self._images)
        if image is None:
            raise ImageMissing(f"the image {image_hash} is not in {self._images}; bring it back or stop the run")
        return await self._started(image)

    async def _started(self, image: Image) -> Jail:
        under_way: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ends.add(under_way)
        try:
            async with self._starting:
                self._refuse_when_closing()
                return await self._started_in(image, self._slots.lease())
        except OSError as error:
            raise SandboxLost(f"a jail could not be made: {error}") from error
        finally:
            self._ends.discard(under_way)
            under_way.set_result(None)

    async def _started_in(self, image: Image, slot: int) -> Jail:
        try:
            jail = await Jail.start(self._command(image, slot), self.limits)
        except BaseException:
            self._slots.release(slot)
            raise
        self._jails.add(jail)
        jail.when_gone(lambda: self._gone(jail, slot))
        if self._closing:
            await jail.end()
        self._refuse_when_closing()
        return jail

    def _refuse_when_closing(self) -> None:
        if self._closing:
            raise SandboxLost("the worker is stopping")

    def _command(self, image: Image, slot: int) -> list[str]:
        """Return the command line of a jail; each that lives at the same time is another user outside."""
        known = (image.hash, slot)
        if known not in self._commands:
            profile = Profile(
                self._nsjail, image, limits=self.limits, outside_uid=outside_uid(slot), cgroups=self._cgroups
            )
            self._commands[known] = command(self._nsjail, profile.write(self._folder))
        return self._commands[known]

    def _gone(self, jail: Jail, slot: int) -> None:
        self._jails.discard(jail)
        self._slots.release(slot)

    def _end(self, jail: Jail) -> None:
        task = jail.abandon()
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)


def _held(jail: Jail) -> str:
    """Return the key of a paused jail that nobody has named yet."""
    return f"\0{jail.pid}"


def _next_frame(jail: Jail, start_frame: bytes, frame: bytes | None) -> bytes:
    if (frame is None) != (jail.rounds == 0):
        raise ValueError("a program that has not run yet takes no frame, and one that has takes one")
    return start_frame if frame is None else frame
