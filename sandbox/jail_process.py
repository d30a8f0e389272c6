"""One jailed interpreter: frames go in and out, what it prints is drained, and it always comes to an end."""

import asyncio
import os
import resource
import signal
import time
from collections.abc import Callable
from typing import Self

from backstay.errors import SandboxLost
from sandbox.death import cause_of_death
from sandbox.frames import READY
from sandbox.jailed import Jailed
from sandbox.limits import Limits
from sandbox.printed import Printed
from sandbox.program_crashed import ProgramCrashed, frame_reached, output_reached, protocol_broken, wall_reached
from sandbox.spawn import Spawned, spawn

_PREFIX = 4
_CHUNK = 1 << 16
_READY_S = 20.0
_TERM_S = 0.5
_KILL_S = 5.0


class Jail:
    """Hold one jailed process, from its ready frame to its reaping. It runs one program and dies."""

    def __init__(self, process: Spawned, limits: Limits) -> None:
        """Watch a process that has just been started; `start` does that and waits until it is ready."""
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._limits = limits
        self._born = time.monotonic()
        self._came = bytearray()
        self._unsent = b""
        self._open = True
        self._lap_s = 0.0
        self._used_s: float | None = None
        self._printed = Printed(limits.output_kept)
        self._answer: asyncio.Future[bytes] | None = None
        self._cause: ProgramCrashed | None = None
        self._ending: asyncio.Task[None] | None = None
        self._jailed: Jailed | None = None
        self.rounds = 0
        """How many frames the program has been sent."""
        self.gone: asyncio.Future[None] = self._loop.create_future()
        """Done when the process has been reaped."""
        self._loop.add_reader(process.control_out, self._on_control)
        self._loop.add_reader(process.printed, self._on_printed)
        self._loop.add_reader(process.pidfd, self._on_exit)

    @classmethod
    async def start(cls, command: list[str], limits: Limits) -> Self:
        """Start a jail and wait until its interpreter is ready.

        Raises SandboxLost when it does not get ready.
        """
        jail = cls(spawn(command), limits)
        try:
            jail._take_ready(await jail._await_frame(_READY_S))
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
        if self._cause is not None:
            raise self._cause
        self.rounds += 1
        self._unsent = len(frame).to_bytes(_PREFIX, "big") + frame
        self._write()
        return await self._await_frame(wall_s)

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
        """What the program has printed so far, as far as it is kept."""
        return self._printed.text

    @property
    def output_dropped(self) -> int:
        """How many printed bytes are not kept."""
        return self._printed.dropped

    def cpu_s(self) -> float:
        """Return the processor time of the jailed interpreter so far."""
        if self._used_s is not None:
            return self._used_s
        return self._jailed.cpu_s() if self._jailed else 0.0

    def lap_s(self) -> float:
        """Return the processor time since the last lap; while a program is paused there is none."""
        before, self._lap_s = self._lap_s, self.cpu_s()
        return max(0.0, self._lap_s - before)

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
        self._jailed = Jailed(self._process.pid)
        self.lap_s()

    async def _end(self) -> None:
        for sign, patience_s in ((signal.SIGTERM, _TERM_S), (signal.SIGKILL, _KILL_S)):
            if self.gone.done():
                break
            signal.pidfd_send_signal(self._process.pidfd, sign)
            await asyncio.wait([self.gone], timeout=patience_s)
        self._open = False
        for fd in (self._process.control_out, self._process.printed):
            self._loop.remove_reader(fd)
        self._loop.remove_writer(self._process.control_in)
        for fd in (self._process.control_in, self._process.control_out, self._process.printed):
            os.close(fd)

    async def _await_frame(self, wall_s: float) -> bytes:
        if self._cause is not None:
            raise self._cause
        self._answer = self._loop.create_future()
        alarm = self._loop.call_later(wall_s, self._on_alarm, wall_s)
        try:
            return await self._answer
        finally:
            alarm.cancel()
            self._answer = None

    def _fail(self, cause: ProgramCrashed) -> None:
        """Accept nothing more from the jail, and end it; the first cause counts."""
        if self._cause is not None:
            return
        self._cause = cause
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(cause)
        self.abandon()

    def _on_alarm(self, wall_s: float) -> None:
        self._fail(wall_reached(wall_s))

    def _write(self) -> None:
        try:
            written = os.write(self._process.control_in, self._unsent)
        except BlockingIOError:
            written = 0
        except BrokenPipeError:
            # It is dying, and its exit will say of what.
            written = len(self._unsent)
        self._unsent = self._unsent[written:]
        if self._unsent:
            self._loop.add_writer(self._process.control_in, self._on_writable)

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._process.control_in)
        self._write()

    def _on_control(self) -> None:
        data = _read(self._process.control_out)
        if data is None:
            return
        if not data:
            self._loop.remove_reader(self._process.control_out)
        elif self._answer is None or self._answer.done():
            self._fail(protocol_broken("it spoke out of turn"))
        else:
            self._came += data
            self._take_frame(self._answer)

    def _take_frame(self, answer: asyncio.Future[bytes]) -> None:
        if len(self._came) < _PREFIX:
            return
        size = int.from_bytes(self._came[:_PREFIX], "big")
        if size > self._limits.frame_bytes:
            self._fail(frame_reached(size, self._limits))
        elif len(self._came) > size + _PREFIX:
            self._fail(protocol_broken("it sent more than one frame"))
        elif len(self._came) == size + _PREFIX:
            # What was printed before the frame was sent is in the pipe by now, and belongs to this round.
            self._on_printed()
            if not answer.done():
                answer.set_result(bytes(self._came[_PREFIX:]))
            self._came.clear()

    def _on_printed(self) -> None:
        while self._open and (data := _read(self._process.printed)) is not None:
            if not data:
                self._loop.remove_reader(self._process.printed)
                return
            self._printed.add(data)
            if self._printed.total > self._limits.output_bytes:
                self._loop.remove_reader(self._process.printed)
                self._fail(output_reached(self._limits))
                return

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._process.pidfd)
        try:
            _, status, used = os.wait4(self._process.pid, 0)
        except ChildProcessError:
            # Somebody in this process waits for whatever ends; how it ended is then not known.
            status, used = signal.SIGKILL, resource.getrusage(resource.RUSAGE_CHILDREN)
        os.close(self._process.pidfd)
        self._used_s = used.ru_utime + used.ru_stime
        self.gone.set_result(None)
        if self._open:
            self._on_control()
            self._on_printed()
        exit_code = os.waitstatus_to_exitcode(status)
        self._fail(cause_of_death(exit_code, used, age_s=self.age_s, limits=self._limits))


def _read(fd: int) -> bytes | None:
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return None
