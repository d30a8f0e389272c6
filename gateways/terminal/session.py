"""Open what commands need: Temporal, and the store for runs that Temporal no longer knows."""

import contextlib
import getpass
import logging
import re
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from temporalio.client import Client

from backstay.authority import principal
from backstay.client.connecting import connect, connected, traced
from backstay.client.executions import NOT_CONTINUED, RUNS, Execution, listed
from backstay.errors import (
    DecisionRefused,
    RunNotFound,
    SettingsInvalid,
    StoreUnavailable,
    StoreUnusable,
    TaskInvalid,
    Unreachable,
)
from backstay.settings import Settings
from backstay.shown import one_line
from gateways.served import place_of_temporal

if TYPE_CHECKING:
    from backstay.approvals.approval import ApprovalRequest
    from backstay.client import Backstay, Run
    from people.runs.finding import KnownRun, RunSources
    from store.store import Store

_TASKS = "WorkflowType = 'RunTask'"
_PREFIX = re.compile(r"[\w.@:/+-]+")
_MOST_FOUND = 20
_MOST_BEGINNING = 200
_MOST_LOOKED_AT = 1000


@asynccontextmanager
async def session(settings: Settings | None = None) -> "AsyncGenerator[Backstay]":
    """Connect with the settings of the environment; decisions are signed when the approver key is set."""
    settings = settings or Settings.load()
    key = settings.approver_key
    signing = None if key is None else key.get_secret_value()
    options: Any = {"task_queue": settings.task_queue, "approver_key": signing, "page": settings.url}
    async with looking(settings) as client, connect(client=client, **options) as backstay:
        yield backstay


@asynccontextmanager
async def looking(settings: Settings) -> AsyncGenerator[Client]:
    """Connect as `session` does, for a command that only asks what Temporal itself knows."""
    # Telemetry that is sent at the end would hold up nobody but this command.
    with traced(settings):
        place = place_of_temporal(settings)
        async with connected(place.get("address"), namespace=place.get("namespace")) as client:
            yield client


@asynccontextmanager
async def session_of(
    workflow: str, settings: Settings | None = None, *, to_decide: bool = False
) -> "AsyncGenerator[Run]":
    """Connect as `session` does, and find a run as `find` does."""
    async with session(settings) as backstay:
        yield await find(backstay, workflow, to_decide=to_decide)


async def find(backstay: "Backstay", name: str, *, to_decide: bool = False) -> "Run":
    """Return the run with this workflow id, the only one whose id begins so, or the newest one for `last`.

    `last` is never an undo, nor a sub-run unless it waits; `to_decide`: it is the newest run that waits for a
    decision, if there is one.
    Raises TaskInvalid when several fit. A name that fits none is returned as it is: the store may know the run.
    """
    if name == "last":
        return await _last(backstay, to_decide=to_decide)
    exact = backstay.run(name)
    with contextlib.suppress(RunNotFound):
        await exact.is_open()
        return exact
    if not _PREFIX.fullmatch(name):
        return exact
    query = f"({RUNS}) AND {NOT_CONTINUED} AND WorkflowId STARTS_WITH '{name}'"
    all_found = [execution async for execution in listed(backstay.client, query, _MOST_BEGINNING)]
    # The names of sub-runs begin with that of the run that delegated to them.
    found = list(dict.fromkeys(execution.workflow_id for execution in _started(all_found)))
    if len(found) > 1:
        raise TaskInvalid(f"workflow: several runs begin with {name}: {', '.join(found[:3])}; give more of the id")
    if len(all_found) >= _MOST_BEGINNING:
        raise TaskInvalid(f"workflow: {len(all_found)} runs or more begin with {name}; give more of the id")
    return backstay.run(found[0]) if found else exact


async def _last(backstay: "Backstay", *, to_decide: bool) -> "Run":
    # Temporal lists open runs first, however old they are.
    found = [execution async for execution in listed(backstay.client, _TASKS, _MOST_LOOKED_AT)]
    found.sort(key=lambda execution: (execution.started_at, execution.workflow_id), reverse=True)
    if not found:
        raise RunNotFound("workflow: there is no run yet; start one with: backstay run TEXT")
    working = [execution for execution in found if execution.is_open] if to_decide else []
    for execution in working[:_MOST_FOUND]:
        # The run itself is asked: Temporal's lists of it come late, and a decision must not go to another run.
        if await backstay.run(execution.workflow_id).pending():
            return backstay.run(execution.workflow_id)
    return backstay.run(_started(found)[0].workflow_id)


def _started(found: list[Execution]) -> list[Execution]:
    """Return the runs that no other one of these has delegated to."""
    names = {execution.workflow_id for execution in found}
    return [execution for execution in found if execution.parent_id not in names]


async def open_request(run: "Run", request_id: str) -> "ApprovalRequest":
    """Return an open request of a run; raises DecisionRefused naming those that are open."""
    from backstay.approvals.admission import NOT_OPEN

    pending = await run.pending()
    found = next((request for request in pending if request.id == request_id), None)
    if found is None:
        known = ", ".join(request.id for request in pending) or "none"
        raise DecisionRefused(f"{NOT_OPEN}{one_line(request_id, 80)}; open requests: {known}")
    return found


def open_store(settings: Settings) -> "AbstractAsyncContextManager[Store]":
    """Open the store that the worker of the same settings uses."""
    from opening import open_store

    silence_logs(settings)
    return open_store(settings)


def require_store(settings: Settings) -> None:
    """Raise SettingsInvalid where there is no store; a command that maintains a store must not create one."""
    if not settings.has_store:
        raise SettingsInvalid(f"BACKSTAY_HOME: there is no store in {settings.home}; name the worker's home")


@asynccontextmanager
async def sources_of(workflow: str, settings: Settings) -> AsyncGenerator[tuple["RunSources", "KnownRun"]]:
    """Find a run as `session_of` does, and open what it is looked at with: Temporal or the store, if possible both.

    Raises RunNotFound for a run that neither knows, Unreachable when no store is left to ask.
    """
    async with AsyncExitStack() as opened:
        backstay, fault = None, ""
        try:
            backstay = await opened.enter_async_context(session(settings))
            run = await find(backstay, workflow)
            workflow = run.id
            if not settings.has_store:
                await run.is_open()
        except Unreachable as error:
            fault = str(error)
        store = None
        if settings.has_store:
            with contextlib.suppress(StoreUnavailable, StoreUnusable):
                store = await opened.enter_async_context(open_store(settings))
        if backstay is None and store is None:
            raise Unreachable(fault)
        from people.runs import finding

        sources = finding.RunSources(backstay, store, None, fault)
        yield sources, await finding.find(sources, account_name(), workflow)


@asynccontextmanager
async def stored_run(settings: Settings, workflow: str) -> AsyncGenerator[tuple[Any, Any]]:
    """Open the store and find a run in it; yields None for a run that it does not know."""
    if not settings.has_store:
        yield None, None
        return
    async with open_store(settings) as store:
        yield store, await store.runs.get(workflow)


async def undone_since(settings: Settings, workflow: str) -> frozenset[int]:
    """Return the numbers of the effects that were undone by now, as far as the store of this machine knows."""
    with contextlib.suppress(StoreUnavailable, StoreUnusable):
        async with stored_run(settings, workflow) as (store, row):
            effects = [] if row is None else await store.effects.of_run(row.run)
        return frozenset(e.n for e in effects if not e.undo and e.state.value == "compensated")
    return frozenset()


def silence_logs(settings: Settings) -> None:
    """Keep the logs of the engine out of what a command prints."""
    from backstay.logs import configure_logs
    from backstay.redaction.redactor import Redactor

    configure_logs(Redactor(settings.secrets()), logging.CRITICAL)


def account_name() -> str:
    """Return the account name of the person at the terminal; it is recorded as unverified."""
    try:
        return principal(getpass.getuser())
    except (KeyError, OSError):
        return "cli"
