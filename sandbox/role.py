"""Run the sandbox role as a child process of the worker: the same program, without the worker's secrets."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import structlog

from system.child import Child
from system.kept_child import READY_TIMEOUT_S, KeptChild, Loss, kept_child

_log = structlog.get_logger("backstay.sandbox")


@asynccontextmanager
async def sandbox_child(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    drain: timedelta,
    *,
    heard: Callable[[str], None] | None = None,
) -> AsyncGenerator[asyncio.Task[str]]:
    """Run the sandbox role beside this process, without its secrets; the task returns a note on whether it started.

    On exit, it has `drain` to finish what it is doing. `heard` gets every line that it says.
    """
    options = {"environment": environment, "log": log, "ready": "backstay sandbox ready", "heard": heard}
    start = partial(Child.start, "sandbox", command, **options)
    async with kept_child(start, _lost, partial(_log.info, "sandbox.back"), drain_s=drain.total_seconds()) as kept:
        yield asyncio.create_task(_said(kept))


def _lost(loss: Loss) -> None:
    _log.error("sandbox.lost", **loss._asdict())


async def _said(kept: KeptChild) -> str:
    """Wait for the first child and return what there is to say of it."""
    child = kept.child
    if child is None or await child.is_ready(READY_TIMEOUT_S) is not None:
        return ", programs in jails"
    return f", no programs: {child.last[-1] if child.last else 'the sandbox does not start'}"
