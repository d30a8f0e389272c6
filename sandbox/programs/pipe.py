"""The two pipes to a jailed interpreter: frames in, and exactly as many frames out."""

import asyncio
import os
from collections import deque
from collections.abc import Callable

from sandbox.limits import Limits
from sandbox.programs.crash import ProgramCrashed, frame_reached, protocol_broken, wall_reached
from system.frames import PREFIX, announced_size, framed

_CHUNK = 1 << 16


class ControlPipe:
    """Send frames without blocking and receive their answers, one for each; the first thing that is wrong ends it."""

    def __init__(
        self,
        writing: int,
        reading: int,
        limits: Limits,
        *,
        fail: Callable[[ProgramCrashed], None],
        arrived: Callable[[], None],
    ) -> None:
        """Use these files. `fail` is told what is wrong; `arrived` is called before each frame that is handed out."""
        self._loop = asyncio.get_running_loop()
        self._writing = writing
        self._reading = reading
        self._limits = limits
        self._fail = fail
        self._arrived = arrived
        self._unsent: deque[memoryview] = deque()
        self._blocked = False
        self._came = bytearray()
        self._frames: deque[bytes] = deque()
        self._due = 0
        self._answer: asyncio.Future[None] | None = None
        self._cause: ProgramCrashed | None = None
        self._loop.add_reader(reading, self.read)

    def send(self, frame: bytes) -> None:
        """Send a frame; one answer more is due."""
        self._due += 1
        self._unsent.append(memoryview(framed(frame)))
        if not self._blocked:
            self._write()

    def expect(self) -> None:
        """Accept one frame that was not requested."""
        self._due += 1

    async def receive(self, wall_s: float) -> bytes:
        """Return the next frame.

        Raises ProgramCrashed with what is wrong when there will be none, or when it takes too long.
        """
        if not self._frames:
            if self._cause is not None:
                raise self._cause
            self._answer = self._loop.create_future()
            alarm = self._loop.call_later(wall_s, self._on_alarm, wall_s)
            try:
                await self._answer
            finally:
                alarm.cancel()
                self._answer = None
        return self._frames.popleft()

    def refuse(self, cause: ProgramCrashed) -> None:
        """Close the pipe; a caller that waits gets the reason as an error."""
        self._cause = cause
        # Bytes that are not read stay in the pipe and cost the jail its own memory; they are not ours to gather.
        self._loop.remove_reader(self._reading)
        self._came.clear()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(cause)

    def read(self) -> None:
        """Accept received bytes."""
        if self._cause is not None:
            return
        try:
            data = os.read(self._reading, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._reading)
            return
        self._came += data
        while self._cause is None and self._came:
            if self._due == 0:
                self._fail(protocol_broken("it spoke out of turn"))
            elif not self._take_frame():
                return

    def close(self) -> None:
        """Close both files."""
        self._loop.remove_reader(self._reading)
        self._loop.remove_writer(self._writing)
        os.close(self._reading)
        os.close(self._writing)

    def _take_frame(self) -> bool:
        """Hand out one frame if it is whole; an event after the last one that is due is refused before that."""
        size = announced_size(self._came) if len(self._came) >= PREFIX else 0
        if size > self._limits.frame_bytes:
            self._fail(frame_reached(size, self._limits))
            return False
        if len(self._came) < max(PREFIX, size + PREFIX):
            return False
        if self._due == 1 and len(self._came) > size + PREFIX:
            self._fail(protocol_broken("it sent more than one frame"))
            return False
        self._arrived()
        self._frames.append(bytes(self._came[PREFIX : size + PREFIX]))
        del self._came[: size + PREFIX]
        self._due -= 1
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)
        return True

    def _on_alarm(self, wall_s: float) -> None:
        self._fail(wall_reached(wall_s))

    def _write(self) -> None:
        self._blocked = False
        while self._unsent:
            try:
                written = os.write(self._writing, self._unsent[0])
            except BlockingIOError:
                self._blocked = True
                self._loop.add_writer(self._writing, self._on_writable)
                return
            except BrokenPipeError:
                # It is dying, and its exit will say of what.
                self._unsent.clear()
                return
            self._unsent[0] = self._unsent[0][written:]
            if not self._unsent[0]:
                self._unsent.popleft()

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._writing)
        self._write()
