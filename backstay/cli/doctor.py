"""The command `doctor`: say for each part whether it works, and what to do where it does not."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.service import RPCError

from backstay.cli.session import books, quiet, session
from backstay.cli.terminal import Terminal
from backstay.client import Backstay
from backstay.errors import BackstayError, ImageMissing, IsolationUnavailable
from backstay.library import house, room
from backstay.settings import Settings
from backstay.shown import one_line

_ATTRIBUTES = ("BackstayState", "BackstayUser", "BackstayPending", "BackstayCostUsd")
_PATIENCE = timedelta(seconds=5)
_MODEL_S = 10.0

Finding = tuple[str, str, str]
"""ok, missing or note; what; the finding with its cause and what to do."""


async def doctor() -> int:
    """Check Temporal, worker, store, tools, policy and model; nothing that costs money is done."""
    settings = Settings.load()
    quiet(settings)
    terminal = Terminal()
    sick = False
    for check in (_temporal, _store, _policy, _toolbox, _model, _price, _jails, _workspaces):
        try:
            async for state, what, finding in check(settings):
                sick = sick or state == "missing"
                terminal.result(f"{state:<8} {what:<18} {finding}")
        except BackstayError as error:
            sick = True
            terminal.result(f"missing  {check.__name__[1:]:<18} {error}")
    return 1 if sick else 0


async def _temporal(settings: Settings) -> AsyncGenerator[Finding]:
    async with session(settings) as backstay:
        config = backstay.client.service_client.config
        yield "ok", "temporal", f"{config.target_host}, namespace {backstay.client.namespace}"
        try:
            yield await _attributes(backstay)
            yield await _worker(backstay)
        except RPCError as error:
            yield "missing", "worker", f"Temporal does not tell: {error.message}"


async def _attributes(backstay: Backstay) -> Finding:
    ask = ListSearchAttributesRequest(namespace=backstay.client.namespace)
    try:
        known = await backstay.client.operator_service.list_search_attributes(ask, timeout=_PATIENCE)
    except RPCError as error:
        return "note", "search attributes", f"cannot be read ({error.message}); runs work without them"
    missing = [name for name in _ATTRIBUTES if name not in known.custom_attributes]
    if missing:
        return "note", "search attributes", f"{', '.join(missing)} not registered; a worker does so where it may"
    return "ok", "search attributes", ", ".join(_ATTRIBUTES)


async def _worker(backstay: Backstay) -> Finding:
    ask = DescribeTaskQueueRequest(
        namespace=backstay.client.namespace,
        task_queue=TaskQueue(name=backstay.task_queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    answer = await backstay.client.workflow_service.describe_task_queue(ask, timeout=_PATIENCE)
    names = sorted({poller.identity for poller in answer.pollers})
    if not names:
        return "missing", "worker", f"nobody polls task queue {backstay.task_queue!r}; start `backstay worker`"
    return "ok", "worker", f"{', '.join(names)} on task queue {backstay.task_queue}"


async def _store(settings: Settings) -> AsyncGenerator[Finding]:
    async with books(settings) as store:
        yield "ok", "store", f"{store.stamp} in {settings.home}" if settings.database_url is None else store.stamp


async def _policy(settings: Settings) -> AsyncGenerator[Finding]:
    policy = await asyncio.to_thread(room("worker").read_policy, settings.policy)
    if settings.policy.exists():
        yield "ok", "policy", f"{settings.policy}, hash {policy.policy_hash[:12]}"
    else:
        yield "note", "policy", f"{settings.policy} does not exist; the default rules: reading is free, writing asks"


async def _toolbox(settings: Settings) -> AsyncGenerator[Finding]:
    open_toolbox: Any = room("toolbox.toolbox").open_toolbox
    jail = room("sandbox.isolation.command_jail").CommandJail(
        nsjail=settings.nsjail, home=settings.home, image=settings.image
    )
    async with open_toolbox(
        settings.toolbox, environment=settings.environment, home=settings.home, confinement=jail
    ) as toolbox:
        catalog = await toolbox.catalog("singleton")
        providers = sorted({one.provider for one in catalog.definitions.values()} | catalog.unavailable.keys())
        for name in providers:
            reason = catalog.unavailable.get(name)
            count = sum(1 for one in catalog.definitions.values() if one.provider == name)
            yield (
                ("ok", f"server {name}", f"{count} tools") if reason is None else ("missing", f"server {name}", reason)
            )
        for problem in catalog.problems:
            yield "note", "toolbox", problem
        if not providers:
            yield "note", "toolbox", f"{settings.toolbox} names no server that user 'singleton' may use"


async def _model(settings: Settings) -> AsyncGenerator[Finding]:
    if settings.openai_api_key is None and settings.openai_base_url is None:
        yield "missing", "model", "set OPENAI_API_KEY, or OPENAI_BASE_URL for another endpoint; plans need no model"
        return
    where = settings.openai_base_url or "the vendor's own endpoint"
    try:
        async with room("worker").open_model(settings) as model, asyncio.timeout(_MODEL_S):
            listed = {one.id async for one in await model.models.list()}
    except TimeoutError:
        yield "missing", "model", f"{where} does not answer within {_MODEL_S:g} s"
    except Exception as error:  # the client raises many kinds; each is a finding here
        said = one_line(str(error), 200)
        yield "missing", "model", f"{where}: {type(error).__name__}: {said}; check OPENAI_BASE_URL and OPENAI_API_KEY"
    else:
        known = settings.model in listed or not listed
        yield (
            "ok" if known else "note",
            "model",
            f"{where} answers" + ("" if known else f"; not listed: {settings.model}"),
        )


async def _price(settings: Settings) -> AsyncGenerator[Finding]:
    if room("activities.model.pricing").price_of(settings, settings.model) is None:
        yield "missing", "price", f"none is known for {settings.model}; set BACKSTAY_PRICES for it"
    else:
        yield "ok", "price", f"known for {settings.model}"


async def _jails(settings: Settings) -> AsyncGenerator[Finding]:
    """Prove every property of a jail through a jail."""
    examine: Any = room("sandbox.programs.sandbox").examine
    try:
        proof = await examine(nsjail=settings.nsjail, home=settings.home, image=settings.image)
    except (IsolationUnavailable, ImageMissing) as error:
        yield "missing", "jail", f"{error}; no program is offered to a model"
        return
    yield "ok", "jail", f"{proof.nsjail.path}, image {proof.image[:12]}, answers in {1000 * proof.answered_s:.0f} ms"
    for one in proof.properties:
        if one.proven:
            yield "ok", "jail", f"{one.name}: proven"
        else:
            state = "missing" if one.required else "note"
            yield state, "jail", f"{one.name}: not proven: {one.cause}; {one.fix}"


async def _workspaces(settings: Settings) -> AsyncGenerator[Finding]:
    """Prove that commands in workspaces are confined, by starting the host that a worker would start."""
    opened = room("sandbox.workspaces.client").open_workspace_client(
        settings.workspaces, home=settings.home, nsjail=settings.nsjail, rooms=house(), variables=settings.environment
    )
    async with opened as client:
        try:
            await client.start()
        except BackstayError as error:
            state = "note" if settings.workspaces is None else "missing"
            yield state, "workspaces", f"{error}; no run can be given one"
        else:
            yield "ok", "workspaces", f"{settings.workspaces or settings.home / 'workspaces'}: every property proven"
