"""The worker: the only file where all roots meet."""

import asyncio
import contextlib
import importlib.util
import signal
import sys
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import openai
import yaml
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

HERE = Path(__file__).resolve().parent


def refuse_foreign_rooms() -> None:
    """Exit before a room of the same name from another distribution is imported instead of ours."""
    for room in ("activities", "store", "toolbox", "workflows"):
        found = importlib.util.find_spec(room)
        folder = Path(found.origin).resolve().parent if found is not None and found.origin is not None else None
        if folder is None or folder.parent != HERE:
            sys.stderr.write(f"backstay worker: {room!r} was imported from {folder}, not from {HERE}; ")
            sys.stderr.write("uninstall the package that brings it, or unset PYTHONSAFEPATH\n")
            sys.exit(2)


refuse_foreign_rooms()

import workflows
from activities import Resources, bodies
from backstay.client import connect
from backstay.errors import BackstayError, SettingsInvalid
from backstay.logs import configure_logs
from backstay.policy import Policy
from backstay.redaction import Redactor
from backstay.settings import Settings
from store import open_store
from toolbox import open_toolbox
from toolbox.load import load

DRAIN = timedelta(seconds=35)
"""Longer than the request deadline, so that what was sent is also settled."""


def read_policy(path: Path) -> Policy:
    """Return the operator's policy; without a file, the default one. Raises SettingsInvalid or PolicyInvalid."""
    if not path.exists():
        return Policy()
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise SettingsInvalid(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    return Policy.admit(data)


def open_model(settings: Settings) -> openai.AsyncOpenAI:
    """Return the one model client of this process; retries are the workflow's, so that they are visible and charged."""
    key = settings.openai_api_key
    return openai.AsyncOpenAI(
        api_key=key.get_secret_value() if key is not None else "none",
        base_url=settings.openai_base_url,
        max_retries=0,
        timeout=httpx2.Timeout(240, connect=5),
    )


@contextlib.asynccontextmanager
async def open_resources(settings: Settings, client: Client) -> AsyncGenerator[Resources]:
    """Open store, toolbox and model for one worker, and close them at the end."""
    policy = read_policy(settings.policy)
    keys = [key.get_secret_value() for key in settings.encryption_keys]
    async with (
        open_store(
            database_url=settings.database_url_text, home=settings.home, blobs=settings.blobs, encryption_keys=keys
        ) as opened,
        open_toolbox(settings.toolbox, environment=settings.environment, home=settings.home) as tools,
        open_model(settings) as model,
    ):
        yield Resources(
            settings=settings,
            store=opened,
            toolbox=tools,
            policy=policy,
            redactor=Redactor(settings.secrets() | tools.secrets),
            model=model,
            temporal=client,
            search_attributes=await register_search_attributes(client),
        )


def open_worker(client: Client, resources: Resources, *, sandboxed: bool = False, **options: Any) -> Worker:
    """Return a worker that serves the whole menu.

    Temporal's workflow sandbox looks for nondeterminism at run time; it loads the workflow code anew for every run,
    which costs half a megabyte each. The house rules and the tests, which run sandboxed, look for it instead.
    """
    restrictions = SandboxRestrictions.default.with_passthrough_modules("backstay", "pydantic_core", "annotated_types")
    runner = SandboxedWorkflowRunner(restrictions=restrictions) if sandboxed else UnsandboxedWorkflowRunner()
    return Worker(
        client,
        task_queue=resources.settings.task_queue,
        workflows=workflows.WORKFLOWS,
        activities=bodies(resources),
        workflow_runner=runner,
        graceful_shutdown_timeout=DRAIN,
        **options,
    )


async def register_search_attributes(client: Client) -> bool:
    """Register our search attributes where that is allowed; return whether the namespace knows them."""
    kinds = {
        "BackstayState": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
        "BackstayUser": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
        "BackstayPending": IndexedValueType.INDEXED_VALUE_TYPE_INT,
        "BackstayCostUsd": IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
    }
    operator = client.operator_service
    with contextlib.suppress(RPCError):
        known = await operator.list_search_attributes(ListSearchAttributesRequest(namespace=client.namespace))
        missing = {name: kind for name, kind in kinds.items() if name not in known.custom_attributes}
        if missing:
            await operator.add_search_attributes(
                AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
            )
        return True
    return False


async def main() -> int:
    """Serve until a signal comes, then drain; return the exit code."""
    settings = Settings.load()
    configure_logs(Redactor(settings.secrets()))
    # What is wrong with the operator's files is said first: it needs no server to be seen.
    read_policy(settings.policy)
    load(settings.toolbox, settings.environment)
    async with connect() as backstay, open_resources(settings, backstay.client) as resources:
        configure_logs(resources.redactor)
        stop = asyncio.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        client = backstay.client
        async with open_worker(client, resources):
            sys.stderr.write(
                f"backstay worker ready: {client.namespace} {settings.task_queue}, store {resources.store.stamp}\n"
            )
            sys.stderr.flush()
            await stop.wait()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except BackstayError as error:
        sys.stderr.write(f"backstay worker: {error}\n")
        sys.exit(2)
