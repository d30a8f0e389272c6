"""Run the sandbox role as a child process of the worker: the same program, without the worker's secrets."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

from backstay.cli.child import Child
from backstay.settings import Settings

_READY_TIMEOUT_S = 60
_PLAIN = {"PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "VIRTUAL_ENV"}


@asynccontextmanager
async def sandbox_child(
    settings: Settings, command: Sequence[str], drain: timedelta
) -> AsyncGenerator[asyncio.Task[str]]:
    """Run the sandbox role beside this process, without its secrets; the task returns a note on whether it started.

    On exit, it has `drain` to finish what it is doing.
    """
    variables = {name: value for name, value in settings.environment.items() if _harmless(name)}
    places = {"HOME": settings.home, "BLOBS": settings.blobs, "NSJAIL": settings.nsjail}
    variables |= {f"BACKSTAY_{name}": str(place) for name, place in places.items() if place is not None}
    variables |= {"BACKSTAY_TASK_QUEUE": settings.task_queue, "BACKSTAY_IMAGE": settings.image}
    variables["BACKSTAY_TRANSIENT_SECONDS"] = str(settings.transient_seconds)
    log = settings.home / "logs" / "sandbox.log"
    start = partial(Child.start, "sandbox", command, environment=variables, log=log, ready="backstay sandbox ready")
    children = [await start()]

    async def said() -> str:
        if await children[0].is_ready(_READY_TIMEOUT_S) is None:
            return f", no programs: {children[0].last[-1] if children[0].last else 'the sandbox does not start'}"
        return ", programs in jails"

    starting = asyncio.create_task(said())
    keeping = asyncio.create_task(_keep_up(start, children))
    try:
        yield starting
    finally:
        keeping.cancel()
        await children[-1].stop(drain.total_seconds())


async def _keep_up(start: Callable[[], Awaitable[Child]], children: list[Child]) -> None:
    """Start it again when it dies. If it was never ready, something is missing that only an operator can fix."""
    while True:
        await children[-1].ended()
        if not children[-1].ready.done():
            return
        await asyncio.sleep(1)
        children.append(await start())


def _harmless(name: str) -> bool:
    return name.startswith(("TEMPORAL_", "BACKSTAY_PROGRAM_")) or name in _PLAIN
