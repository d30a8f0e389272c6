"""The command `worker`: become the worker, without loading what other commands need."""

import os
import sys
from collections.abc import Mapping
from typing import Annotated, Literal

from cyclopts import Parameter

from backstay.errors import SettingsInvalid
from backstay.rooms import house
from backstay.variables import process_environment


async def worker(
    *, role: Literal["all", "runs", "sandbox"] = "all", reload: Annotated[bool, Parameter(negative="")] = False
) -> int:
    """Run a worker until SIGTERM or Ctrl-C; activities that have started finish first.

    Parameters
    ----------
    role:
        runs: workflows, model and tools; sandbox: programs, in a process without secrets; all: both
    reload:
        when the toolbox, the policy or another file that it reads changes, start another worker, which takes over
    """
    # A safe path would hide the packages beside the script.
    variables = {name: value for name, value in process_environment().items() if name != "PYTHONSAFEPATH"}
    if reload and role == "sandbox":
        raise SettingsInvalid("--reload: the sandbox role reads no file that could change; leave it out")
    if not reload:
        command = [sys.executable, str(house() / "worker.py"), "--role", role]
        os.execve(sys.executable, command, variables)  # noqa: S606 - to become the worker is the purpose
    return await _reloading(role, variables)


async def _reloading(role: str, variables: Mapping[str, str]) -> int:
    """Keep a worker running, and another in its place when its files change, until a signal comes."""
    import asyncio
    from functools import partial

    from backstay.settings import Settings
    from gateways.terminal.local.keeping import REPLACED_S, stop_on_signal
    from gateways.terminal.local.parts import kept_worker, start_worker
    from gateways.terminal.terminal import Terminal

    settings = Settings.load()
    # A worker that nobody keeps writes there, too.
    shown = partial(print, file=sys.stderr, flush=True)
    start = partial(start_worker, settings.home, variables, role=role, heard=shown)
    part = kept_worker(Terminal(), settings, start, lambda _: None, stop_s=REPLACED_S)
    keeping = asyncio.create_task(part.run())
    stopping = asyncio.create_task(stop_on_signal().wait())
    try:
        await asyncio.wait({keeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if keeping.done():
            keeping.result()
    finally:
        stopping.cancel()
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
    return 0
