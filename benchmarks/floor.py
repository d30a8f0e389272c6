"""The floor: a bare workflow with two trivial activities per step, and its worker."""

import asyncio
import sys
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker


@activity.defn
async def think(text: str) -> str:
    return text


@activity.defn
async def act(text: str) -> str:
    return text


@workflow.defn
class Floor:
    @workflow.run
    async def run(self, steps: int) -> int:
        for _ in range(steps):
            for call in (think, act):
                await workflow.execute_activity(call, "x" * 64, start_to_close_timeout=timedelta(seconds=30))
        return steps


async def main(address: str) -> None:
    client = await Client.connect(address)
    async with Worker(client, task_queue="floor", workflows=[Floor], activities=[think, act]):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
