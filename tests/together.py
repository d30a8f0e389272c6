"""Run the scenarios of a module at the same time: they wait for heartbeats and leases far more than they work."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

Scenario = Callable[..., Awaitable[None]]


def together(scenario: Scenario) -> Any:
    """Turn a scenario into a test; the module's fixture `underway` runs it beside the others."""

    async def test(underway: dict[str, asyncio.Task[None]]) -> None:
        await underway[scenario.__name__]

    test.__name__, test.__qualname__, test.__doc__ = scenario.__name__, scenario.__qualname__, scenario.__doc__
    test.__module__ = scenario.__module__
    test.scenario = scenario  # type: ignore[attr-defined]
    return pytest.mark.timeout(240)(test)


@asynccontextmanager
async def started(
    request: pytest.FixtureRequest, start: Callable[[Scenario], Awaitable[None]], at_once: int = 4
) -> AsyncGenerator[dict[str, asyncio.Task[None]]]:
    """Start every selected scenario of the requesting module; yields them by name."""
    turns = asyncio.Semaphore(at_once)

    async def run(scenario: Scenario) -> None:
        async with turns, asyncio.timeout(200):
            await start(scenario)

    items = [item for item in request.session.items if getattr(item, "module", None) is request.module]
    scenarios = [item.function.scenario for item in items if hasattr(item.function, "scenario")]
    running = {scenario.__name__: asyncio.create_task(run(scenario)) for scenario in scenarios}
    try:
        yield running
    finally:
        for each in running.values():
            each.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)
