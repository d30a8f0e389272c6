"""The commands `dev`, `worker` and `image build`: run the parts on this machine."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from backstay.cli.child import Child
from backstay.cli.embedded import Embedded, environment_for, start_temporal
from backstay.cli.ports import require_free
from backstay.cli.session import silence_logs
from backstay.cli.terminal import Terminal
from backstay.errors import SettingsInvalid
from backstay.rooms import house, room
from backstay.settings import Settings, environment

_READY = "backstay worker ready:"
_READY_S = 60.0
_DRAIN_S = 8.0
_LONGEST_PAUSE_S = 30.0


async def build_image(kind: Literal["python", "data"] | None = None) -> int:
    """Build the root image for programs from this Python, and print its hash.

    Parameters
    ----------
    kind:
        python: the standard library; data: also numpy and pandas; BACKSTAY_IMAGE by default
    """
    settings = Settings.load()
    silence_logs(settings)
    images = settings.home.absolute() / "images"
    made: Any = await asyncio.to_thread(room("sandbox.images.image").build_image, kind or settings.image, images)
    Terminal().result(f"{made.kind:<8} {made.hash}  Python {made.python}  {made.path}")
    return 0


async def dev(
    *,
    port: int = 7233,
    ui_port: int = 8233,
    headless: Annotated[bool, Parameter(negative="")] = False,
    db: Path | None = None,
) -> int:
    """Run a local Temporal server with its Web UI, and a worker, until Ctrl-C.

    Parameters
    ----------
    port
        Port of Temporal, on loopback only.
    ui_port
        Port of the Web UI, on loopback only.
    headless
        Do not start the Web UI.
    db
        Database file of Temporal; temporal.db in BACKSTAY_HOME by default.
    """
    settings = Settings.load()
    terminal = Terminal()
    require_free(port, "--port")
    if not headless:
        require_free(ui_port, "--ui-port")
    stop = _stop_on_signal()
    namespace = settings.environment.get("TEMPORAL_NAMESPACE") or "default"
    server = await start_temporal(
        port=port,
        ui_port=None if headless else ui_port,
        database=db or settings.home / "temporal.db",
        log=settings.home / "logs" / "temporal.log",
        environment=settings.environment,
        namespace=namespace,
    )
    try:
        return await _serve(terminal, settings, server, stop)
    finally:
        await server.child.stop(_DRAIN_S)


async def start_worker(home: Path, environment: Mapping[str, str], *, folder: Path | None = None) -> Child:
    """Start a worker as a process of its own; wait for it with `Child.is_ready`."""
    command = [sys.executable, str(house() / "worker.py")]
    log = home / "logs" / "worker.log"
    return await Child.start("worker", command, environment=environment, log=log, ready=_READY, folder=folder)


async def _serve(terminal: Terminal, settings: Settings, server: Embedded, stop: asyncio.Event) -> int:
    environment = environment_for(server.address, server.namespace, settings.environment)
    terminal.say(f"Temporal    {server.address}, namespace {server.namespace}")
    if server.ui is not None:
        terminal.say(f"Web UI      {server.ui}/namespaces/{server.namespace}/workflows")
    if server.address != "127.0.0.1:7233" or settings.environment.get("TEMPORAL_ADDRESS"):
        terminal.say(f"elsewhere   export TEMPORAL_ADDRESS={server.address}")
    working = asyncio.create_task(_keep_working(terminal, settings.home, environment))
    stopping = asyncio.create_task(stop.wait())
    gone = asyncio.create_task(server.child.ended())
    try:
        await asyncio.wait({working, stopping, gone}, return_when=asyncio.FIRST_COMPLETED)
        if gone.done():
            raise SettingsInvalid(
                f"Temporal stopped unexpectedly; its last output: {' / '.join(server.child.last) or 'nothing'}"
            )
        if working.done():
            working.result()
    finally:
        for task in (working, stopping, gone):
            task.cancel()
        await asyncio.gather(working, stopping, gone, return_exceptions=True)
    terminal.say("stopped; open runs continue at the next start")
    return 0


async def _keep_working(terminal: Terminal, home: Path, environment: Mapping[str, str]) -> None:
    """Restart the worker whenever it dies; raises SettingsInvalid when it cannot start at all."""
    pause, started_once = 1.0, False
    while True:
        worker = await start_worker(home, environment)
        try:
            ready = await worker.is_ready(_READY_S)
            if ready is not None:
                terminal.say(f"{ready} (log: {worker.log})", "green")
                pause, started_once = 1.0, True
            code = await worker.ended()
        finally:
            await worker.stop(_DRAIN_S)
        said = " / ".join(list(worker.last)[-2:])
        if not started_once and code == 2:
            raise SettingsInvalid(said.removeprefix("backstay worker: "))
        terminal.say(f"the worker ended with {code}: {said}; starting another in {pause:g} s", "red")
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)


def _stop_on_signal() -> asyncio.Event:
    """Return an event that Ctrl-C and SIGTERM set."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    return stop


def worker(*, role: Literal["all", "runs", "sandbox"] = "all") -> int:
    """Run a worker until SIGTERM or Ctrl-C; activities that have started finish first.

    Parameters
    ----------
    role:
        runs: workflows, model and tools; sandbox: programs, in a process without secrets; all: both
    """
    script = house() / "worker.py"
    # A safe path would hide the packages beside the script.
    variables = {name: value for name, value in environment(None).items() if name != "PYTHONSAFEPATH"}
    os.execve(sys.executable, [sys.executable, str(script), "--role", role], variables)  # noqa: S606 - to become the worker is the purpose
