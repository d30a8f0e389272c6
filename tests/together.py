"""Run the scenarios of a module at the same time: they wait for heartbeats and leases far more than they work."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

Scenario = Callable[..., Awaitable[None]]


def together(scenario: Scenario) -> Any:
    """Turn a scenario into a test; the module's fixture `underway` runs it beside the others.

    The arguments that it takes by name only are those of `pytest.mark.parametrize`.
    """

    async def test(request: pytest.FixtureRequest, underway: dict[str, asyncio.Task[None]], **_case: Any) -> None:
        await underway[request.node.name]

    test.__name__, test.__qualname__, test.__doc__ = scenario.__name__, scenario.__qualname__, scenario.__doc__
    test.__module__ = scenario.__module__
    test.scenario = scenario  # type: ignore[attr-defined]
    own = list(inspect.signature(test).parameters.values())[:2]
    given = [each for each in inspect.signature(scenario).parameters.values() if each.kind is each.KEYWORD_ONLY]
    test.__signature__ = inspect.Signature([*own, *given])  # type: ignore[attr-defined]
    return pytest.mark.timeout(400)(test)


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
    running = {item.name: asyncio.create_task(run(_scenario_of(item))) for item in items if _is_one(item)}
    try:
        yield running
    finally:
        for each in running.values():
            each.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)


def _is_one(item: Any) -> bool:
    return hasattr(item.function, "scenario")


def _scenario_of(item: Any) -> Scenario:
    return (
        partial(item.function.scenario, **item.callspec.params) if hasattr(item, "callspec") else item.function.scenario
    )
