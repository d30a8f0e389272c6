"""Put the commands together, and turn errors into one line and an exit code."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from cyclopts import App, CycloptsError
from pydantic import ValidationError

from backstay.cli import (
    control,
    decide,
    definitions,
    dev,
    doctor,
    init,
    policy,
    reading,
    servers,
    show,
    store,
    tools,
)
from backstay.cli import run as runs
from backstay.cli.exit_codes import DETACHED, FAILED, USAGE, code_of
from backstay.cli.gateways import slack, web
from backstay.cli.plans import commands as plans
from backstay.errors import BackstayError
from backstay.shown import one_line
from backstay.version import version

_COMMANDS: dict[str, Callable[..., Any] | str] = {
    "init": init.init,
    "dev": dev.dev,
    "worker": dev.worker,
    "run": runs.run,
    "attach": runs.attach,
    # Loaded when it is needed: it brings what other commands do not use.
    "chat": "backstay.cli.chat.talk:chat",
    "list": show.list_runs,
    "show": show.show,
    "result": reading.result,
    "export": reading.export,
    "approve": decide.approve,
    "reject": decide.reject,
    "answer": decide.answer,
    "sign": decide.sign,
    "reveal": decide.reveal,
    "top-up": control.top_up,
    "undo": control.undo,
    "message": control.message,
    "pause": control.pause,
    "resume": control.resume,
    "cancel": control.cancel,
    "prune": store.prune,
    "doctor": doctor.doctor,
    "health": doctor.health,
    "trust": dev.trust,
    "slack": slack.slack,
}
_TOOLS = {
    "list": tools.list_tools,
    "search": tools.search,
    "show": tools.show,
    "refresh": tools.refresh,
    "docs": tools.docs,
    "diff": tools.diff,
    "accept": tools.accept,
}
_TOOLBOX = {"add": servers.add, "remove": servers.remove, "import": servers.take_from, "propose": servers.propose}
_DEFINITIONS = {"list": definitions.list_definitions, "show": definitions.show, "validate": definitions.validate}
_PLAN = {"show": plans.show, "diff": plans.diff, "export": plans.export}
_POLICY = {"list": policy.list_lines, "why": policy.why, "accept": policy.accept, "remove": policy.remove}


def build() -> App:
    """Return the command line."""
    app = App(
        name="backstay",
        help="Run tool-using agents that survive crashes, ask before they change anything, and can be undone.",
        version=version,
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
    )
    _add(app, _COMMANDS)
    app.command(
        _add(
            App(name="tools", help="List, search and document the tools that runs may call, and accept changed ones."),
            _TOOLS,
        )
    )
    app.command(
        _add(App(name="toolbox", help="Add servers to toolbox.json or remove them, and class their tools."), _TOOLBOX)
    )
    app.command(_add(App(name="policy", help="Explain rulings, and keep the decisions that are remembered."), _POLICY))
    app.command(_add(App(name="definitions", help="Show and check the plans that are kept in files."), _DEFINITIONS))
    app.command(_add(App(name="plan", help="Show the plans of a run, what they change, and who decided what."), _PLAN))
    maintain = {"new-epoch": store.new_epoch, "adopt-settings": store.adopt_settings}
    app.command(_add(App(name="store", help="Maintain the worker's store."), maintain))
    app.command(_add(App(name="web", help="Serve the page of approvals."), {"link": web.link}))
    app["web"].default(web.web)
    app.command(_add(App(name="image", help="Build the image that programs run in."), {"build": dev.build_image}))
    return app


def _add(app: App, commands: Mapping[str, Callable[..., Any] | str]) -> App:
    for name, command in commands.items():
        app.command(command, name=name)
    return app


def main() -> NoReturn:
    """Run one command and exit: 0 completed, 1 failed, 2 wrong usage, 3 and more for other ends of a run."""
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    # The Temporal client's own threads may still wait for an answer; an interpreter that ends under them aborts.
    os._exit(code)


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        code = asyncio.run(build().run_async(argv))
    except CycloptsError as error:
        return _fail(_usage(error), USAGE)
    except BackstayError as error:
        return _fail(str(error), code_of(error))
    except KeyboardInterrupt:
        return DETACHED
    except BrokenPipeError:
        return FAILED
    return code if isinstance(code, int) else 0


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
