"""The resources that the activities work with; built once per worker."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import structlog
from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError

from activities.cached_runs import CachedRuns
from activities.definitions import DefinitionFolder
from activities.endpoints.endpoints import Endpoints
from activities.owners import Owners
from activities.records import Records, RunSecrets
from activities.telemetry.attributes import note_event
from backstay.client.executions import began_at, described
from backstay.errors import ArgumentsInvalid, BackstayError, RunNotFound, StoreUnavailable
from backstay.logs import log_event
from backstay.policies.policy import Policy
from backstay.profile import Profiles
from backstay.redaction.redactor import Redactor
from backstay.requests import CallTogether, CallTool, FollowTask, OfRun, SettleEffect
from backstay.settings import Settings
from backstay.task.event import Event
from backstay.tools.tool import BUILTIN, Tool, WorkspaceLimits
from sandbox.limits import shell_limits
from sandbox.workspaces.client import WorkspaceClient
from store.database.transactions import Transaction
from store.database.waiting import Waiting
from store.runs.events import WrittenEvents
from store.store import Store
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition
from toolbox.manifest.builder import masked
from toolbox.providers.provider import Caller, WorkspaceAccess
from toolbox.toolbox import Toolbox

OfEffect = TypeVar("OfEffect", CallTool, FollowTask, SettleEffect)
_log = structlog.get_logger("backstay.toolbox")


def facts_of(catalog: Catalog, definition: Definition) -> Tool:
    """Return what the workflow must know of a tool in order to rule on it."""
    undo = catalog.undo_of(definition)
    by_id = catalog.undo_by_effect_id_of(definition)
    facts: dict[str, Any] = {"changed": definition.name in catalog.changed, "undo_by_effect_id": by_id is not None}
    if (target := undo or by_id) is not None:
        facts |= {"undo_tool": target.name, "undo_calls": target.tool.calls}
    if by_id is not None:
        facts["undo_by_id_tool"] = by_id.name
    providers = {definition.provider, *(name.partition(".")[0] for name in definition.tool.calls)}
    facts["starts_process"] = any(name == "shell" or catalog.kinds.get(name) == "plugin" for name in providers)
    return definition.tool.model_copy(update=facts)


def workspace_access_of(ask: OfRun, limits: WorkspaceLimits | None = None) -> WorkspaceAccess | None:
    """Return the workspace that the calls of a run use, or None if it has none."""
    if not ask.workspace:
        return None
    place = ask.workspace_place
    return WorkspaceAccess(run=ask.run, workspace=ask.workspace, place=place, writable=True, limits=limits)


def jail_limits(settings: Settings) -> WorkspaceLimits:
    """Return what a call in a workspace may use at most."""
    most = shell_limits()
    return WorkspaceLimits(memory_mb=most.memory_mb, cpu_s=most.cpu_s, artifacts_mb=settings.artifacts_mb)


def rulings_in(ask: OfRun) -> dict[int, str]:
    """Return what policy says of the calls of a request, by the numbers of the drafts that tell of them."""
    match ask:
        case CallTool():
            return {ask.draft: ask.ruling}
        case CallTogether():
            return {call.draft: call.ruling for call in ask.calls}
        case _:
            return {}


async def require_valid(definition: Definition, arguments: dict[str, Any]) -> None:
    """Raise ArgumentsInvalid when the arguments do not fit the tool's schema."""
    fault = await definition.check(arguments)
    if fault is not None:
        raise ArgumentsInvalid(f"{definition.name}: {fault}")


@dataclass(frozen=True)
class Resources:
    """Hold the open resources of one worker."""

    settings: Settings
    store: Store
    toolbox: Toolbox
    policy: Policy
    profiles: Profiles
    definitions: DefinitionFolder
    redactor: Redactor
    endpoints: Endpoints
    temporal: Client
    search_attributes: frozenset[str]
    find_sandbox: Callable[[], Awaitable[str]]
    """Returns the queue of the sandbox role when a worker polls it."""
    workspaces: WorkspaceClient
    """Claims workspaces for runs, and releases them."""
    cached_runs: CachedRuns = field(default_factory=CachedRuns)

    @cached_property
    def owners(self) -> Owners:
        """Return what knows whose connections and memory runs may use."""
        return Owners(self.settings, self.store)

    @cached_property
    def secrets(self) -> RunSecrets:
        """Return what knows the secrets of runs."""
        return RunSecrets(self.store.secrets, self.redactor)

    @cached_property
    def records(self) -> Records:
        """Return what keeps the results of calls."""
        return Records(self.store, self.secrets, self.settings.digest_characters)

    @property
    def times(self) -> dict[str, float]:
        """Return how long runs that open now wait for what."""
        settings = self.settings
        return {
            "settle_after_s": settings.settle_after_seconds,
            "deadline_s": settings.request_deadline_seconds,
            "step_timeout_s": settings.step_timeout_seconds,
            "server_task_s": settings.server_task_seconds,
            "transient_s": settings.transient_seconds,
        }

    async def is_over(self, run: str) -> bool:
        """Return whether a run has ended, as far as that is known; a terminated run does not release its workspace."""
        workflow_id, _, first_run_id = run.rpartition("/")
        try:
            row = await self.store.runs.get(workflow_id, first_run_id)
            if row is not None and row.state == "closed":
                return True
            newest = await described(self.temporal, workflow_id)
        except RunNotFound:
            return True
        except BackstayError:
            return False
        # A name is used again only after the run that had it has ended.
        return newest.first_run_id != first_run_id or not newest.is_open

    def masked(self, told: Any) -> Any:
        """Return what is to be logged or traced, with a mask for the secrets of the worker and of recent runs."""
        return self.secrets.masked(self.redactor.redact(told))

    async def redactor_of(self, run: str) -> Redactor:
        """Return a redactor that knows the secrets of a run, as far as the store can be reached."""
        try:
            return (await self.secrets.of(run)).redactor
        except BackstayError:
            return self.secrets.kept(run).redactor


class Activities:
    """Base class of activity classes: their resources, and the checks that come first in all of them."""

    def __init__(self, resources: Resources) -> None:
        """Share the worker's resources."""
        self.resources = resources
        self.records = resources.records
        self.settings = resources.settings
        self.store = resources.store
        self.toolbox = resources.toolbox
        self.transient_s = resources.settings.transient_seconds

    def together(self) -> AbstractAsyncContextManager[Waiting]:
        """Let what an activity writes wait for its next transaction, or for its end."""
        self.resources.secrets.look_once()
        return self.store.together()

    async def as_made(self, ask: OfEffect) -> OfEffect:
        """Return what is asked about an effect as it is asked of the run that made it.

        A run knows the effects of its sub-runs by numbers of its own.
        """
        made = None if ask.effect is None else await self.store.subruns.made(ask.run, ask.effect)
        return ask if made is None else ask.model_copy(update={"run": made.run, "effect": made.n, "decisions": ()})

    async def first_stamp(self) -> str:
        """Return the stamp for what this workflow begins; raises StoreUnavailable where Temporal does not say its age.

        Of what began before Temporal was restored, nobody knows any more whether it sent something meanwhile.
        """
        identity, info = self.store.identity, activity.info()
        if not identity.temporal_epoch:
            return identity.stamp
        try:
            began = await began_at(self.resources.temporal, info.workflow_id or "", info.workflow_run_id or "")
        except RPCError as error:
            raise StoreUnavailable(f"Temporal does not say when this run began: {error.message}") from error
        return identity.stamp_at(began)

    async def begin(self, ask: OfRun) -> None:
        """Refuse another store than the run's, and write the events and decisions that came with the call."""
        await self.admit(ask)
        await self.tell(ask)

    async def admit(self, ask: OfRun) -> None:
        """Refuse another store than the run's, and write the decisions; the events are told with what happens."""
        self.store.check(ask.store)
        await self.store.decisions.append(ask.run, await self.records.cleaned(ask.run, ask.decisions))

    async def tell(
        self, ask: OfRun, left: Sequence[Event] = (), outcomes: Mapping[int, Mapping[str, Any]] | None = None
    ) -> None:
        """Write the events that came with a call and the drafts of its own, and log what is new.

        `outcomes` are kept with those drafts, by their number.
        """
        append, whole = self.store.events.append, await self._whole(ask, left)
        written = await append(ask.run, whole, ask.numbered, outcomes=outcomes, rulings=rulings_in(ask))
        self._log(ask.run, written)

    async def tell_later(self, ask: OfRun, left: Sequence[Event] = ()) -> None:
        """Do the same with the next transaction of the activity, or at its end."""
        append, whole = self.store.events.append, await self._whole(ask, left)
        if not whole and not ask.numbered:
            return

        async def then(written: WrittenEvents | None) -> None:
            self._log(ask.run, written)

        def work(transaction: Transaction) -> WrittenEvents | None:
            return append.within(transaction, ask.run, whole, ask.numbered, rulings=rulings_in(ask))

        await self.store.write_later(work, then)

    async def _whole(self, ask: OfRun, left: Sequence[Event]) -> list[Event]:
        events = await self.records.cleaned(ask.run, (*ask.events, *left))
        return [event.of(ask.run, ask.user_id, ask.session_id) for event in events]

    def _log(self, run: str, written: WrittenEvents | None) -> None:
        if written is None:
            return
        for event in written.events:
            log_event(event.name, event.model_dump(exclude={"name"}))
            note_event(event)
        self.resources.secrets.tell(run, written.handles)

    async def first_catalog(self, run: str, user_id: str, started_by: str, builtin: Iterable[str]) -> Catalog:
        """Return what a run sees as it begins, started by whoever proved it."""
        owner = self.resources.owners.begin(run, user_id, started_by)
        return await self.toolbox.catalog(user_id, owner=owner, builtin=frozenset(builtin))

    async def caller(self, ask: OfRun) -> Caller:
        """Return for whom the calls of a run are made; they wait for no turn."""
        owner = await self.resources.owners.of(ask.run)
        return Caller(user_id=ask.user_id, session_id=ask.session_id or "", owner=owner, patience_s=0)

    async def catalog(self, ask: OfRun, user_id: str, *, patience_s: float = 0) -> Catalog:
        """Return what a run's user sees now, with the run's workspace, and which of the tools have changed."""
        owner = await self.resources.owners.of(ask.run)
        more: Any = {"builtin": frozenset(ask.builtin), "patience_s": patience_s}
        catalog = await self.toolbox.catalog(user_id, owner=owner, **more)
        known = self.store.definitions
        if known.is_unchanged(catalog.version):
            return catalog
        # The engine's own tools change with the engine, and nobody is asked about them.
        pinned = {name: kept for name, kept in catalog.pinned.items() if name.partition(".")[0] not in BUILTIN}
        changed = await known.changed(
            catalog.version,
            {name: kept.digest for name, kept in pinned.items()},
            lambda names: {name: masked(pinned[name].said, self.resources.redactor) for name in names},
            {name: kept.earlier for name, kept in pinned.items() if kept.earlier},
        )
        for provider in changed & catalog.instructions.keys():
            _log.warning("server.instructions_changed", provider=provider, accept=f"backstay tools accept {provider}")
        return replace(catalog, changed=changed) if changed else catalog
