"""Child processes that die with their parent, and end together with all that they started."""

import asyncio
import os
import signal
import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

_LAUNCHER = Path(__file__).with_name("launcher.py")
_STDERR = 2
_POLL_S = 0.02
_KILLED_S = 5.0


def launched(
    command: Sequence[str], *, limits: Iterable[str] = (), report: int = _STDERR, kept: bool = False
) -> list[str]:
    """Return the command line of a process that becomes the command, and that the kernel kills when this one dies.

    It is tied to the thread that starts it, so start it from one that lives as long as this process. `limits` are
    written as `CPU=300`. Why it cannot become the command goes to the file `report`, which must be inherited and is
    closed when all is well. `kept`: the process stays above the command, ends as it does, and takes with it all that
    the command started, in whatever session; `end_group` must know.
    """
    facts = (str(report), str(os.getpid()), "kept" if kept else "alone", *limits)
    return [sys.executable, "-I", "-S", str(_LAUNCHER), *facts, "--", *command]


def signal_group(process: asyncio.subprocess.Process, sign: signal.Signals) -> None:
    """Signal a process that leads a group, and all that it started in it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, sign)


async def exit_of(process: asyncio.subprocess.Process) -> int:
    """Wait for the end of the process alone, and return its exit code."""
    # Process.wait() also waits for the pipes, which a grandchild may keep open.
    while process.returncode is None:  # noqa: ASYNC110 - asyncio offers no event for it
        await asyncio.sleep(_POLL_S)
    return process.returncode


async def end_group(
    process: asyncio.subprocess.Process,
    *,
    ask_s: float,
    quiet_s: float = 0.0,
    readers: "Collection[asyncio.Task[None]]" = (),
    drain_s: float = 1.0,
    kept: bool = False,
) -> bool:
    """Wait `quiet_s` for the end of a process, ask with SIGTERM, wait `ask_s`, then kill it and its group.

    Its pipes are closed and `readers` ended; they get `drain_s` to take in what was printed last. A process that keeps
    others is told to kill them. Return whether it was seen to end.
    """
    kill = signal.SIGHUP if kept else signal.SIGKILL
    ended = False
    try:
        for sign, timeout_s in ((None, quiet_s), (signal.SIGTERM, ask_s), (kill, _KILLED_S)):
            if sign is not None:
                signal_group(process, sign)
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await exit_of(process)
                ended = True
                break
    finally:
        signal_group(process, kill)
        try:
            if readers:
                await asyncio.wait(readers, timeout=drain_s)
        finally:
            transport = getattr(process, "_transport", None)  # a grandchild may hold the pipes open for ever
            if transport is not None:
                transport.close()
            for reader in readers:
                reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    return ended
