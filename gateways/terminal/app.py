"""Put the commands together, and turn errors into one line and an exit code."""

import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from typing import NoReturn

from cyclopts import App, CycloptsError
from pydantic import ValidationError

from backstay.data_files import data_beside
from backstay.errors import BackstayError
from backstay.shown import file_line, one_line
from backstay.version import version

TABLE = data_beside(__file__)


def build(argv: Sequence[str] = ()) -> App:
    """Return the command line for these words; the module of a command is loaded when it is called."""
    app = App(
        name="backstay",
        help="Run tool-using agents that survive crashes, ask before they change anything, and can be undone.",
        version=version,
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
    )
    named = [word for word in argv if not word.startswith("-")]
    _add(app, TABLE["commands"], named[:1])
    for name, group in TABLE["groups"].items():
        commands = App(name=name, help=group["about"])
        _add(commands, group["commands"], named[1:2])
        app.command(commands)
    return app


def _add(app: App, commands: Mapping[str, tuple[str, str]], named: Sequence[str]) -> None:
    for name, (place, about) in commands.items():
        # Help given here for the command that is called would replace its docstring.
        app.command(f"gateways.terminal.{place}", name=name, help=None if name in named else about)


def main() -> NoReturn:
    """Run one command and exit: 0 completed, 1 failed, 2 wrong usage, 3 and more for other ends of a run."""
    for stream in (sys.stdout, sys.stderr):
        # Models and people write any character; the code of one that the locale lacks is written in its place.
        with contextlib.suppress(OSError, ValueError):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    _forget_typed()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    # The Temporal client's own threads may still wait for an answer; an interpreter that ends under them aborts.
    os._exit(code)


def _forget_typed() -> None:
    """Leave nothing of what was typed for a question to the shell; only a command that has loaded it can have asked."""
    if (loaded := sys.modules.get("gateways.terminal.terminal")) is not None:
        loaded.leave()


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        app = build(argv)
        # This loads the command, the last that is much. `backstay.__main__` has put off collections until then.
        app.parse_commands(argv)
        gc.freeze()
        gc.enable()
        code = asyncio.run(app.run_async(argv))
    except (CycloptsError, BackstayError, KeyboardInterrupt, BrokenPipeError) as error:
        return _ended_by(error)
    except OSError as error:
        from gateways.terminal.exit_codes import USAGE

        if said := file_line(error):
            return _fail(said, USAGE)
        raise
    return code if isinstance(code, int) else 0


def _ended_by(error: BaseException) -> int:
    """Say what is wrong in one line; return the exit code."""
    from gateways.terminal.exit_codes import DETACHED, FAILED, USAGE, code_of

    match error:
        case CycloptsError():
            return _fail(_usage(error), USAGE)
        case BackstayError():
            return _fail(str(error), code_of(error))
        case KeyboardInterrupt():
            return DETACHED
        case _:
            return FAILED


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"backstay: {one_line(message, 2000)}\n")
    return code


def _usage(error: CycloptsError) -> str:
    """Name the flag, the value and what would be right."""
    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        return str(error)
    name = getattr(getattr(error, "argument", None), "name", "") or ""
    return "; ".join(
        f"{_flag(name, fault['loc'])}: {fault['msg']} (value {str(fault['input'])[:80]!r})" for fault in cause.errors()
    )


def _flag(name: str, place: tuple[int | str, ...]) -> str:
    inner = ".".join(str(part).replace("_", "-") for part in place)
    return f"--{inner}" if name in {"", "*"} else f"{name}.{inner}"
