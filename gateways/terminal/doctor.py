"""The commands `doctor`, which checks every part and says how to fix it, and `health`, which asks one worker only."""

import asyncio
import socket
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.service import RPCError

from backstay.client import Backstay
from backstay.client.executions import SEARCH_ATTRIBUTES, missing_search_attributes
from backstay.client.failures import SWITCH_ON, UPDATES
from backstay.client.roles import Role, find_sandbox, polls_here
from backstay.client.workers import pollers
from backstay.errors import (
    BackstayError,
    ImageMissing,
    IsolationUnavailable,
    PolicyInvalid,
    SettingsInvalid,
    ToolboxInvalid,
)
from backstay.redaction.redactor import Redactor
from backstay.settings import Settings
from backstay.shown import file_line, one_line
from backstay.variables import ENV_FILE
from gateways.served import may_serve
from gateways.terminal.local.serving import serving_beside, settings_for
from gateways.terminal.policies.check import compared, misnamed_quotas
from gateways.terminal.session import open_store, session, silence_logs
from gateways.terminal.terminal import Terminal

_ANSWER_S = 10.0
_NOT_WELL = 1

Finding = tuple[str, str, str]
"""State (ok, missing or note), part, and the finding with its cause and fix."""


async def doctor(
    *,
    every: Annotated[bool, Parameter(name="--all", negative="")] = False,
    believe: str | None = None,
    forget: str | None = None,
) -> int:
    """Check Temporal, worker, store, policy, tools, model and sandbox, and say how to fix each; costs no money.

    Parameters
    ----------
    every
        Show every check, including those that passed.
    believe
        A model whose bill above what was asked for was a mistake: nothing more is reserved for it from now on.
    forget
        A model whose endpoint was mended: the findings of workers and runs about it are forgotten, bills included.
    """
    settings = Settings.load()
    settings.claim_home()
    if believe is not None:
        return _believe(settings, believe)
    if forget is not None:
        return _forget(settings, forget)
    silence_logs(settings)
    terminal, counts = Terminal(), Counter[str]()
    async for state, what, finding in _findings(await _as_served(settings)):
        counts[state] += 1
        if every or state != "ok":
            terminal.result(f"{state:<8} {what:<18} {finding}")
    others = f"; {counts['missing']} missing, {counts['note']} noted" if counts["missing"] or counts["note"] else ""
    terminal.result(f"{'missing' if counts['missing'] else 'ok':<8} {counts['ok']} checks passed{others}")
    return 1 if counts["missing"] else 0


def _believe(settings: Settings, model: str) -> int:
    """Clear what is doubted of the bills of a model."""
    from activities.model.bills import Bills

    terminal = Terminal()
    if not Bills(settings.home).believe(model):
        terminal.say(f"no bill of {model} is doubted here", "yellow")
        return _NOT_WELL
    terminal.say(f"the bills of {model} are believed again", "green")
    return 0


def _forget(settings: Settings, model: str) -> int:
    """Let workers of this home, and runs, ask a model as at first."""
    from activities.endpoints.models_file import read_models
    from activities.model.bills import Bills
    from activities.model.learned import ForgottenModels, LearnedDialects

    terminal = Terminal()
    listed = read_models(settings).file.models
    dialects = LearnedDialects(settings.home).forget(model)
    doubts = Bills(settings.home).believe(model)
    if not dialects and not doubts and model not in {*listed, settings.model}:
        terminal.say(f"nothing is known of {one_line(model, 80)} here, and models.yaml has no such entry", "yellow")
        return _NOT_WELL
    ForgottenModels(settings.home).forget(model)
    what = " and ".join([*(["what it refused"] if dialects else []), *(["what it billed"] if doubts else [])])
    terminal.say(f"{model} is asked as at first again{f'; forgotten: {what}' if what else ''}", "green")
    return 0


async def _bills(settings: Settings) -> AsyncGenerator[Finding]:
    """Yield the models of which more is reserved than a call should cost."""
    from activities.model.bills import Bills

    now = time.time()
    for doubt in Bills(settings.home).doubts().values():
        if doubt.now(now) > 1:
            yield "note", "bills", doubt.told(now)


async def _dialects(settings: Settings) -> AsyncGenerator[Finding]:
    """Yield what endpoints have refused, and how they are asked since."""
    from activities.model.learned import LearnedDialects

    for found in LearnedDialects(settings.home).lately():
        yield "note", "dialect", one_line(found.told(), 600)


async def _as_served(settings: Settings) -> Settings:
    """Return the settings with the scripted model where a `dev` beside this command serves one to its worker."""
    # Of a home that cannot be read, the checks tell.
    with suppress(BackstayError, OSError):
        if not may_serve(settings.home):
            return settings
        async with session(settings) as backstay:
            serving = serving_beside(settings.home, backstay.client)
        if serving is not None and serving.script is not None:
            return settings_for(settings, serving.script)
    return settings


async def health(*, role: Literal["all", "runs", "sandbox"] = "runs") -> int:
    """Exit with 0 if a worker on this host has asked Temporal for work in the last 90 seconds, else with 1.

    Parameters
    ----------
    role
        Which worker is meant; `all` and `runs` are the one that drives runs.
    """
    terminal, said = Terminal(), list[str]()
    for settings in _settings_of(role):
        try:
            async with session(settings) as backstay:
                if await polls_here(backstay.client, settings, role):
                    terminal.result(f"the worker of role {role} on {socket.gethostname()} asks for work")
                    return 0
            said.append(f"no worker of role {role} on {socket.gethostname()} has asked for work lately")
        except (BackstayError, RPCError) as error:
            said.append(f"Temporal cannot be asked: {error}")
    for line in dict.fromkeys(said):
        terminal.say(line, "red")
    return _NOT_WELL


def _settings_of(role: Role) -> list[Settings]:
    """Return the settings that a worker of this role may have."""
    if role != "sandbox":
        return [Settings.load()]
    # A sandbox role of its own reads no file; the worker that starts one as its child gives it what `.env` says.
    found = [Settings.load(None)]
    with suppress(SettingsInvalid):
        found += [Settings.load()] if ENV_FILE.is_file() else []
    return found


async def _findings(settings: Settings) -> AsyncGenerator[Finding]:
    models = (_models, _bills, _dialects)
    for check in (_temporal, _store, _files, _policy, _profiles, _toolbox, _names, *models, _jails, _workspaces, _told):
        try:
            async for finding in check(settings):
                yield finding
        except BackstayError as error:
            yield "missing", check.__name__[1:], str(error)
        except OSError as error:
            yield "missing", check.__name__[1:], file_line(error) or str(error)


async def _temporal(settings: Settings) -> AsyncGenerator[Finding]:
    async with session(settings) as backstay:
        config = backstay.client.service_client.config
        yield "ok", "temporal", f"{config.target_host}, namespace {backstay.client.namespace}"
        try:
            yield await _updates(backstay)
            yield await _attributes(backstay)
            yield await _worker(backstay)
        except RPCError as error:
            yield "missing", "worker", f"Temporal does not answer: {error.message}"


async def _updates(backstay: Backstay) -> Finding:
    """Check that the namespace takes updates; a server that says nothing of that is taken to."""
    named = DescribeNamespaceRequest(namespace=backstay.client.namespace)
    service, within = backstay.client.workflow_service, timedelta(seconds=_ANSWER_S)
    try:
        told = (await service.describe_namespace(named, timeout=within)).namespace_info
    except RPCError as error:
        return "note", "updates", f"cannot be checked ({error.message})"
    can = told.capabilities
    lacks = [switch for switch, has in zip(UPDATES, (can.sync_update, can.async_update), strict=True) if not has]
    if lacks and told.HasField("capabilities"):
        return "missing", "updates", f"no decision reaches a run: {' and '.join(lacks)}; {SWITCH_ON}"
    return "ok", "updates", "the namespace takes them"


async def _attributes(backstay: Backstay) -> Finding:
    try:
        missing = await missing_search_attributes(backstay.client)
    except RPCError as error:
        return "note", "search attributes", f"cannot be read ({error.message}); runs work without them"
    if missing:
        return "note", "search attributes", f"{', '.join(missing)} not registered; a worker registers them if it may"
    return "ok", "search attributes", ", ".join(SEARCH_ATTRIBUTES)


async def _worker(backstay: Backstay) -> Finding:
    names = await pollers(backstay.client, backstay.task_queue)
    if not names:
        return "missing", "worker", f"no worker polls task queue {backstay.task_queue!r}; start `backstay worker`"
    return "ok", "worker", f"{', '.join(names)} on task queue {backstay.task_queue}"


async def _store(settings: Settings) -> AsyncGenerator[Finding]:
    async with open_store(settings) as store:
        yield "ok", "store", f"{store.stamp} in {settings.home}" if settings.database_url is None else store.stamp
        if fault := await store.fitness.fault():
            yield "missing", "payloads", fault
        else:
            yield "ok", "payloads", f"large ones are in {settings.payloads}"


async def _files(settings: Settings) -> AsyncGenerator[Finding]:
    from opening import require_closed, tool_modules

    count = await asyncio.to_thread(lambda: require_closed(settings, tool_modules(settings)))
    yield "ok", "files", f"nobody else can write the {count} that workers read"


async def _policy(settings: Settings) -> AsyncGenerator[Finding]:
    from opening import read_policy

    policy = await asyncio.to_thread(read_policy, settings.policy)
    if settings.policy.exists():
        yield "ok", "policy", f"{settings.policy}, hash {policy.policy_hash[:12]}"
    else:
        yield (
            "note",
            "policy",
            f"{settings.policy} is missing; the default rules apply: reads are allowed, writes ask",
        )


async def _profiles(settings: Settings) -> AsyncGenerator[Finding]:
    from opening import read_profiles

    profiles = await asyncio.to_thread(read_profiles, settings.profiles)
    known = ", ".join(profiles)
    missing = "" if settings.profiles.exists() else f"{settings.profiles} is missing; built in: "
    yield "ok", "profiles", f"{missing}{known}"
    remembering = [name for name in profiles if any(profiles.named(name).memory.plain().values())]
    if remembering and settings.approver_key is None:
        said = (
            f"{', '.join(remembering)} would use it, but no run has any: without BACKSTAY_APPROVER_KEY none is proven "
        )
        yield "note", "memory", f"{said}to be a user's; set the key here and where runs are started"


async def _toolbox(settings: Settings) -> AsyncGenerator[Finding]:
    from opening import open_toolbox

    async with open_toolbox(settings) as toolbox:
        catalog = await toolbox.catalog("singleton")
    counts = Counter(definition.provider for definition in catalog.definitions.values())
    for name in sorted(counts.keys() | catalog.unavailable.keys()):
        reason = catalog.unavailable.get(name)
        yield "missing" if reason else "ok", f"server {name}", reason or f"{counts[name]} tools"
    for problem in catalog.problems:
        yield "note", "toolbox", problem
    if not counts and not catalog.unavailable:
        how = "`backstay toolbox add NAME -- COMMAND` adds one"
        yield "note", "toolbox", f"{settings.toolbox} names no server that user 'singleton' may use; {how}"


async def _names(settings: Settings) -> AsyncGenerator[Finding]:
    """Compare what policy and profiles name with the toolbox; parts of them that cannot be read are named."""
    for what, compare in (("policy", compared), ("profiles", misnamed_quotas)):
        with suppress(SettingsInvalid, PolicyInvalid, ToolboxInvalid):
            for found in await compare(settings):
                state = "missing" if found.state == "error" else "note"
                yield state, what, f"{found.where}: {found.said}"


async def _models(settings: Settings) -> AsyncGenerator[Finding]:
    """Check the models that runs are driven by, one after another, and those that are asked for something else."""
    from opening import open_endpoints

    async with open_endpoints(settings) as endpoints:
        main = endpoints.main()
        targets = [*endpoints.chain(main), *endpoints.chain_for("perception"), *endpoints.chain_for("closing")]
        for target in {target.name: target for target in targets}.values():
            what = "model" if target is main else f"model {target.name}"
            async for finding in _model(settings, target, what):
                yield finding
            if target.price is None:
                fix = "give it a price in models.yaml" if target.listed else "set BACKSTAY_PRICES"
                yield "missing", "price", f"no price is known for {target.name}; {fix}"
            else:
                yield "ok", "price", f"known for {target.name}"


async def _model(settings: Settings, target: Any, what: str) -> AsyncGenerator[Finding]:
    from activities.endpoints.endpoints import models_of

    if not target.listed and not settings.has_endpoint:
        without = "plans need no model, and `backstay dev --scripted` brings its own"
        yield "missing", what, f"set OPENAI_API_KEY, or OPENAI_BASE_URL for another endpoint; {without}"
        return
    if settings.withheld_key and not target.listed:
        yield (
            "note",
            what,
            "OPENAI_API_KEY of the environment is not sent to OPENAI_BASE_URL of .env; write the key beside it",
        )
    where = target.where
    try:
        async with asyncio.timeout(_ANSWER_S):
            known = {*await models_of(target)}
    except TimeoutError:
        yield "missing", what, f"{where} does not answer within {_ANSWER_S:g} s"
    except Exception as error:  # the client raises many kinds; each is a finding here
        line = one_line(Redactor((target.client.api_key,)).text(str(error)), 200)
        fix = "check the endpoint in models.yaml" if target.listed else "check OPENAI_BASE_URL and OPENAI_API_KEY"
        yield "missing", what, f"{where}: {type(error).__name__}: {line}; {fix}"
    else:
        if target.model in known or not known:
            yield "ok", what, f"{where} answers"
        else:
            yield "note", what, f"{where} answers, but does not list {target.model}"


async def _jails(settings: Settings) -> AsyncGenerator[Finding]:
    """Prove every property of a jail through a jail."""
    from sandbox.programs.sandbox import examine

    try:
        proof = await examine(nsjail=settings.nsjail, home=settings.home, image=settings.image)
    except (IsolationUnavailable, ImageMissing) as error:
        elsewhere = await _polling_sandbox(settings)
        if elsewhere:
            yield "ok", "jail", f"none here ({error}); a worker of the sandbox role runs programs: {elsewhere}"
        else:
            yield "missing", "jail", f"{error}; models are offered no programs"
        return
    yield "ok", "jail", f"{proof.nsjail.path}, image {proof.image[:12]}, answers in {1000 * proof.answered_s:.0f} ms"
    for proven in proof.properties:
        if proven.proven:
            yield "ok", "jail", f"{proven.name}: proven"
        else:
            state = "missing" if proven.required else "note"
            yield state, "jail", f"{proven.name}: not proven: {proven.cause}; {proven.fix}"


async def _polling_sandbox(settings: Settings) -> str:
    """Return the queue of the sandbox role where a worker of it asks for work, perhaps in another container."""
    try:
        async with session(settings) as backstay:
            return await find_sandbox(backstay.client, settings)
    except BackstayError:
        return ""


async def _workspaces(settings: Settings) -> AsyncGenerator[Finding]:
    """Prove that commands in workspaces are confined, by starting the host that a worker would start."""
    from opening import open_workspaces

    async with open_workspaces(settings) as client:
        try:
            await client.start()
        except BackstayError as error:
            named = settings.workspaces or settings.shell_root
            state = "note" if named is None else "missing"
            yield state, "workspaces", f"{error}; no run can have one"
        else:
            root = f"; commands run in {client.root}" if client.root else ""
            place = settings.workspaces or settings.home / "workspaces"
            yield "ok", "workspaces", f"{place}: every property proven{root}"


async def _told(settings: Settings) -> AsyncGenerator[Finding]:
    """Check how people and other programs are told what is asked of them."""
    from gateways.mail.mail import mail_of

    if settings.notify_urls and settings.webhook_key is None:
        yield "note", "webhooks", "notices are not signed, so a receiver cannot tell ours; set BACKSTAY_WEBHOOK_KEY"
    for mail in mail_of(settings):
        yield "ok", "mail", f"through {mail.where}"
