"""What every process that is started here has in common: a clean environment and a command that exists."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from backstay.errors import ToolUnavailable

_INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")


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
