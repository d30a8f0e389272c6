"""One jailed interpreter: frames go in and out, what it prints is drained, and it always comes to an end.

A new one is brought to where a program stood by sending it what the program's journal holds.
"""

import asyncio
import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Self

from backstay.canonical import canonical
from backstay.errors import ProgramDiverged, SandboxLost
from backstay.tools.execution import JailUse
from sandbox.isolation.nsjail import confined_process
from sandbox.isolation.spawn import ChildProcess, spawn
from sandbox.limits import Limits
from sandbox.programs.crash import ProgramCrashed, cause_of_death, peak_mb, protocol_broken
from sandbox.programs.frames import READY, ProgramCall, ProgramEnd, Round, read_frame
from sandbox.programs.pipe import ControlPipe
from system.output import BoundedOutput

_MB_PER_PAGE = os.sysconf("SC_PAGE_SIZE") / (1 << 20)
_FACTOR = 3
_GRACE_S = 30.0
_AHEAD = 8
_Calls = tuple[ProgramCall, ...] | None


class JailedProcess:
    """Read the use of one jailed process; a process that is gone reads as no use."""

    def __init__(self, supervisor: int) -> None:
        """Find the process by the nsjail that confines it."""
        found = confined_process(supervisor)
        self._place = f"/proc/{found}" if found else None

    def cpu_s(self) -> float:
        """Return its processor time so far."""
        if self._place is None:
            return 0.0
        spent = _bytes_of(f"{self._place}/schedstat").split()
        return int(spent[0]) / 1e9 if spent else 0.0

    def peak_mb(self) -> float:
        """Return the most memory that it has taken so far."""
        status = b"" if self._place is None else _bytes_of(f"{self._place}/status")
        peak = status.partition(b"\nVmHWM:")[2].split(maxsplit=1)
        return round(int(peak[0]) / 1024, 1) if peak else 0.0

    def anonymous_mb(self) -> float:
        """Return the memory that is its alone."""
        if self._place is None:
            return 0.0
        pages = _bytes_of(f"{self._place}/statm").split()
        return (int(pages[1]) - int(pages[2])) * _MB_PER_PAGE if pages else 0.0


def _bytes_of(path: str) -> bytes:
    # It is read in every round of every program, so without the layers of an ordinary file.
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, 4096)
    except OSError:
        return b""
    finally:
        os.close(fd)


_CHUNK = 1 << 16
_READY_S = 20.0
_LOOK_S = 0.1
_TERM_S = 0.5
_KILL_S = 5.0


class Jail:
    """Hold one jailed process, from its ready frame to its reaping. It runs one program and dies."""

    def __init__(self, process: ChildProcess, limits: Limits) -> None:
        """Watch a process that has just been started; `start` does that and waits until it is ready."""
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._limits = limits
        self._born = time.monotonic()
        self._open = True
        self._lap_s = 0.0
        self._ready_s = self._peak_mb = 0.0
        self._looking: asyncio.TimerHandle | None = None
        self._used: resource.struct_rusage | None = None
        self._printed = BoundedOutput(limits.output_kept)
        self._cause: ProgramCrashed | None = None
        self._ending: asyncio.Task[None] | None = None
        self._jailed: JailedProcess | None = None
        self.rounds = 0
        """How many frames the program has been sent."""
        self.gone: asyncio.Future[None] = self._loop.create_future()
        """Done when the process has been reaped."""
        # Text printed before an answer was sent is in its pipe by the time the answer comes, and belongs to it.
        self._control = ControlPipe(
            process.control_in, process.control_out, limits, fail=self._fail, arrived=self._on_printed
        )
        self._loop.add_reader(process.printed, self._on_printed)
        self._loop.add_reader(process.pidfd, self._on_exit)

    @classmethod
    async def start(cls, command: list[str], limits: Limits) -> Self:
        """Start a jail and wait until its interpreter is ready.

        Raises SandboxLost when it does not get ready.
        """
        jail = cls(spawn(command), limits)
        try:
            jail._control.expect()
            jail._take_ready(await jail.receive(wall_s=_READY_S))
        except ProgramCrashed as crash:
            await jail.end()
            raise SandboxLost(f"a jail did not start: {crash.message}: {jail.output.strip()[-500:]}") from None
        except BaseException:
            # Whoever stops waiting must find it gone: nobody else knows of it.
            await jail.end()
            raise
        return jail

    async def exchange(self, frame: bytes, *, wall_s: float) -> bytes:
        """Send a frame and return the frame that answers it.

        Raises ProgramCrashed with what ended the jail when it does not answer.
        """
        self.send(frame)
        return await self.receive(wall_s=wall_s)

    def send(self, frame: bytes) -> None:
        """Send a frame whose answer will be asked for.

        Raises ProgramCrashed with what has ended the jail.
        """
        if self._cause is not None:
            raise self._cause
        self.rounds += 1
        self._control.send(frame)

    async def receive(self, *, wall_s: float) -> bytes:
        """Return the answer to the first frame that has none yet.

        Raises ProgramCrashed with what ended the jail when there is none in time.
        """
        self._looking = self._loop.call_later(_LOOK_S, self._look)
        try:
            return await self._control.receive(wall_s)
        finally:
            self._looking.cancel()

    @property
    def pid(self) -> int:
        """The process that confines the interpreter."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can still be sent a frame."""
        return self._cause is None

    @property
    def age_s(self) -> float:
        """Return how long ago it was started."""
        return time.monotonic() - self._born

    @property
    def output(self) -> str:
        """The output of the program so far, as far as it is kept."""
        return self._printed.kept.decode("utf-8", "replace")

    @property
    def output_dropped(self) -> int:
        """How many printed bytes are not kept."""
        return self._printed.dropped

    def cpu_s(self) -> float:
        """Return the processor time of the jailed interpreter so far."""
        if self._used is not None:
            return self._used.ru_utime + self._used.ru_stime
        return self._jailed.cpu_s() if self._jailed else 0.0

    def lap_s(self) -> float:
        """Return the processor time since the last lap; while a program is paused there is none."""
        before, self._lap_s = self._lap_s, self.cpu_s()
        return max(0.0, self._lap_s - before)

    def used(self) -> JailUse:
        """Return what the program has used; a replay does the same again, so that it counts once."""
        cpu_s = round(max(0.0, self.cpu_s() - self._ready_s), 3)
        return JailUse(cpu_s=cpu_s, memory_mb=self._see_memory() or None, output_bytes=self._printed.total)

    def _see_memory(self) -> float:
        """Return the most memory that was seen; a process that has ended can be asked no more."""
        ended = 0.0 if self._used is None else peak_mb(self._used)
        self._peak_mb = max(self._peak_mb, ended, self._jailed.peak_mb() if self._jailed else 0.0)
        return self._peak_mb

    def _look(self) -> None:
        self._see_memory()
        self._looking = self._loop.call_later(_LOOK_S, self._look)

    def anonymous_mb(self) -> float:
        """Return the memory that is the jailed interpreter's alone."""
        return self._jailed.anonymous_mb() if self._jailed else 0.0

    def when_gone(self, callback: Callable[[], None]) -> None:
        """Call back once, after the process has been reaped."""
        self.gone.add_done_callback(lambda _: callback())

    def abandon(self) -> asyncio.Task[None]:
        """Begin to end it; return what `end` waits for."""
        if self._ending is None:
            self._ending = self._loop.create_task(self._end())
            self._fail(ProgramCrashed("JailLost", "the jail was ended by its worker", lost=True))
        return self._ending

    async def end(self) -> None:
        """End the process, politely first, and return when it has been reaped and its pipes are closed."""
        await asyncio.shield(self.abandon())

    def _take_ready(self, frame: bytes) -> None:
        if frame != READY:
            raise protocol_broken(f"it began with {frame[:80]!r}")
        self._jailed = JailedProcess(self._process.pid)
        self.lap_s()
        self._ready_s = self._lap_s
        self._see_memory()

    async def _end(self) -> None:
        for sign, timeout_s in ((signal.SIGTERM, _TERM_S), (signal.SIGKILL, _KILL_S)):
            if self.gone.done():
                break
            signal.pidfd_send_signal(self._process.pidfd, sign)
            await asyncio.wait([self.gone], timeout=timeout_s)
        self._open = False
        self._control.close()
        self._loop.remove_reader(self._process.printed)
        os.close(self._process.printed)

    def _fail(self, cause: ProgramCrashed) -> None:
        """Accept nothing more from the jail, and end it; the first cause counts."""
        if self._cause is not None:
            return
        self._cause = cause
        self._control.refuse(cause)
        self.abandon()

    def _on_printed(self) -> None:
        while self._open and (data := _read(self._process.printed)) is not None:
            if not data:
                self._loop.remove_reader(self._process.printed)
                return
            self._printed.add(data)
            if self._printed.total > self._limits.output_bytes:
                self._loop.remove_reader(self._process.printed)
                most = f"more than {self._limits.output_bytes} bytes; print less"
                self._fail(ProgramCrashed("OutputLimit", f"output: the program printed {most}"))
                return

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._process.pidfd)
        try:
            _, status, used = os.wait4(self._process.pid, 0)
        except ChildProcessError:
            # Somebody in this process waits for whatever ends; how it ended is then not known.
            status, used = signal.SIGKILL, resource.getrusage(resource.RUSAGE_CHILDREN)
        os.close(self._process.pidfd)
        self._used = used
        self.gone.set_result(None)
        if self._open:
            self._control.read()
            self._on_printed()
        exit_code = os.waitstatus_to_exitcode(status)
        self._fail(cause_of_death(exit_code, used, age_s=self.age_s, limits=self._limits))


def _read(fd: int) -> bytes | None:
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return None


async def replay(
    jail: Jail,
    start_frame: bytes,
    rounds: Sequence[Round],
    *,
    tools: AbstractSet[str],
    limits: Limits,
) -> None:
    """Send the recorded frames and compare what the program asks for with what it asked for then.

    The last round may be the one in which the program ended; it must then end in the same bytes. Raises ProgramDiverged
    when the program does anything else than before, SandboxLost when the jail does not last until the end.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _FACTOR * sum(recorded.wall_s for recorded in rounds) + _GRACE_S
    frames = iter([start_frame, *(recorded.sent for recorded in rounds[1:])] if rounds else [])
    for number, recorded in enumerate(rounds):
        try:
            # The program finds the next frames in its pipe, so neither side waits for the other in every round.
            for frame in islice(frames, _AHEAD if number == 0 else 1):
                jail.send(frame)
            came = await jail.receive(wall_s=max(0.0, deadline - loop.time()))
        except ProgramCrashed as crash:
            raise SandboxLost(f"the jail was lost while round {number} was replayed: {crash.message}") from None
        # The same bytes ask for the same; only other bytes have to be understood.
        if came != recorded.came:
            _compare(rounds[: number + 1], came, tools, limits)


def _compare(rounds: Sequence[Round], came: bytes, tools: AbstractSet[str], limits: Limits) -> None:
    """Raise ProgramDiverged unless the frame asks for what the last of these rounds asked for."""
    number, first_call = len(rounds) - 1, 0
    try:
        for before in rounds[:-1]:
            first_call += len(_calls(before.came, first_call, tools, limits) or ())
        then = _calls(rounds[-1].came, first_call, tools, limits)
        now = _calls(came, first_call, tools, limits)
    except ProgramCrashed as crash:
        raise ProgramDiverged(f"round {number}: {crash.message}", call=first_call) from None
    _compare_calls(then, now, first_call, number)


def _compare_calls(then: _Calls, now: _Calls, first_call: int, number: int) -> None:
    if then is None:
        raise ProgramDiverged(f"round {number}: the program does not end as before")
    if now is None:
        raise ProgramDiverged(f"round {number}: the program ends where it called {then[0].tool}", call=first_call)
    for was, call in zip(then, now, strict=False):
        if was.tool != call.tool:
            raise ProgramDiverged(f"call {call.i}: the program calls {call.tool} instead of {was.tool}", call=call.i)
        if canonical(was.arguments) != canonical(call.arguments):
            raise ProgramDiverged(f"call {call.i}: the program calls {call.tool} with other arguments", call=call.i)
    if len(then) != len(now):
        raise ProgramDiverged(
            f"round {number}: the program makes {len(now)} calls instead of {len(then)}", call=first_call
        )


def _calls(frame: bytes, first_call: int, tools: AbstractSet[str], limits: Limits) -> _Calls:
    ended = read_frame(frame, tools=tools, first_call=first_call, limits=limits)
    return None if isinstance(ended, ProgramEnd) else ended
