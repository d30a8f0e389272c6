"""A folder with plugins, a worker for it, and daemons that carry jobs to that worker's Temporal server."""

import asyncio
import json
import os
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from temporalio.client import Client

from backstay.client import connect
from system.folders import folder_hash
from tests.nursery.nursery import OPERATORS_WORKER, Child, Nursery, plain_environment
from tests.plugins.client import TRUSTED, daemon, lay_out

LEFT_OUT = ["ran", "*.session"]


@dataclass
class Site:
    """Hold one folder, and what was started for it."""

    folder: Path
    client: Client
    nursery: Nursery
    queue: str = field(default_factory=lambda: f"plugins-{uuid.uuid4().hex[:8]}")
    workers: int = 0
    settle_s: float = 0.5
    metrics: str = ""

    @property
    def variables(self):
        return {
            "TEMPORAL_ADDRESS": self.client.service_client.config.target_host,
            "BACKSTAY_TASK_QUEUE": self.queue,
            "BACKSTAY_HOME": str(self.folder / "home"),
            "BACKSTAY_TOOLBOX": str(self.folder / "toolbox.json"),
            "BACKSTAY_TRUSTED": str(self.folder),
            "RAN": str(self.folder / "ran"),
            "BACKSTAY_SETTLE_AFTER_SECONDS": str(self.settle_s),
            **({"BACKSTAY_METRICS_ADDRESS": self.metrics} if self.metrics else {}),
        }

    async def worker(self) -> Child:
        self.workers += 1
        log = self.folder / f"worker-{self.workers}.log"
        environment = plain_environment() | self.variables
        child = await self.nursery.raised(
            OPERATORS_WORKER, "--role", "runs", environment=environment, log=log, folder=self.folder
        )
        await child.ready()
        return child

    def run_of(self, name):
        return f"plugin-job-{self.queue}-{name}"

    @asynccontextmanager
    async def daemon(self, *flags, **more):
        async with daemon(self.nursery, self.folder, *flags, **(self.variables | more)) as client:
            yield client

    @asynccontextmanager
    async def connected(self):
        async with connect(client=self.client, task_queue=self.queue) as backstay:
            yield backstay


def site_of(folder, client, nursery, *names, grant=True, **providers):
    """Lay out plugins in which every job runs unasked, or none does."""
    lay_out(folder, *names)
    for name in names:
        entry = providers.setdefault(name, {})
        entry.setdefault("env", {"RAN": "${RAN}"})
        if grant:
            entry["jobs"] = grant_of(folder / "plugins" / name)
    written = {"plugins": TRUSTED, "providers": providers}
    (folder / "toolbox.json").write_text(json.dumps(written), encoding="utf-8")
    return Site(folder, client, nursery)


def grant_of(plugin):
    """Grant every action of the plugins of these tests, as their files are now."""
    actions = ["click-button", "wait", "fail", "say", "run", "pause"]
    return {"unasked": actions, "sha256": folder_hash(plugin, LEFT_OUT), "leave_out": LEFT_OUT}


async def eventually(condition):
    """Wait until a condition holds."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.05)


def lines_of(path):
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def is_locked(folder):
    """Return whether somebody holds the lock of a folder."""
    import fcntl

    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(opened)
    return False
