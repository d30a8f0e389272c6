"""One worker that runs what the documents show."""

import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest_asyncio
from temporalio.client import Client

from backstay.testing import Conversation, Reply
from examples.mailbox.reminders import Reminders
from tests.docs.blocks import HOUSE
from tests.engine import Engine, engine
from tests.nursery.nursery import Nursery

QUEUE = "backstay"


@dataclass(frozen=True)
class Documented:
    """A served task queue, and the environment in which programs find it."""

    engine: Engine
    environment: dict[str, str]

    async def forked(self, nursery: Nursery, program: Path, *arguments: str, folder: Path) -> tuple[int, str, str]:
        """Run a script as a fork of what has imported the client already, which saves a second."""
        out, log = folder / "out", folder / "err"
        given = {"environment": self.environment, "folder": folder, "out": out, "log": log}
        child = await nursery.raised(str(program), *arguments, **given)
        return await child.ended(150), child.answered(), child.said()


def rules(conversation: Conversation):
    offered = {tool["function"]["name"]: tool["function"] for tool in conversation.body.get("tools", ())}
    if "finish" in offered and "output" in offered["finish"]["parameters"]["properties"]:
        return Reply(calls=[("finish", {"summary": "done", "output": {"customers": ["Acme"], "total": 12.5}})])
    return Reminders()(conversation)


@pytest_asyncio.fixture(scope="session")
async def documented(temporal: Client, tmp_path_factory) -> AsyncGenerator[Documented]:
    """Serve the default task queue."""
    foreign = ("BACKSTAY_", "OPENAI_", "TEMPORAL_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    # If the project is not installed, programs find it in the checkout.
    environment["PYTHONPATH"] = str(HOUSE)
    environment["TEMPORAL_ADDRESS"] = temporal.service_client.config.target_host
    async with engine(temporal, tmp_path_factory.mktemp("documented"), rules, task_queue=QUEUE) as opened:
        yield Documented(opened, environment)
