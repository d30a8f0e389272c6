"""The worker: the only file where all roots meet.

What only the runs role needs is imported where it is used: the sandbox role starts in a third of the time, and holds no
code that knows a model, a tool or a database.
"""

import gc

if __name__ == "__main__":
    # A module that is imported stays until the end, and `serve` sets it aside once it is all there. Collections would
    # only walk through it, the last one as the process ends: a third of the time of a start and a stop.
    gc.disable()

import argparse
import asyncio
import contextlib
import importlib.util
import signal
import sys
import uuid
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import structlog
from temporalio.client import Client
from temporalio.worker import Interceptor, UnsandboxedWorkflowRunner, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

if TYPE_CHECKING:
    from activities.resources import Resources
    from store.store import Store

HERE = Path(__file__).resolve().parent


def refuse_foreign_rooms() -> None:
    """Exit if another distribution would be imported in place of one of backstay's folders."""
    for room in ("activities", "gateways", "opening", "people", "sandbox", "store", "system", "toolbox", "workflows"):
        found = importlib.util.find_spec(room)
        folder = Path(found.origin).resolve().parent if found is not None and found.origin is not None else None
        if folder is None or HERE not in {folder, folder.parent}:
            sys.stderr.write(f"backstay worker: {room!r} was imported from {folder}, not from {HERE}; ")
            sys.stderr.write("uninstall the package that brings it, or unset PYTHONSAFEPATH\n")
            sys.exit(2)


refuse_foreign_rooms()

from activities.programs.programs import SandboxResources, sandbox_activities
from activities.telemetry.opening import TELLS_JAILS, Telemetry, open_telemetry
from backstay.client import connect
from backstay.client.roles import Role, demand_same_store, identity_of, sandbox_queue
from backstay.errors import BackstayError, Transient, WorkerMisfit
from backstay.logs import configure_logs
from backstay.redaction.redactor import Redactor
from backstay.settings import Settings
from backstay.shown import file_line, one_line
from backstay.version import version
from gateways.served import place_of_temporal
from opening import (
    find_blobs,
    limits_of,
    open_fit_store,
    open_resources,
    places_of,
    read_policy,
    require_files,
    sandbox_variables,
)
from sandbox.isolation.way import make_home
from sandbox.programs.sandbox import Sandbox, open_sandbox
from store.blobs.shown import ShownBlobStore
from system.places import WatchedPath, lost
from system.tasks import background

PROGRAMS_AT_ONCE = 8
"""Programs that compute at the same time; paused ones do not count."""
CACHED_RUNS = 400
"""A run that waits for a person takes some 120 kB; one that was let go of is replayed as it goes on."""
STORE = "--store"
"""The option by which a worker tells its child which store it has; the child cannot ask before it serves."""
_PATIENCE_S = 30.0
DRAIN = timedelta(seconds=35)
"""Longer than the request deadline, so that what was sent is also settled."""
_EVERY_WORKER: dict[str, Any] = {"graceful_shutdown_timeout": DRAIN, "build_id": version()}
"""Without an id Temporal reads the code of all imported modules to make one up: half of the time of a start."""


def open_worker(
    client: Client,
    resources: "Resources",
    *,
    sandboxed: bool = False,
    interceptors: Sequence[Interceptor] = (),
    **options: Any,
) -> Worker:
    """Return a worker that serves the whole menu.

    Temporal's workflow sandbox looks for nondeterminism at run time; it loads the workflow code anew for every run,
    which costs half a megabyte each. The house rules and the tests of replay, which run sandboxed, look for it instead.
    """
    from activities.programs.payload_server import payload_activities
    from activities.registry import run_activities
    from activities.slots import open_tuner
    from workflows import WORKFLOWS

    options.setdefault("max_cached_workflows", CACHED_RUNS)
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
        tuner=open_tuner(),
        interceptors=[resources.cached_runs, *interceptors],
        **_EVERY_WORKER,
        **options,
    )


@contextlib.asynccontextmanager
async def telling(settings: Settings, client: Client, store: "Store") -> AsyncGenerator[None]:
    """Send notices to the addresses that the settings name, and close requests of runs that ended unseen."""
    from gateways.mail.mail import mail_of
    from gateways.webhooks import open_webhooks
    from people.notices.delivering import delivering, tidying

    known = read_policy(settings.policy).people
    mail = mail_of(settings, known=known, requests=store.requests, mark=store.connections.mark)
    async with (
        connect(client=client, task_queue=settings.task_queue) as backstay,
        open_webhooks(settings) as webhooks,
        delivering(store.outbox, [*webhooks, *mail]),
        tidying(store, backstay, settings.url or ""),
    ):
        yield


async def tell_index(resources: "Resources") -> None:
    """Say what each provider offers, or why it cannot be asked, a line each; the worker does not wait for servers."""
    with contextlib.suppress(BackstayError):
        for name, found in sorted((await resources.toolbox.index(_PATIENCE_S)).items()):
            kind = "unavailable" if found.reason else "tools"
            sys.stderr.write(f"backstay worker {kind}: {one_line(name, 60)}: {found.reason or found.words}\n")
        sys.stderr.flush()


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


async def serve(role: Role, *, tells_jails: bool = False, store: str = "") -> int:
    """Serve until a signal comes, then drain; return the exit code.

    `store` is the id of the store of the worker that this one is a child of.
    """
    # The sandbox role reads no file that may hold a secret.
    settings = Settings.load(None) if role == "sandbox" else Settings.load()
    configure_logs(Redactor(settings.secrets()))
    if role != "sandbox":
        # Faults of the operator's files come first: it needs no server to be seen.
        require_files(settings)
        if not settings.toolbox.exists():
            sys.stderr.write(f"backstay worker: there is no {settings.toolbox} here, so runs have no tools\n")
    stop, place = asyncio.Event(), place_of_temporal(settings)
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
) -> tuple[list[WatchedPath], str]:
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
) -> tuple[list[WatchedPath], str]:
    """Serve runs from now on, with programs where the role says so; return as `_begin_sandbox`."""
    from sandbox.role import sandbox_child
    from store.ledger.roots import made_daily

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
        log = settings.home / "logs" / "sandbox.log"
        child = sandbox_child(command, sandbox_variables(settings), log, DRAIN, heard=telemetry.listener())
        starting = await stack.enter_async_context(child)
    resources = await stack.enter_async_context(open_resources(settings, client, store))
    configure_logs(resources.redactor, mask=resources.secrets.masked)
    programs = "" if starting is None else await starting
    models = (*resources.endpoints.names, *resources.profiles.models, *settings.prices)
    offered = {"models": models, "providers": resources.toolbox.names}
    await stack.enter_async_context(telemetry.watching(store, redact=resources.masked, **offered))
    await stack.enter_async_context(open_worker(client, resources, interceptors=telemetry.interceptors))
    await stack.enter_async_context(telling(settings, client, store))
    await stack.enter_async_context(made_daily(store.roots))
    await stack.enter_async_context(background(tell_index(resources)))
    ready = f"backstay worker ready: {client.namespace} {settings.task_queue}, store {store.stamp}{programs}"
    return places_of(settings), ready


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
        # A service manager need not start it again where an operator must do something first.
        sys.exit(1 if isinstance(error, Transient) and not isinstance(error, WorkerMisfit) else 2)
    except OSError as error:
        if not (said := file_line(error)):
            raise
        sys.stderr.write(f"backstay worker: {said}\n")
        sys.exit(2)
