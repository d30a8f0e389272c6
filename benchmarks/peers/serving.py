"""What the programs of the peers share: each serves its workflow, or replays a history of it.

This module and those programs run in the environments of the peers, which have no other package of this project.
"""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

from temporalio.client import Client, WorkflowHistory
from temporalio.plugin import SimplePlugin
from temporalio.service import GrpcCompression
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

ENVIRONMENT = dict(os.environ)  # noqa: TID251  # a separate program, configured by its environment
INSTRUCTIONS = "Do the task with the tools."
DANGEROUS = "delete_message"
"""The tool for which a person is asked."""
REPLAYS = 5


async def serve(workflow: type, plugin: SimplePlugin, tools: AbstractAsyncContextManager[object]) -> None:
    """Serve one workflow until a signal comes, and hold its tools open meanwhile.

    Workflow code is loaded once and not for every run, as by the worker of backstay.
    """
    # As backstay connects to a server on this machine.
    uncompressed = GrpcCompression.NONE
    client = await Client.connect(ENVIRONMENT["TEMPORAL_ADDRESS"], plugins=[plugin], grpc_compression=uncompressed)
    runner = UnsandboxedWorkflowRunner()
    worker = Worker(client, task_queue=ENVIRONMENT["TASK_QUEUE"], workflows=[workflow], workflow_runner=runner)
    async with tools, worker:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


async def replay(path: str, workflow: type, plugin: SimplePlugin) -> float:
    """Return the median milliseconds of a replay."""
    text = await asyncio.to_thread(Path(path).read_text, encoding="utf-8")
    history = WorkflowHistory.from_json("replayed", text)
    replayer = Replayer(workflows=[workflow], plugins=[plugin], workflow_runner=UnsandboxedWorkflowRunner())
    times: list[float] = []
    for _ in range(REPLAYS):
        began = time.perf_counter()
        await replayer.replay_workflow(history)
        times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times)


def main(
    arguments: Sequence[str],
    workflow: type,
    plugin: SimplePlugin,
    tools: AbstractAsyncContextManager[object] | None = None,
) -> None:
    """Serve, or with the path of a history replay it and print what that took."""
    if arguments:
        sys.stdout.write(f"{asyncio.run(replay(arguments[0], workflow, plugin))}\n")
        sys.stdout.flush()
        # Temporal's own threads sometimes crash a process that ends while they are at work.
        os._exit(0)
    asyncio.run(serve(workflow, plugin, tools or nullcontext()))
