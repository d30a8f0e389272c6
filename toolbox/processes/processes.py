"""What every process has in common that is started here: a clean environment, a command that exists, a certain end."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from backstay.errors import ToolUnavailable

_INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
_KILLED_S = 1.0


def clean_environment(environment: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the harmless part of an environment, and over it what the operator gives this process."""
    return {name: environment[name] for name in _INHERITED if name in environment} | dict(own)


def find_command(command: str, *, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the whole path of an executable; `python` is the interpreter that runs this.

    Raises ToolUnavailable naming what is missing.
    """
    if command == "python":
        return sys.executable
    named = str(folder / command) if os.sep in command else command
    found = shutil.which(named, path=environment.get("PATH", os.defpath))
    if found is not None:
        return found
    if os.sep in command and Path(named).is_file():
        raise ToolUnavailable(f"the command {command!r} may not be executed; allow it with chmod +x")
    raise ToolUnavailable(f"the command {command!r} was not found; install it or correct `command`")


def signal_group(process: asyncio.subprocess.Process, sign: signal.Signals) -> None:
    """Signal a process that leads a group, and all that it started in it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, sign)


async def exit_of(process: asyncio.subprocess.Process) -> int:
    """Wait for the end of the process alone, and return its exit code."""
    # Process.wait() also waits for the pipes, which a grandchild may keep open.
    while process.returncode is None:  # noqa: ASYNC110 - asyncio offers no event for it
        await asyncio.sleep(0.02)
    return process.returncode


async def end_group(process: asyncio.subprocess.Process, *, ask_s: float, quiet_s: float = 0.0) -> None:
    """Wait for its own end, ask with SIGTERM, kill: nothing in its group outlives this."""
    try:
        for sign, patience in ((None, quiet_s), (signal.SIGTERM, ask_s), (signal.SIGKILL, _KILLED_S)):
            if sign is not None:
                signal_group(process, sign)
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await exit_of(process)
                break
    finally:
        signal_group(process, signal.SIGKILL)
        transport = getattr(process, "_transport", None)  # a grandchild may hold the pipes open for ever
        if transport is not None:
            transport.close()
