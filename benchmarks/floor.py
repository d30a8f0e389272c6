"""The floor: a bare workflow with two trivial activities per step, and its worker."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.service import GrpcCompression
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
    async def run(self, steps: int, together: int = 1, aside: str | None = None, park: bool = False) -> int:  # noqa: FBT001, FBT002  # Temporal hands arguments over by their place
        """Per step, think once and act `together` times at once; think on the queue `aside` if there is one.

        At the end, stay for ever if the run is to be parked.
        """
        for _ in range(steps):
            await self._do(think, aside)
            await asyncio.gather(*(self._do(act) for _ in range(together)))
        await workflow.wait_condition(lambda: not park)
        return steps

    def _do(self, call: Callable[[str], Awaitable[str]], queue: str | None = None) -> Awaitable[str]:
        return workflow.execute_activity(call, "x" * 64, task_queue=queue, start_to_close_timeout=timedelta(seconds=30))


async def main(address: str, queue: str) -> None:
    # As the engine connects to a server on the same machine.
    client = await Client.connect(address, grpc_compression=GrpcCompression.NONE)
    async with Worker(client, task_queue=queue, workflows=[Floor], activities=[think, act]):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
