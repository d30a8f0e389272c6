"""A child process that says when it is ready: in a session of its own, with its output in a file."""

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from system.children import end_group, launched, signal_group

_LAST_LINES = 8


class Child:
    """Start a command, wait until it says that it is ready, and end it in bounded time."""

    def __init__(
        self,
        name: str,
        process: asyncio.subprocess.Process,
        log: Path | None,
        ready: str | None,
        heard: Callable[[str], None] | None,
    ) -> None:
        """Use `Child.start` instead."""
        self.name = name
        self.process = process
        self.log = log
        self.last: deque[str] = deque(maxlen=_LAST_LINES)
        self.ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._mark = ready
        self._heard = heard
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log: Path | None,
        ready: str | None = None,
        folder: Path | None = None,
        umask: int = -1,
        heard: Callable[[str], None] | None = None,
    ) -> "Child":
        """Start a command; `ready` is a string that its output holds once it is. Its log is for this user only.

        `heard` gets every line of its output; without a log, nothing else keeps it.
        """
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
        process = await asyncio.create_subprocess_exec(
            *launched(command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
            umask=umask,
        )
        return cls(name, process, log, ready, heard)

    async def is_ready(self, seconds: float) -> str | None:
        """Return the line that says so, or None when the process ended or took too long."""
        await asyncio.wait({self.ready, self._reading}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return self.ready.result() if self.ready.done() else None

    async def ended(self) -> int:
        """Wait for the end and return the exit code."""
        await asyncio.wait({self._reading})
        return await self.process.wait()

    async def stop(self, seconds: float) -> None:
        """Ask it to end, and end it when it does not in time; processes that it started in its session go with it."""
        await end_group(self.process, ask_s=seconds, readers=(self._reading,))

    def kill(self) -> None:
        """End it at once, together with its session."""
        signal_group(self.process, signal.SIGKILL)

    async def _read(self) -> None:
        assert self.process.stdout is not None  # noqa: S101 - opened with a pipe
        with os.fdopen(_private(self.log), "ab") if self.log is not None else nullcontext() as file:
            while line := await _line(self.process.stdout):
                if file is not None:
                    file.write(line)
                    file.flush()
                text = line.decode("utf-8", "replace").rstrip()
                self.last.append(text)
                if self._heard is not None:
                    self._heard(text)
                if self._mark is not None and self._mark in text and not self.ready.done():
                    self.ready.set_result(text)
        await self.process.wait()


def _private(path: Path) -> int:
    """Open a file that only this user may read, also one that others could read until now."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


async def _line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readline()
    except ValueError:
        return b"(an overlong line is left out)\n"
