"""Put the commands together, and turn errors into one line and an exit code."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
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
    policy_check,
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

_COMMANDS = (
    *(dev.dev, dev.trust, dev.worker, doctor.doctor, doctor.health, init.init, slack.slack, store.prune),
    *(runs.run, runs.attach, show.list_runs, show.show, reading.result, reading.export),
    *(decide.approve, decide.reject, decide.answer, decide.sign, decide.reveal),
    *(control.top_up, control.undo, control.message, control.pause, control.resume, control.cancel),
    # Loaded when it is needed: it brings what other commands do not use.
    "backstay.cli.chat.talk:chat",
)
_GROUPS: dict[str, tuple[str, tuple[Callable[..., Any], ...]]] = {
    "tools": (
        "List, search and document the tools that runs may call, and accept changed ones.",
        (tools.list_tools, tools.search, tools.show, tools.refresh, tools.docs, tools.diff, tools.accept),
    ),
    "toolbox": (
        "Add servers to toolbox.json or remove them, and class their tools.",
        (servers.add, servers.remove, servers.take_from, servers.propose),
    ),
    "policy": (
        "Check the policy, explain rulings, and keep the decisions that are remembered.",
        (policy_check.check, policy.list_lines, policy.why, policy.accept, policy.remove),
    ),
    "definitions": (
        "Show and check the plans that are kept in files.",
        (definitions.list_definitions, definitions.show, definitions.validate),
    ),
    "plan": (
        "Show the plans of a run, what they change, and who decided what.",
        (plans.show, plans.diff, plans.export),
    ),
    "store": ("Maintain the worker's store.", (store.new_epoch, store.adopt_settings)),
    "web": ("Serve the page of approvals.", (web.link,)),
    "image": ("Build the image that programs run in.", (dev.build_image,)),
}
# What Python or another function of the module already calls something else; all others go by their own names.
_NAMED: dict[Callable[..., Any] | str, str] = {
    **dict.fromkeys((show.list_runs, tools.list_tools, definitions.list_definitions, policy.list_lines), "list"),
    servers.take_from: "import",
    dev.build_image: "build",
}


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
    for name, (about, commands) in _GROUPS.items():
        app.command(_add(App(name=name, help=about), commands))
    app["web"].default(web.web)
    return app


def _add(app: App, commands: Iterable[Callable[..., Any] | str]) -> App:
    for command in commands:
        app.command(command, name=_NAMED.get(command))
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
