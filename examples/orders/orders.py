"""A service with a workflow of its own, whose worker serves runs of backstay too.

`python examples/orders/orders.py ORDER` takes one order: it charges for it, and leaves the letter to a run.
"""

import asyncio
import sys
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from backstay import BackstayPlugin

QUEUE = "orders"


@activity.defn
async def charge(order: str) -> str:
    """Charge for an order; return what was done."""
    return f"charged for {order}"


@workflow.defn
class Order:
    """Charge for an order, and let a run write to the customer: it asks before it sends, and can be undone."""

    @workflow.run
    async def run(self, order: str, runs: str) -> dict[str, Any]:
        """Return the Result of the run, which the engine serves on the queue `runs`."""
        done = await workflow.execute_activity(charge, order, start_to_close_timeout=timedelta(seconds=30))
        letter = {"to": f"{order}@example.com", "subject": f"Your order {order}", "body": f"We have {done}."}
        task = {"plan": {"title": "Tell the customer", "steps": [{"tool": "mail.send_email", "arguments": letter}]}}
        return await workflow.execute_child_workflow("RunTask", task, id=f"letter-{order}", task_queue=runs)


def own_worker(client: Client, queue: str = QUEUE) -> Worker:
    """Return the worker of the service; it serves runs, too, because its client has the plugin."""
    return Worker(
        client,
        task_queue=queue,
        workflows=[Order],
        activities=[charge],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )


async def main(order: str) -> None:
    """Serve until one order is done."""
    client = await Client.connect("localhost:7233", plugins=[BackstayPlugin()])
    async with own_worker(client):
        result = await client.execute_workflow(
            Order.run, args=[order, "backstay"], id=f"order-{order}", task_queue=QUEUE
        )
    print(result["outcome"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
