"""Put the commands together, and turn errors into one line and an exit code."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from cyclopts import App, CycloptsError
from pydantic import ValidationError

from backstay.cli import control, decide, dev, doctor, show, store, tool_files, tools
from backstay.cli import run as runs
from backstay.cli.codes import DETACHED, FAILED, USAGE, code_of
from backstay.errors import BackstayError
from backstay.shown import one_line
from backstay.version import version

_COMMANDS = {
    "dev": dev.dev,
    "worker": dev.worker,
    "run": runs.run,
    "attach": runs.attach,
    "list": show.list_runs,
    "show": show.show,
    "approve": decide.approve,
    "reject": decide.reject,
    "answer": decide.answer,
    "top-up": control.top_up,
    "undo": control.undo,
    "pause": control.pause,
    "resume": control.resume,
    "cancel": control.cancel,
    "prune": store.prune,
    "doctor": doctor.doctor,
}


def build() -> App:
    """Return the command line."""
    app = App(
        name="backstay",
        help="Agents that hold fast, ask first, and can be taken back.",
        version=version,
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
    )
    for name, command in _COMMANDS.items():
        app.command(command, name=name)
    group = App(name="tools", help="Look at the tools that runs may call.")
    group.command(tools.list_tools, name="list")
    group.command(tools.search, name="search")
    group.command(tools.show, name="show")
    group.command(tool_files.refresh, name="refresh")
    group.command(tool_files.docs, name="docs")
    app.command(group)
    group = App(name="store", help="Look after what the worker remembers.")
    group.command(store.new_epoch, name="new-epoch")
    app.command(group)
    group = App(name="image", help="Build what programs run in.")
    group.command(dev.build_image, name="build")
    app.command(group)
    return app


def main() -> NoReturn:
    """Run one command and leave with its exit code: 0 completed, 1 failed, 2 usage, 3 and more as a run ended."""
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    # The Temporal client's own threads may still wait for an answer; an interpreter that ends under them aborts.
    os._exit(code)


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        code = asyncio.run(_run(argv))
    except CycloptsError as error:
        return _fail(_usage(error), USAGE)
    except BackstayError as error:
        return _fail(str(error), code_of(error))
    except KeyboardInterrupt:
        return DETACHED
    except BrokenPipeError:
        return FAILED
    return code


async def _run(argv: Sequence[str]) -> int:
    code = await build().run_async(argv)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"backstay: {one_line(message, 2000)[0]}\n")
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
