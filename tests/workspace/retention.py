"""A file that is rewritten again and again, while what ended runs wrote is pruned."""

import json
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.workspaces.host import open_workspaces
from sandbox.workspaces.workspace import WorkspaceCall, WorkspaceSettings
from store.opening import open_store
from tests.cli.commands import bare, forked
from tests.engine import share_images
from tests.sizes import sized

LIVE_BYTES = 200_000
A_RUN = sized(10, 4)
"""Rewrites of one run."""


@contextmanager
def reachable_place() -> Iterator[Path]:
    """Make a folder that the users of jails can reach."""
    with tempfile.TemporaryDirectory(prefix="backstay-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


async def rewritten(temporal, nursery, place: Path, *, runs: int) -> list[int]:
    """Let runs rewrite a file; the last one lies within the window. Return the bytes on the disk after each pruning.

    What a new store takes before anything is in it does not count.
    """
    home = share_images(place / "home")
    workspaces = await open_workspaces(WorkspaceSettings(home=home, workspaces=place / "workspaces"))
    environment = bare(BACKSTAY_HOME=str(home), TEMPORAL_ADDRESS=temporal.service_client.config.target_host)
    sizes = []
    async with open_store(database_url=None, home=home):
        pass
    new = sum(file.stat().st_size for file in kept(home))
    for number in range(runs):
        run = await recorded(home, number)
        for n in range(1, A_RUN + 1):
            content = f"{number} {n} ".ljust(LIVE_BYTES, "x")
            call = WorkspaceCall(
                workspace="w",
                run=f"run-{number}",
                tool="write_file",
                arguments={"path": "file.txt", "content": content},
                writable=True,
                effect=f"{run}/{n}",
            )
            assert "ok" in await workspaces.call(call)
        workspaces.release("w", f"run-{number}")
        done = await forked(nursery, "prune", "--output", "json", environment=environment, folder=place)
        assert (done.code, json.loads(done.out)["runs"]) == (0, min(number, 1)), done.err
        sizes.append(sum(file.stat().st_size for file in kept(home)) - new)
    undo = WorkspaceCall(workspace="w", run="undo", tool="restore", arguments={"effect": f"{run}/{A_RUN}"})
    assert "ok" in await workspaces.call(undo)
    assert (place / "workspaces/w/file.txt").read_text().startswith(f"{runs - 1} {A_RUN - 1} ")
    return sizes


def kept(home: Path) -> list[Path]:
    """Everything in the home but the root images, which all tests share, and the logs of their jails."""
    return [
        file
        for name in ("snapshots", "workspace-state", "blobs", ".")
        for file in ((home / name).glob("*") if name == "." else (home / name).rglob("*"))
        if file.is_file()
    ]


async def recorded(home: Path, number: int) -> str:
    """Record a run that has just ended, and let the one before have ended long ago."""
    name = str(uuid.uuid4())
    of_run = {"workflow_id": "w", "workflow_run_id": name, "user_id": "ana", "text": "t", "opened": {}}
    async with open_store(database_url=None, home=home) as store:
        await store.runs.opened(run=f"w/{name}", **of_run)
        await store.runs.closed(f"w/{name}", {})
    with sqlite3.connect(home / "backstay.db") as connection:
        connection.execute("UPDATE runs SET opened_at = 1000, closed_at = 1000 WHERE workflow_run_id != ?", (name,))
    connection.close()
    return f"w/{name}"
