"""The worker: the only file where all roots meet.

What only the runs role needs is imported where it is used: the sandbox role starts in a third of the time, and holds no
code that knows a model, a tool or a database.
"""

import gc

if __name__ == "__main__":
    # What is imported stays until the end, and `serve` sets it aside once it is all there. Collections would only walk
    # through it, the last one as the process ends: a third of the time of a start and a stop.
    gc.disable()

import argparse
import asyncio
import contextlib
import importlib.util
import os
import signal
import socket
import sys
import uuid
from collections.abc import AsyncGenerator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import structlog
from temporalio.api.enums.v1 import IndexedValueType, TaskQueueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

if TYPE_CHECKING:
    from activities.resources import Resources
    from store.store import Store

HERE = Path(__file__).resolve().parent


def refuse_foreign_rooms() -> None:
    """Exit if another distribution would be imported in place of one of backstay's folders."""
    for room in ("activities", "gateways", "people", "sandbox", "store", "system", "toolbox", "workflows"):
        found = importlib.util.find_spec(room)
        folder = Path(found.origin).resolve().parent if found is not None and found.origin is not None else None
        if folder is None or folder.parent != HERE:
            sys.stderr.write(f"backstay worker: {room!r} was imported from {folder}, not from {HERE}; ")
            sys.stderr.write("uninstall the package that brings it, or unset PYTHONSAFEPATH\n")
            sys.exit(2)


refuse_foreign_rooms()

from activities.opening import (
    belongings_of,
    open_endpoints,
    open_store,
    open_toolbox,
    open_workspaces,
    read_offered,
    read_policy,
    read_profiles,
)
from activities.programs.programs import SandboxResources, sandbox_activities
from activities.telemetry.opening import TELLS_JAILS, Telemetry, open_telemetry
from backstay.client import connect
from backstay.client.connecting import place_in_file
from backstay.client.workers import POLLED_S, pollers
from backstay.errors import BackstayError, WorkerMisfit
from backstay.logs import configure_logs
from backstay.redaction.redactor import Redactor
from backstay.settings import Settings
from backstay.version import version
from sandbox.isolation.way import make_home
from sandbox.limits import Limits
from sandbox.programs.sandbox import Sandbox, open_sandbox
from store.blobs.marker import await_marker
from store.blobs.shown import FileBlobStore, ShownBlobStore
from system.places import Place, lost

Role = Literal["all", "runs", "sandbox"]
PROGRAMS_AT_ONCE = 8
"""Programs that compute at the same time; paused ones do not count."""
_TRIES = 3
"""A server that is busy for a moment must not leave a whole run without programs."""
_RPC_TIMEOUT = timedelta(seconds=5)
_STORE_DIGITS = 6
"""How much of a store's id stands in a worker's name; history repeats that name in every event of a worker."""
_MARKER_S = 10
"""How long the sandbox role waits for the first worker of a new installation to make the folder of payloads."""
STORE = "--store"
"""The option by which a worker tells its child which store it has; the child cannot ask before it serves."""
SEARCH_ATTRIBUTES = {
    "BackstayState": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "BackstayUser": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "BackstayPending": IndexedValueType.INDEXED_VALUE_TYPE_INT,
    "BackstayCostUsd": IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
    "BackstayTask": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
}
DRAIN = timedelta(seconds=35)
"""Longer than the request deadline, so that what was sent is also settled."""
_EVERY_WORKER: dict[str, Any] = {"graceful_shutdown_timeout": DRAIN, "build_id": version()}
"""Without an id Temporal reads the code of all imported modules to make one up: half of the time of a start."""


@contextlib.asynccontextmanager
async def open_fit_store(settings: Settings, client: Client) -> AsyncGenerator["Store"]:
    """Open the store for a worker that fits it; raises WorkerMisfit for one that does not."""
    async with open_store(settings) as store:
        await demand_same_store(client, settings.task_queue, store.identity.id)
        await store.fitness.demand(belongings_of(settings))
        await store.deltas.sweep()
        if settings.payloads == "database":
            await store.blobs.move_spilled()
        yield store


@contextlib.asynccontextmanager
async def open_resources(
    settings: Settings, client: Client, opened: "Store | None" = None
) -> AsyncGenerator["Resources"]:
    """Open store, toolbox and model for one worker, and close them at the end; a store that is open is used."""
    from activities.resources import Resources

    policy, profiles = read_policy(settings.policy), read_profiles(settings.profiles)
    definitions = read_offered(settings)
    async with (
        open_store(settings) if opened is None else contextlib.nullcontext(opened) as store,
        open_workspaces(settings) as workspaces,
        open_toolbox(settings, workspaces) as toolbox,
        open_endpoints(settings) as endpoints,
    ):
        yield Resources(
            settings=settings,
            store=store,
            toolbox=toolbox,
            policy=policy,
            profiles=profiles,
            definitions=definitions,
            redactor=Redactor(settings.secrets() | toolbox.secrets | endpoints.models.secrets),
            endpoints=endpoints,
            temporal=client,
            search_attributes=await register_search_attributes(client),
            find_sandbox=lambda: find_sandbox(client, settings, store.identity.id),
            workspaces=workspaces,
        )


def open_worker(client: Client, resources: "Resources", *, sandboxed: bool = False, **options: Any) -> Worker:
    """Return a worker that serves the whole menu.

    Temporal's workflow sandbox looks for nondeterminism at run time; it loads the workflow code anew for every run,
    which costs half a megabyte each. The house rules and the tests of replay, which run sandboxed, look for it instead.
    """
    from activities.programs.payload_server import payload_activities
    from activities.registry import run_activities
    from workflows import WORKFLOWS

    restrictions = SandboxRestrictions.default.with_passthrough_modules("backstay", "pydantic_core", "annotated_types")
    runner = SandboxedWorkflowRunner(restrictions=restrictions) if sandboxed else UnsandboxedWorkflowRunner()
    return Worker(
        client,
        task_queue=resources.settings.task_queue,
        workflows=WORKFLOWS,
        activities=[*run_activities(resources), *payload_activities(resources)],
        workflow_runner=runner,
        identity=identity_of(client, resources.store.identity.id),
        # Else heartbeats, and with them cancellations, would wait for most of the heartbeat timeout.
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        **_EVERY_WORKER,
        **options,
    )


@contextlib.asynccontextmanager
async def telling(settings: Settings, client: Client, store: "Store") -> AsyncGenerator[None]:
    """Send notices to the addresses that the settings name, and close requests of runs that ended unseen."""
    from gateways.delivering import delivering, tidying
    from gateways.mail.mail import mail_of
    from gateways.webhooks import open_webhooks

    mail = mail_of(settings, known=read_policy(settings.policy).people, requests=store.requests)
    async with (
        connect(client=client) as backstay,
        open_webhooks(settings) as webhooks,
        delivering(store.outbox, [*webhooks, *mail]),
        tidying(store, backstay, settings.url or ""),
    ):
        yield


def limits_of(settings: Settings) -> Limits:
    """Return the caps of every program."""
    return Limits(
        memory_mb=settings.program_memory_mb,
        cpu_s=settings.program_cpu_seconds,
        wall_s=settings.program_round_seconds,
        rounds=settings.program_rounds,
        calls_per_batch=settings.program_batch_calls,
        frame_bytes=settings.program_frame_bytes,
        output_kept=min(Limits().output_kept, settings.program_output_bytes),
        output_bytes=settings.program_output_bytes,
    )


@contextlib.asynccontextmanager
async def open_sandbox_worker(
    client: Client, settings: Settings, sandbox: Sandbox, blobs: ShownBlobStore, store: str
) -> AsyncGenerator[None]:
    """Serve programs: new ones from the common queue, those kept here from a queue of this worker's own."""
    queue = sandbox_queue(settings)
    resources = SandboxResources(
        sandbox=sandbox,
        blobs=blobs,
        redactor=Redactor(()),
        queue=f"{queue}-{uuid.uuid4().hex}",
        transient_s=settings.transient_seconds,
        sample_every=settings.program_sample_every,
    )
    options: dict[str, Any] = {
        "activities": sandbox_activities(resources),
        "max_concurrent_activities": PROGRAMS_AT_ONCE,
        "identity": identity_of(client, store),
        **_EVERY_WORKER,
    }
    async with Worker(client, task_queue=queue, **options), Worker(client, task_queue=resources.queue, **options):
        yield


async def find_blobs(client: Client, settings: Settings, store: str) -> tuple[ShownBlobStore, str]:
    """Return the payloads that the sandbox role works on, and the id of their store, which its parent may know.

    Raises WorkerMisfit.
    """
    if settings.payloads == "files":
        store = store or await await_marker(blobs_of(settings), _MARKER_S)
        return FileBlobStore(blobs_of(settings)), store
    from activities.programs.fetched_blobs import FetchedBlobStore, RunsRole

    runs_role = RunsRole(client, settings.task_queue)
    store = store or await runs_role.find_store()
    return FetchedBlobStore(runs_role, store), store


def sandbox_queue(settings: Settings) -> str:
    """Return the common queue of the sandbox role."""
    return f"{settings.task_queue}-sandbox"


def blobs_of(settings: Settings) -> Path:
    """Return the folder of payloads."""
    return settings.blobs or settings.home / "blobs"


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


async def missing_search_attributes(client: Client) -> "dict[str, IndexedValueType.ValueType]":
    """Return the search attributes that the namespace does not know; raises RPCError."""
    ask = ListSearchAttributesRequest(namespace=client.namespace)
    known = await client.operator_service.list_search_attributes(ask, timeout=_RPC_TIMEOUT)
    return {name: kind for name, kind in SEARCH_ATTRIBUTES.items() if name not in known.custom_attributes}


async def register_search_attributes(client: Client) -> frozenset[str]:
    """Register our search attributes where that is allowed; return those that the namespace knows."""
    known = frozenset[str]()
    with contextlib.suppress(RPCError):
        missing = await missing_search_attributes(client)
        known = frozenset(SEARCH_ATTRIBUTES.keys() - missing.keys())
        if missing:
            ask = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
            await client.operator_service.add_search_attributes(ask)
        return frozenset(SEARCH_ATTRIBUTES)
    return known


async def serve(role: Role, *, tells_jails: bool = False, store: str = "") -> int:
    """Serve until a signal comes, then drain; return the exit code.

    `store` is the id of the store of the worker that this one is a child of.
    """
    # The sandbox role reads no file that may hold a secret.
    settings = Settings.load(None) if role == "sandbox" else Settings.load()
    configure_logs(Redactor(settings.secrets()))
    if role != "sandbox":
        # What is wrong with the operator's files is said first: it needs no server to be seen.
        from activities.endpoints.models_file import read_models
        from toolbox.configuration.load import load

        read_policy(settings.policy)
        read_profiles(settings.profiles)
        read_models(settings)
        read_offered(settings)
        load(settings.toolbox, settings.environment, optional=not settings.names_toolbox)
        if not settings.toolbox.exists():
            sys.stderr.write(f"backstay worker: there is no {settings.toolbox} here, so runs have no tools\n")
    stop, place = asyncio.Event(), place_in_file(settings)
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with (
        open_telemetry(settings, role, tells_jails=tells_jails) as telemetry,
        connect(place.get("address"), namespace=place.get("namespace"), runtime=telemetry.runtime) as backstay,
        contextlib.AsyncExitStack() as stack,
    ):
        begin = partial(_begin_sandbox, store=store) if role == "sandbox" else partial(_begin_runs, role=role)
        places, ready = await begin(stack, settings, backstay.client, telemetry)
        gc.freeze()
        gc.enable()
        sys.stderr.write(f"{ready}\n")
        sys.stderr.flush()
        fault = await lost(places, stop)
    if fault:
        raise WorkerMisfit(fault)
    return 0


async def _begin_sandbox(
    stack: contextlib.AsyncExitStack, settings: Settings, client: Client, telemetry: Telemetry, *, store: str
) -> tuple[list[Place], str]:
    """Serve programs from now on; return what must not be lost under them, and what to say."""
    blobs, store = await find_blobs(client, settings, store)
    await demand_same_store(client, settings.task_queue, store)
    opening = open_sandbox(nsjail=settings.nsjail, home=settings.home, image=settings.image, limits=limits_of(settings))
    sandbox = await stack.enter_async_context(opening)
    await stack.enter_async_context(open_sandbox_worker(client, settings, sandbox, blobs, store))
    await stack.enter_async_context(telemetry.watching_jails(lambda: sandbox.ready))
    return places_of(settings), f"backstay sandbox ready: {client.namespace} {sandbox_queue(settings)}"


async def _begin_runs(
    stack: contextlib.AsyncExitStack, settings: Settings, client: Client, telemetry: Telemetry, *, role: Role
) -> tuple[list[Place], str]:
    """Serve runs from now on, with programs where the role says so; return as `_begin_sandbox`."""
    from gateways.terminal.sandbox_child import sandbox_child

    settings.claim_home()
    if opened := make_home(settings.home):
        structlog.get_logger("backstay.worker").warning("home.closed_to_others", folders=opened)
    store = await stack.enter_async_context(open_fit_store(settings, client))
    starting = None
    if role == "all":
        command = [
            sys.executable,
            str(HERE / "worker.py"),
            "--role",
            "sandbox",
            STORE,
            store.identity.id,
            *telemetry.flags,
        ]
        child = sandbox_child(settings, command, DRAIN, heard=telemetry.listener())
        starting = await stack.enter_async_context(child)
    resources = await stack.enter_async_context(open_resources(settings, client, store))
    configure_logs(resources.redactor, mask=resources.secrets.masked)
    programs = "" if starting is None else await starting
    models = (*resources.endpoints.names, *resources.profiles.models, *settings.prices)
    offered = {"models": models, "providers": resources.toolbox.names}
    await stack.enter_async_context(telemetry.watching(store, redact=resources.masked, **offered))
    await stack.enter_async_context(open_worker(client, resources, interceptors=telemetry.interceptors))
    await stack.enter_async_context(telling(settings, client, store))
    ready = f"backstay worker ready: {client.namespace} {settings.task_queue}, store {store.stamp}{programs}"
    return places_of(settings), ready


def places_of(settings: Settings) -> list[Place]:
    """Return the folders that a worker keeps open; one that is replaced under it would part it from the others."""
    home = Place("BACKSTAY_HOME", settings.home.absolute())
    return [home, Place("BACKSTAY_BLOBS", blobs_of(settings).absolute())] if settings.payloads == "files" else [home]


def main() -> int:
    """Serve in the role that the command line names."""
    parser = argparse.ArgumentParser(prog="worker.py", description=__doc__)
    parser.add_argument(
        "--role",
        choices=get_args(Role),
        default="all",
        help="runs: workflows, model and tools; sandbox: programs, in a process that holds no secret; all: both",
    )
    parser.add_argument(STORE, default="", help=argparse.SUPPRESS)
    parser.add_argument(TELLS_JAILS, action="store_true", help=argparse.SUPPRESS)
    return asyncio.run(serve(**vars(parser.parse_args())))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BackstayError as error:
        sys.stderr.write(f"backstay worker: {error}\n")
        sys.exit(2)
