"""The commands that maintain the store: prune, and store new-epoch, adopt-settings, verify and move-payloads."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from cyclopts import Parameter
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from backstay.client.executions import undo_id
from backstay.client.failures import translated_errors
from backstay.client.roles import find_sandbox
from backstay.client.workers import pollers
from backstay.errors import BackstayError, SettingsInvalid
from backstay.settings import Settings
from backstay.shown import one_line
from gateways.terminal.flags import Output, duration
from gateways.terminal.session import open_store, require_store, session
from gateways.terminal.terminal import Terminal

_AT_ONCE = 10
_NEWEST = 20
"""How many of the store's runs are looked for before it is doubted that this Temporal is theirs."""
_MOST_FAULTS = 50
_ANSWER = timedelta(seconds=10)
_OF_ONE_RUN = frozenset({RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.INTERNAL, RPCStatusCode.DATA_LOSS})
"""What Temporal answers about a single run that it cannot describe; anything else concerns all of them."""


async def prune(
    *,
    older_than: str = "30d",
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    output: Output = "text",
) -> int:
    """Remove effects, events, payloads and snapshots of runs that ended longer ago than the undo window.

    Their plans and decisions stay for BACKSTAY_PLANS_DAYS, and their rows in the ledger for BACKSTAY_LEDGER_DAYS.

    Parameters
    ----------
    older_than
        The undo window: how long after its end a run can still be undone, such as 30d, 12h or 90m.
    dry_run
        Only say what would be removed.
    """
    before = time.time() - duration(older_than, "--older-than")
    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    async with session(settings) as backstay, open_store(settings) as store:
        found = await store.pruning.idle(before)
        with translated_errors(""):
            standings = await _standings(backstay.client, found)
            doubted = await _doubted(backstay.client, store, standings)
        ended = [standing.run for standing in standings if standing.has_ended(before) and standing not in doubted]
        freed, kept, broken = await _removed(settings, store, ended, before, dry_run=dry_run)
    unanswered = [standing for standing in standings if standing.fault]
    _say_kept(terminal, unanswered, doubted, broken, kept)
    _report(terminal, {"dry_run": dry_run, **freed}, output)
    return 1 if unanswered or kept or broken else 0


def _say_kept(
    terminal: Terminal,
    unanswered: Sequence["_TemporalState"],
    doubted: Sequence["_TemporalState"],
    broken: Mapping[str, str],
    kept: Sequence[str],
) -> None:
    """Say what had to stay, and why."""
    for standing in unanswered:
        terminal.say(f"{standing.run.run} is kept, because Temporal gives no answer: {standing.fault}", "red")
    if doubted:
        terminal.say(
            f"{len(doubted)} runs are kept: no end of them is recorded, and this Temporal knows no run of the store; "
            "check TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE",
            "yellow",
        )
    for run, fault in broken.items():
        terminal.say(f"{one_line(run, 200)} is kept, because its records cannot be removed: {fault}", "red")
    for line in kept:
        terminal.say(one_line(line, 340), "red")


async def _removed(
    settings: Settings, store: Any, ended: Sequence[Any], before: float, *, dry_run: bool
) -> tuple[dict[str, int], list[str], dict[str, str]]:
    """Remove rows, then payloads, then snapshots; return what was freed, and what and which runs stay and why."""
    from sandbox.workspaces.effects import prune_workspaces
    from store.runs.pruning import PayloadsKept, PruneReport

    freed: Any = PruneReport()
    broken: dict[str, str] = {}
    for run in ended:
        try:
            rows = await store.pruning.prune(run, before, dry_run=dry_run)
        except Exception as error:  # one broken run must not keep the others from being pruned
            # A store that is away is the same for all of them.
            await store.pruning.pruned()
            broken[run.run] = one_line(f"{type(error).__name__}: {error}", 300)
            continue
        freed = freed if rows is None else freed + rows
    # The names of those who proposed and approved are asked for longer than what a run can be undone with.
    kept_from = min(before, time.time() - settings.plans_days * 86_400)
    freed += await store.pruning.forget_plans(kept_from, [run.run for run in ended] if dry_run else (), dry_run=dry_run)
    requests = await store.requests.forget(kept_from, dry_run=dry_run)
    ledgered_from = datetime.fromtimestamp(time.time() - settings.ledger_days * 86_400, UTC)
    rows_gone = await store.chains.forget(ledgered_from.isoformat(timespec="milliseconds"), dry_run=dry_run)
    # Also remove what an earlier pruning marked and could not remove before it was killed.
    marked = await store.pruning.pruned() | (frozenset(run.run for run in ended) if dry_run else frozenset())
    kept: list[str] = []
    try:
        freed += await store.pruning.free_payloads(marked, dry_run=dry_run)
    except PayloadsKept as error:
        freed += error.freed
        kept.append(f"payloads are kept for the next pruning: {error}")
    sizes, damaged = await prune_workspaces(settings.home, marked, dry_run=dry_run)
    kept += [f"snapshots of one workspace are kept: {fault}" for fault in damaged]
    counted = {"requests": requests, "ledger_rows": rows_gone}
    return freed.plain() | counted | {"snapshots": len(sizes), "snapshot_bytes": sum(sizes)}, kept, broken


async def new_epoch(
    *,
    temporal_restored: Annotated[bool, Parameter(negative="")] = False,
    yes: Annotated[bool, Parameter(negative="", help="Do not ask for confirmation.")] = False,
    output: Output = "text",
) -> int:
    """Begin a new epoch after a restore from a backup: calls that the store forgot are asked about, not sent.

    Parameters
    ----------
    temporal_restored
        Temporal's database was restored, too: also ask about what it does not know to have tried.
    """
    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    async with open_store(settings) as store:
        old = store.identity
        question = f"Begin a new epoch of store {old.id}, now in epoch {old.epoch}? Stop all workers first. [y/N]"
        if not await is_confirmed(terminal, question, "begin a new epoch", yes=yes):
            return 1
        new = await store.new_epoch(temporal_restored=temporal_restored)
    told = {"store": old.id, "old_epoch": old.epoch, "new_epoch": new.epoch}
    terminal.results(output, told, [f"store {old.id}: epoch {old.epoch} -> {new.epoch}"])
    if output == "text":
        terminal.say("start the workers now; one that is still running must be restarted", "green")
    return 0


async def adopt_settings(
    *, yes: Annotated[bool, Parameter(negative="", help="Do not ask for confirmation.")] = False
) -> int:
    """Let the keys and the folder of payloads of these settings be those that every worker of the store must have."""
    from opening import belongings_of

    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    async with open_store(settings) as store:
        question = f"Let workers of store {store.identity.id} have these settings only? Stop all workers first. [y/N]"
        if not await is_confirmed(terminal, question, "adopt these settings", yes=yes):
            return 1
        await store.fitness.adopt(belongings_of(settings))
        terminal.result(f"store {store.identity.id}: the settings are adopted")
    terminal.say("start the workers now; what other keys have sealed stays unreadable without them", "green")
    return 0


async def verify(*, output: Output = "text") -> int:
    """Read every payload and compare it with its hash, and look for payloads that are nowhere; changes nothing."""
    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    async with open_store(settings) as store:
        if store.blobs.objects is not None:
            await store.blobs.objects.check()
        found = await store.verifying.payloads()
    told = {"payloads": found.payloads, "bytes": found.bytes, "faults": list(found.faults)}
    where = ", ".join(f"{count} in {place}" for place, count in found.payloads.items())
    count = sum(found.payloads.values())
    end = f"{len(found.faults)} faults" if found.faults else "each is what was written"
    terminal.results(output, told, [f"verified {count} payloads ({found.bytes} bytes): {where}; {end}"])
    _complain(terminal, found.faults)
    return 1 if found.faults else 0


async def move_payloads(
    *, yes: Annotated[bool, Parameter(negative="", help="Do not ask for confirmation.")] = False
) -> int:
    """Move all payloads to the place that BACKSTAY_PAYLOADS names; it may be killed and run again.

    Stop all workers first. None begins until all payloads are moved, and from then on each needs the new setting.
    """
    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    async with session(settings) as backstay, open_store(settings) as store:
        before, places = await store.fitness.place(), await store.fitness.moving()
        if not before:
            raise SettingsInvalid("BACKSTAY_PAYLOADS: no worker has used this store yet, so there is nothing to move")
        await _require_no_worker(backstay.client, settings)
        question = f"Move all payloads of store {store.identity.id} to {settings.payloads}? [y/N]"
        if not await is_confirmed(terminal, question, "move the payloads", yes=yes):
            return 1
        places = tuple(dict.fromkeys([*places, before, settings.payloads]))
        others = _buckets(settings, set(places) - {settings.payloads})
        for objects in others:
            await objects.check()
        await store.fitness.claim()
        await store.fitness.begin_moving(places)
        moved = await store.moving(others).move()
        terminal.result(f"moved {moved.payloads} payloads ({moved.bytes} bytes) to {settings.payloads}")
        _complain(terminal, moved.faults)
        try:
            await _require_no_worker(backstay.client, settings)
            await store.fitness.end_moving(settings.payloads)
        except BackstayError as error:
            terminal.say(f"the move is not over, so no worker begins; {error}", "red")
            return 1
    terminal.say(f"start the workers now, each with BACKSTAY_PAYLOADS={settings.payloads}", "green")
    return 1 if moved.faults else 0


async def _require_no_worker(client: Client, settings: Settings) -> None:
    """Raise SettingsInvalid while a worker asks for work: it would look for payloads where they are no more."""
    with translated_errors(""):
        names = await pollers(client, settings.task_queue)
        names += [f"the sandbox role on {queue}"] if (queue := await find_sandbox(client, settings)) else []
    if names:
        raise SettingsInvalid(
            f"BACKSTAY_PAYLOADS: payloads are not moved while workers run, and {', '.join(names[:5])} asked for work "
            "lately; stop all workers, and run this again: Temporal names a worker for 90 seconds after its end"
        )


def _buckets(settings: Settings, places: Collection[str]) -> list[Any]:
    """Return the buckets among places of payloads."""
    from opening import objects_of
    from store.blobs.objects import Objects

    found = [objects_of(settings, place) for place in sorted(places)]
    return [Objects(place) for place in found if place is not None]


def _complain(terminal: Terminal, faults: Sequence[str]) -> None:
    for fault in faults[:_MOST_FAULTS]:
        terminal.say(fault, "red")
    if len(faults) > _MOST_FAULTS:
        terminal.say(f"and {len(faults) - _MOST_FAULTS} more", "red")


async def is_confirmed(terminal: Terminal, question: str, what: str, *, yes: bool) -> bool:
    """Return whether a person says yes; raises SettingsInvalid where nobody can be asked."""
    if yes:
        return True
    if not terminal.interactive:
        raise SettingsInvalid(f"--yes: there is no terminal to ask at; add --yes to {what}")
    if (await terminal.ask(question) or "").lower() in {"y", "yes"}:
        return True
    terminal.say("nothing was changed")
    return False


@dataclass(frozen=True)
class _TemporalState:
    """Hold what Temporal reports about one run of the store."""

    run: Any
    known: bool = False
    is_open: bool = False
    """Whether an execution of the run, or an undo of it, is open."""
    closed_at: float = 0.0
    """When the last of them closed."""
    fault: str = ""

    def has_ended(self, before: float) -> bool:
        return not self.fault and not self.is_open and self.closed_at < before


async def _standings(client: Client, found: Sequence[Any]) -> list[_TemporalState]:
    """Ask about all runs before anything is removed; raises Unreachable when Temporal goes away meanwhile."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def ask(run: Any) -> _TemporalState:
        async with turns:
            try:
                return await _standing(client, run)
            except RPCError as error:
                if error.status not in _OF_ONE_RUN:
                    raise
                return _TemporalState(run, fault=error.message)

    return list(await asyncio.gather(*map(ask, found)))


async def _standing(client: Client, run: Any) -> _TemporalState:
    latest = await _described(client, run.workflow_id)
    if latest is not None and latest.first_run_id not in ("", run.first_run_id):
        latest = None  # a later run with the same workflow id
    undo = await _described(client, undo_id(run.workflow_id))
    executions = [await _described(client, execution.workflow_id, execution.run_id) for execution in run.executions]
    theirs = [info for info in (latest, *executions) if info is not None]
    undoing = undo is not None and not undo.HasField("close_time")
    return _TemporalState(
        run,
        known=bool(theirs),
        is_open=undoing or not all(info.HasField("close_time") for info in theirs),
        closed_at=max((info.close_time.seconds + 1 for info in theirs), default=0),
    )


async def _described(client: Client, workflow_id: str, run_id: str = "") -> WorkflowExecutionInfo | None:
    """Return what Temporal knows about an execution, by default the latest one; None if it knows none."""
    ask = DescribeWorkflowExecutionRequest(
        namespace=client.namespace, execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
    )
    try:
        answer = await client.workflow_service.describe_workflow_execution(ask, retry=True, timeout=_ANSWER)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
    return answer.workflow_execution_info


async def _doubted(client: Client, store: Any, standings: Sequence[_TemporalState]) -> list[_TemporalState]:
    """Return the runs without a recorded end if Temporal knows no run of the store: it may be the wrong Temporal."""
    unseen = [standing for standing in standings if not (standing.known or standing.run.closed or standing.fault)]
    if not unseen or any(standing.known for standing in standings):
        return []
    newest = await store.runs.newest(_NEWEST)
    known = [await _described(client, row.workflow_id, row.workflow_run_id) for row in newest]
    return unseen if all(info is None for info in known) else []


def _report(terminal: Terminal, freed: dict[str, int], output: Output) -> None:
    line = (
        f"{'would prune' if freed['dry_run'] else 'pruned'} {freed['runs']} runs: "
        f"{freed['effects']} effects, {freed['events']} events, {freed['secrets']} secrets, "
        f"{freed['plans']} plans, {freed['decisions']} decisions, {freed['requests']} requests, "
        f"{freed['ledger_rows']} rows of the ledger, "
        f"{freed['payloads']} payloads ({freed['bytes']} bytes), "
        f"{freed['snapshots']} snapshot files ({freed['snapshot_bytes']} bytes)"
    )
    terminal.results(output, freed, [line])
