"""Who serves a task queue: the names of workers, the stores that they have, and the queue of the sandbox role."""

import contextlib
import os
import socket
from typing import Literal

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.client import Client
from temporalio.service import RPCError

from backstay.client.workers import POLLED_S, pollers
from backstay.errors import WorkerMisfit
from backstay.settings import Settings

Role = Literal["all", "runs", "sandbox"]
_TRIES = 3
"""A server that is busy for a moment must not leave a whole run without programs."""
_STORE_DIGITS = 6
"""How much of a store's id is in a worker's name; history repeats that name in every event of a worker."""


def sandbox_queue(settings: Settings) -> str:
    """Return the common queue of the sandbox role."""
    return f"{settings.task_queue}-sandbox"


async def find_sandbox(client: Client, settings: Settings, store: str = "") -> str:
    """Return the queue of the sandbox role when a worker polls it that is not another store's, else nothing."""
    queue = sandbox_queue(settings)
    for _ in range(_TRIES):
        with contextlib.suppress(RPCError):
            names = await pollers(client, queue, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY)
            return queue if any(store.startswith(store_of(name)) or not store for name in names) else ""
    return ""


async def polls_here(client: Client, settings: Settings, role: Role) -> bool:
    """Return whether a worker of this host has asked for work lately; raises RPCError."""
    sandbox = role == "sandbox"
    queue = sandbox_queue(settings) if sandbox else settings.task_queue
    kind = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY if sandbox else TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
    return any(f"@{socket.gethostname()}/" in name for name in await pollers(client, queue, kind))


def identity_of(client: Client, store: str) -> str:
    """Return the name under which a worker polls; it ends in the first digits of its store's id."""
    name = client.service_client.config.identity or f"{os.getpid()}@{socket.gethostname()}"
    return f"{name}/{store[:_STORE_DIGITS]}"


def store_of(identity: str) -> str:
    """Return the first digits of the store's id in the name of a worker, or nothing."""
    return identity.rpartition("/")[2] if "/" in identity else ""


async def demand_same_store(client: Client, queue: str, store: str) -> None:
    """Raise WorkerMisfit while a worker with another store polls the queue.

    Two databases know nothing of each other, so only Temporal can tell.
    """
    with contextlib.suppress(RPCError):
        for name in await pollers(client, queue):
            other = store_of(name)
            if other and not store.startswith(other):
                raise WorkerMisfit(
                    f"BACKSTAY_DATABASE_URL: this worker's store is {store}, but {name} polls the task "
                    f"queue {queue!r} with store {other}...; give both the same BACKSTAY_DATABASE_URL and "
                    f"BACKSTAY_BLOBS, or another BACKSTAY_TASK_QUEUE. A worker that stopped counts for {POLLED_S} s."
                )
