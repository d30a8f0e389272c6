"""An example of a gate, for changes of workflow code after the first release: one workflow before and with it.

python -m tests.replay.gated records both histories anew.
"""

import asyncio
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity, workflow
from temporalio.client import WorkflowHistory
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.replay.record import TEMPORAL, shown

HISTORIES = Path(__file__).parent / "gated_histories"
NAME = "Greeting"
SIGNED = "signed-greetings"
"""The id of the patch; since this change a greeting is signed."""


@activity.defn
async def greet(name: str) -> str:
    return f"Hello, {name}"


@activity.defn
async def sign(text: str) -> str:
    return f"{text}. Yours, Ana"


async def _done(act: Callable[[str], Any], given: str) -> str:
    return await workflow.execute_activity(act, given, start_to_close_timeout=timedelta(seconds=10))


@workflow.defn(name=NAME)
class Before:
    """What the release did."""

    @workflow.run
    async def run(self, name: str) -> str:
        return await _done(greet, name)


@workflow.defn(name=NAME)
class Gated:
    """What the next one does: runs that were open at the upgrade end as they began."""

    @workflow.run
    async def run(self, name: str) -> str:
        text = await _done(greet, name)
        if workflow.patched(SIGNED):
            return await _done(sign, text)
        return text


@workflow.defn(name=NAME)
class Ungated:
    """What it must not do: it cannot replay a run that was open at the upgrade."""

    @workflow.run
    async def run(self, name: str) -> str:
        return await _done(sign, await _done(greet, name))


def history_of(name: str) -> WorkflowHistory:
    """Return what is kept of a run that began `before` the change, or `after` it."""
    return WorkflowHistory.from_json(name, (HISTORIES / f"{name}.json").read_text(encoding="utf-8"))


async def main() -> None:
    async with await WorkflowEnvironment.start_local(dev_server_existing_path=TEMPORAL) as environment:
        for name, recorded in (("before", Before), ("after", Gated)):
            queue = str(uuid.uuid4())
            async with Worker(
                environment.client,
                task_queue=queue,
                workflows=[recorded],
                activities=[greet, sign],
                workflow_runner=UnsandboxedWorkflowRunner(),
            ):
                handle = await environment.client.start_workflow(NAME, "Bo", id=f"{NAME}-{name}", task_queue=queue)
                await handle.result()
            (HISTORIES / f"{name}.json").write_text(shown(await handle.fetch_history()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
