"""A worker as operators start it, in a process of its own, with a scripted model and what tells operators of it."""

import asyncio
import signal
import urllib.request
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from temporalio.client import Client, WorkflowHandle

from backstay.testing import ScriptedModel
from examples.mailbox.faults import Faults
from tests.engine import PRICES, Mailbox, share_images, toolbox_of
from tests.mailbox_server import open_mailbox
from tests.nursery.nursery import OPERATORS_WORKER, Child, Nursery, plain_environment

POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: allow}
ask: [{tool: "mail.send_email", when: {to: {ends_with: "@asked.example"}}}]
"""
SECRET_KEY = "test-key-of-the-scripted-model"


@dataclass
class Site:
    """The worker, and what leads others to it."""

    folder: Path
    client: Client
    environment: dict[str, str]
    nursery: Nursery
    worker: Child

    @property
    def mailbox(self) -> Mailbox:
        return Mailbox(self.folder / "mailbox.db")

    async def start(self, task: Any) -> WorkflowHandle[Any, Any]:
        queue = self.environment["BACKSTAY_TASK_QUEUE"]
        return await self.client.start_workflow("RunTask", task, id=f"task-{uuid.uuid4()}", task_queue=queue)


@asynccontextmanager
async def open_site(
    client: Client, nursery: Nursery, folder: Path, rules: Any, *, toolbox: Path | None = None, **more: str
) -> AsyncGenerator[Site]:
    """Start a worker of the role runs, and end it as an operator does."""
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ScriptedModel(rules))
        if toolbox is None:
            mailbox = await stack.enter_async_context(open_mailbox(folder / "mailbox.db", Faults()))
            toolbox = toolbox_of(folder, folder / "mailbox.db", address=mailbox)
        environment = plain_environment() | {
            "TEMPORAL_ADDRESS": client.service_client.config.target_host,
            "BACKSTAY_HOME": str(share_images(folder / "home")),
            "BACKSTAY_TOOLBOX": str(toolbox),
            "BACKSTAY_POLICY": str(folder / "policy.yaml"),
            "BACKSTAY_TASK_QUEUE": f"queue-{uuid.uuid4()}",
            "BACKSTAY_MODEL": "scripted",
            "BACKSTAY_PRICES": str(PRICES).replace("'", '"'),
            "BACKSTAY_SETTLE_AFTER_SECONDS": "0.2",
            "BACKSTAY_REQUEST_DEADLINE_SECONDS": "5",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": SECRET_KEY,
            **more,
        }
        log = folder / "worker.log"
        child = await nursery.raised(
            OPERATORS_WORKER, "--role", "runs", environment=environment, log=log, folder=folder
        )
        try:
            await child.ready()
            yield Site(folder, client, environment, nursery, child)
            child.kill(signal.SIGTERM)
            assert await child.ended(60) == 0, child.said()
        finally:
            await child.end()


async def scraped(address: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Read what a worker serves: by name and labels."""
    text = await asyncio.to_thread(lambda: urllib.request.urlopen(f"http://{address}/metrics", timeout=5).read())
    return {
        # This parser gives counters a suffix that nobody has sent.
        (sample.name.removesuffix("_total"), tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def value(samples: dict[Any, float], name: str, **labels: str) -> float | None:
    return samples.get((name, tuple(sorted(labels.items()))))
