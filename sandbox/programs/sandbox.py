"""Run programs round by round: in a jail that is ready, in the paused one, or in a new one after a replay."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal, Self

from backstay.errors import ImageMissing, SandboxLost
from backstay.tools.execution import JailUse
from sandbox.images.image import Image, ImageKind, build_image, find_image
from sandbox.isolation.cgroups import Cgroups, find_cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import JailProfile, outside_uid
from sandbox.isolation.self_test import SelfTestResult, run_self_test
from sandbox.isolation.spawn import allow_files
from sandbox.limits import Limits
from sandbox.programs.crash import ProgramCrashed, rounds_reached
from sandbox.programs.frames import ProgramCall, ProgramEnd, Round, read_frame
from sandbox.programs.jail import Jail, replay
from sandbox.programs.pool import JailPool, PausedJails

_STARTS_AT_ONCE = 2
_FILES_PER_JAIL = 4
_OTHERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOutcome:
    """Describe how a round ended: the program waits for calls, has finished with a result, or has crashed."""

    kind: Literal["waiting", "finished", "crashed"]
    round: Round
    """What has just been exchanged."""
    calls: tuple[ProgramCall, ...] = ()
    """One batch, numbered consecutively; empty unless it waits."""
    result: Any = None
    error: dict[str, str] | None = None
    """`type` and `message`, one line each."""
    output: str = ""
    """What the program has printed so far, as far as it is kept."""
    output_dropped: int = 0
    """How many bytes of what it printed are not kept."""
    replayed: int = 0
    """How many rounds had to be replayed first."""
    used: JailUse | None = None
    """What the whole program used; None while it waits."""
    jail: Jail | None = None
    """The paused jail of a program that waits; hand it back with `keep` or `discard`."""


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

        The given number of jails are ready, none older than `oldest_s`; a number of paused ones are kept, of at most
        `kept_mb` of memory together, each for at most `idle_s`. `folder` takes configuration files.
        """
        self.limits = limits or Limits()
        self._nsjail = nsjail
        self._image = image
        self._built: dict[str, str] = {}
        self._images = images
        self._folder = folder
        self._cgroups = cgroups or Cgroups()
        self._most = ready + kept
        self._slots: set[int] = set()
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

    async def image_named(self, kind: ImageKind | Literal[""]) -> str:
        """Return the hash of the image of a kind; empty is that in which new programs begin. Raises ImageMissing."""
        if kind in ("", self._image.kind):
            return self._image.hash
        if kind not in self._built:
            self._built[kind] = (await asyncio.to_thread(build_image, kind, self._images)).hash
        return self._built[kind]

    @property
    def ready(self) -> int:
        """Return how many jails are ready."""
        return len(self._pool)

    @property
    def kept(self) -> int:
        """Return how many paused programs are kept."""
        return len(self._paused)

    async def __aenter__(self) -> Self:
        """Begin to make jails ready."""
        allow_files(_FILES_PER_JAIL * (self._most + _OTHERS))
        self._pool.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End every jail and return when none is left; a round that is under way ends as SandboxLost."""
        self._closing = True
        await self._pool.close()
        self._paused.clear()
        for jail in list(self._jails):
            self._end(jail)
        while self._ends:
            await asyncio.wait(self._ends)

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
        until: float | None = None,
    ) -> RoundOutcome:
        """Run one more round of a program, until it waits for calls or ends.

        `frame` holds the answers to its last calls, None when it has not run yet. A paused jail under `key` goes on;
        without one, `rounds`, all that happened before, are replayed in a new jail. Hand an outcome that waits to
        `keep` or `discard`. It ends at `until`, by the clock of the event loop, where that comes before its usual time.

        Raises SandboxLost when the jail is taken away, ProgramDiverged when the replay leads elsewhere, and
        ImageMissing.
        """
        jail = self._paused.take(key) if key is not None else None
        replayed = 0
        try:
            if jail is None:
                jail = await self._new(image_hash)
                before = await rounds()
                await replay(jail, start_frame, before, tools=tools, limits=self.limits)
                replayed = len(before)
                jail.lap_s()
            sent = _next_frame(jail, start_frame, frame)
            return await self._round(jail, sent, tools, first_call=first_call, replayed=replayed, until=until)
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
    ) -> None:
        """Replay a journal in a new jail and forget the jail; nothing is raised when it leads to the same place.

        The last round may be the one in which the program ended.

        Raises ProgramDiverged when it leads elsewhere, SandboxLost and ImageMissing when that could not be found out.
        """
        jail = await self._new(image_hash)
        try:
            await replay(jail, start_frame, rounds, tools=tools, limits=self.limits)
        finally:
            self._end(jail)

    def keep(self, key: str, outcome: RoundOutcome) -> None:
        """Keep the paused jail of a program that waits, for `advance` with the same key; a jail with that key goes."""
        if outcome.jail is not None:
            self._paused.rename(_held(outcome.jail), key)

    def discard(self, outcome: RoundOutcome) -> None:
        """End the paused jail of a program that waits."""
        if outcome.jail is not None:
            self._paused.discard(outcome.jail)

    async def forget(self, prefix: str) -> int:
        """End every kept jail whose key begins so; return how many there were."""
        return self._paused.forget(prefix)

    async def _round(
        self, jail: Jail, sent: bytes, tools: AbstractSet[str], *, first_call: int, replayed: int, until: float | None
    ) -> RoundOutcome:
        """Send one new frame and return what came of it."""
        first, began, came = jail.rounds == 0, time.perf_counter(), b""
        kind, calls, done = "crashed", (), ProgramEnd()
        try:
            came = await jail.exchange(sent, wall_s=self._left_s(until))
            told = read_frame(came, tools=tools, first_call=first_call, limits=self.limits)
            if isinstance(told, ProgramEnd):
                kind, done = "crashed" if told.error else "finished", told
            elif jail.rounds > self.limits.rounds:
                raise rounds_reached(self.limits)
            else:
                kind, calls = "waiting", told
        except ProgramCrashed as crash:
            if crash.lost or self._closing:
                raise SandboxLost(f"the jail was lost: {crash.message}") from None
            # A call that is refused is not an entry of a journal, and may not be text at all.
            came, done = b"", ProgramEnd(error=crash.plain())
        wall_s = time.perf_counter() - began
        took = Round(sent=b"" if first else sent, came=came, cpu_s=jail.lap_s(), wall_s=wall_s)
        used = None if kind == "waiting" else jail.used()
        if kind == "waiting":
            # The caller may fail before it keeps or discards the jail, so it is among the paused ones from the start.
            self._paused.put(_held(jail), jail)
        else:
            self._end(jail)
        return RoundOutcome(
            kind=kind,
            round=took,
            calls=calls,
            result=done.result,
            error=done.error,
            output=jail.output,
            output_dropped=jail.output_dropped,
            replayed=replayed,
            used=used,
            jail=jail if kind == "waiting" else None,
        )

    def _left_s(self, until: float | None) -> float:
        if until is None:
            return self.limits.wall_s
        return max(0.0, min(until - asyncio.get_running_loop().time(), self.limits.wall_s))

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
                slot = next(number for number in count() if number not in self._slots)
                self._slots.add(slot)
                return await self._started_in(image, slot)
        except OSError as error:
            raise SandboxLost(f"a jail could not be made: {error}") from error
        finally:
            self._ends.discard(under_way)
            under_way.set_result(None)

    async def _started_in(self, image: Image, slot: int) -> Jail:
        try:
            jail = await Jail.start(self._command(image, slot), self.limits)
        except BaseException:
            self._slots.discard(slot)
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
            profile = JailProfile(
                self._nsjail, image, limits=self.limits, outside_uid=outside_uid(slot), cgroups=self._cgroups
            )
            self._commands[known] = profile.start(self._folder)
        return self._commands[known]

    def _gone(self, jail: Jail, slot: int) -> None:
        self._jails.discard(jail)
        self._slots.discard(slot)

    def _end(self, jail: Jail) -> None:
        task = jail.abandon()
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)


@dataclass(frozen=True)
class ProvenJails:
    """Hold what jails of a sandbox are made of, once every property of such a jail is proven here."""

    home: Path
    nsjail: Nsjail
    image: Image
    cgroups: Cgroups
    limits: Limits | None

    def open(self, ready: int) -> Sandbox:
        """Return a sandbox with the given number of jails kept ready, to be entered."""
        return Sandbox(
            nsjail=self.nsjail,
            image=self.image,
            images=self.home / "images",
            folder=self.home / "jails",
            cgroups=self.cgroups,
            limits=self.limits,
            ready=ready,
        )


async def prove(*, nsjail: Path | None, home: Path, image: ImageKind, limits: Limits | None = None) -> ProvenJails:
    """Prove every property of the jails of a sandbox.

    Raises IsolationUnavailable where one is missing, ImageMissing when no image can be built.
    """
    home, found, built, cgroups = await asyncio.to_thread(_parts, nsjail, home, image)
    (await run_self_test(found, built, home / "jails", limits=limits, cgroups=cgroups)).require_isolation()
    return ProvenJails(home, found, built, cgroups, limits)


@asynccontextmanager
async def open_sandbox(
    *, nsjail: Path | None, home: Path, image: ImageKind, ready: int = 2, limits: Limits | None = None
) -> AsyncGenerator[Sandbox]:
    """Open a sandbox with the given number of jails kept ready, and end every jail at the end; raises as `prove`."""
    proven = await prove(nsjail=nsjail, home=home, image=image, limits=limits)
    async with proven.open(ready) as sandbox:
        yield sandbox


async def examine(*, nsjail: Path | None, home: Path, image: ImageKind) -> SelfTestResult:
    """Return what is proven of jails here. Raises as `open_sandbox` where not even one can be made."""
    home, found, built, cgroups = await asyncio.to_thread(_parts, nsjail, home, image)
    return await run_self_test(found, built, home / "jails", cgroups=cgroups)


def _parts(nsjail: Path | None, home: Path, image: ImageKind) -> tuple[Path, Nsjail, Image, Cgroups]:
    home, found = home.absolute(), Nsjail.find(None if nsjail is None else str(nsjail))
    return home, found, build_image(image, home / "images"), find_cgroups()


def _held(jail: Jail) -> str:
    """Return the key of a paused jail that has no name yet."""
    return f"\0{jail.pid}"


def _next_frame(jail: Jail, start_frame: bytes, frame: bytes | None) -> bytes:
    if (frame is None) != (jail.rounds == 0):
        raise ValueError("a program that has not run yet takes no frame, and one that has takes one")
    return start_frame if frame is None else frame
