"""Remove what ended runs have recorded, and keep one row of each.

One transaction marks the run's row as pruned and deletes its effects, events and secrets. From then on every intent of
the run is refused. Its plans and decisions stay until they are old enough themselves. The run's payloads are removed
after that, in the database and in its folder. If the process is killed in between, the next pruning removes them,
because the run is marked.
Payloads of other runs are never touched: runs share no files.
"""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable, Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Select, delete, exists, func, select, update

from backstay.errors import StoreUnavailable
from backstay.frozen import Frozen
from backstay.task.attachment import attached_to
from store.blobs.blobs import BlobStore
from store.blobs.objects import Objects
from store.blobs.shown import folder_of, key_of
from store.database.database import Database
from store.database.identity import lock_epoch
from store.database.schema import adopted_effects, chain, effects, events, parked_undos, runs, secrets, subruns
from store.database.transactions import reading, writing
from store.faults import disk_faults
from store.ledger.noting import note
from store.memory.items import drop_items
from store.runs.plans import forget_plans, settle_plans

_CLOCKS_S = 60.0
"""How far the clock of a program that attaches files may be ahead of that of the worker which begins the run."""
_AWAITED_S = 30 * 86_400.0
"""How long attached bytes await a run; those that are older were attached again to one that had begun."""
_FOLLOWED = select(runs.c.follows).where(runs.c.follows.is_not(None), runs.c.pruned_at.is_(None))
"""The runs that runs follow which are kept."""


class RunExecution(Frozen):
    """Name one workflow execution that works on a run: one of its own chain, or an undo after its end."""

    workflow_id: str
    run_id: str


class Prunable(Frozen):
    """Describe a run without recent records, with all executions that Temporal must be asked about."""

    run: str
    workflow_id: str
    first_run_id: str
    closed: bool
    """Whether the end of the run is recorded in the store."""
    executions: frozenset[RunExecution]


class PruneReport(Frozen):
    """Count what was removed."""

    runs: int = 0
    effects: int = 0
    events: int = 0
    secrets: int = 0
    plans: int = 0
    decisions: int = 0
    payloads: int = 0
    bytes: int = 0

    def __add__(self, other: "PruneReport") -> "PruneReport":
        """Return the sum."""
        return PruneReport(**{name: value + getattr(other, name) for name, value in self})


class PayloadsKept(StoreUnavailable):
    """Payloads stay until the next pruning, because a place of theirs fails."""

    def __init__(self, said: str, freed: PruneReport) -> None:
        """Keep what was removed before that."""
        super().__init__(said)
        self.freed = freed


class Pruning:
    """Find idle runs and remove what they have recorded; the caller asks Temporal which of them have ended."""

    def __init__(self, database: Database, blobs: BlobStore, clock: Callable[[], float]) -> None:
        """Work on one store."""
        self.database = database
        self._blobs = blobs
        self._clock = clock

    @reading
    def idle(self, connection: Connection, before: float) -> list[Prunable]:
        """Return the runs without records since a unix time, the oldest first.

        Those that others follow come last, the newest of them first: none can go before those that follow it.
        """
        found = connection.execute(_idle(before).order_by(runs.c.opened_at, runs.c.run)).all()
        followed = frozenset(connection.execute(_FOLLOWED).scalars())
        last = [row for row in reversed(found) if row.run in followed]
        rows = [*(row for row in found if row.run not in followed), *last]
        return [
            Prunable(
                run=row.run,
                workflow_id=row.workflow_id,
                first_run_id=row.workflow_run_id,
                closed=row.closed_at is not None,
                executions=_executions(connection, row.run),
            )
            for row in rows
        ]

    @writing
    def prune(
        self, connection: Connection, run: Prunable, before: float, *, dry_run: bool = False
    ) -> PruneReport | None:
        """Mark a run as pruned and remove its rows.

        Return None if it has new records since `idle` found it, or if a run is kept that follows it, or that delegated
        to it.
        """
        lock_epoch(connection)
        # Wait for whoever is settling one of these effects, so that the check below sees the change.
        connection.execute(select(effects.c.effect_id).where(effects.c.run == run.run).with_for_update()).all()
        still = connection.execute(_idle(before).where(runs.c.run == run.run)).first()
        if still is None or _executions(connection, run.run) != run.executions:
            return None
        if not dry_run and connection.execute(_FOLLOWED.where(runs.c.follows == run.run)).first() is not None:
            # Later runs that follow it read what it has stored.
            return None
        if not dry_run and parent_kept(connection, run.run) is not None:
            # Its effects are in the undo stack of the run that delegated to it.
            return None
        counts = {
            table.name: connection.execute(select(func.count()).where(table.c.run == run.run)).scalar_one()
            for table in (effects, events, secrets)
        }
        if not dry_run:
            self.erase(connection, run.run)
        return PruneReport(runs=1, effects=counts["effects"], events=counts["events"], secrets=counts["secret_handles"])

    @writing
    def forget_plans(
        self, connection: Connection, before: float, pruned: Collection[str] = (), *, dry_run: bool = False
    ) -> PruneReport:
        """Remove what pruned runs have left that is older than a unix time: their plans, and who decided what.

        `pruned`: runs that count as pruned beside those that are marked.
        """
        plans, decisions = forget_plans(connection, pruned, before, dry_run=dry_run)
        return PruneReport(plans=plans, decisions=decisions)

    @reading
    def pruned(self, connection: Connection) -> frozenset[str]:
        """Return every run that is marked as pruned."""
        return frozenset(connection.execute(select(runs.c.run).where(runs.c.pruned_at.is_not(None))).scalars())

    async def free_payloads(self, marked: Collection[str], *, dry_run: bool = False) -> PruneReport:
        """Remove the payloads of runs that are marked as pruned, wherever they are; raises PayloadsKept."""
        freed = PruneReport()
        try:
            async for part in self._freeing(marked, dry_run=dry_run):
                freed += part
        except StoreUnavailable as error:
            raise PayloadsKept(str(error), freed) from error
        return freed

    async def _freeing(self, marked: Collection[str], *, dry_run: bool) -> AsyncGenerator[PruneReport]:
        rows = self._blobs.rows
        there = await rows.runs()
        # Files attached before they began lie beside them.
        marked = {*marked, *await self._attached(marked, there)}
        # A late attempt of a run may have written after its pruning.
        for run in sorted(there.intersection(marked)):
            count, size = await rows.free(run, dry_run=dry_run)
            yield PruneReport(payloads=count, bytes=size)
        yield await asyncio.to_thread(self._free, marked, dry_run)
        if self._blobs.objects is not None:
            async for part in _free_objects(self._blobs.objects, marked, dry_run=dry_run):
                yield part

    async def _attached(self, marked: Collection[str], there: Collection[str]) -> list[str]:
        """Return where files lie that were attached to these runs; others await the next run of the same id."""
        found: list[str] = []
        for workflow_id in {run.rpartition("/")[0] for run in marked}:
            attached = attached_to(workflow_id)
            at = await self._blobs.rows.attached_at(attached) if attached in there else None
            if at is None or at < self._clock() - _AWAITED_S or await self._begun_after(workflow_id, at) in marked:
                found.append(attached)
        return found

    @reading
    def _begun_after(self, connection: Connection, workflow_id: str, at: float) -> str | None:
        """Return the first run of a workflow id that began after a time; None where none has."""
        later = (runs.c.workflow_id == workflow_id, runs.c.opened_at > at - _CLOCKS_S)
        return connection.execute(select(runs.c.run).where(*later).order_by(runs.c.opened_at).limit(1)).scalar()

    def erase(self, connection: Connection, run: str) -> None:
        """Mark a run as pruned, and remove its rows in the transaction under way."""
        settle_plans(connection, run)
        drop_items(connection, run)
        for table in (effects, events, secrets, parked_undos, adopted_effects):
            connection.execute(delete(table).where(table.c.run == run))
        nothing = {
            "user_id": "",
            "text": "",
            "opened": {},
            "outcome": None,
            "result": None,
            "session_id": None,
            "context": None,
            "metadata": None,
        }
        connection.execute(update(runs).where(runs.c.run == run).values(pruned_at=self._clock(), **nothing))
        note(connection, run, "run", "run.pruned", {})

    def _free(self, marked: Iterable[str], dry_run: bool) -> PruneReport:  # noqa: FBT001 - called in a thread, by position
        freed = PruneReport()
        with disk_faults():
            root = self._blobs.root
            there = {folder.name for folder in root.iterdir()} if root.is_dir() else set[str]()
            for folder in (folder_of(root, run) for run in marked):
                if folder.name not in there:
                    continue
                with suppress(FileNotFoundError):  # another pruning was faster
                    sizes = [file.stat().st_size for file in folder.iterdir()]
                    freed += PruneReport(payloads=len(sizes), bytes=sum(sizes))
                if not dry_run:
                    # A late attempt of the run may still write; the next pruning removes what is left.
                    shutil.rmtree(folder, ignore_errors=True)
        return freed


async def _free_objects(objects: Objects, marked: Iterable[str], *, dry_run: bool) -> AsyncGenerator[PruneReport]:
    there = frozenset(await objects.folders())
    for folder in sorted(there.intersection(map(key_of, marked))):
        found = await objects.listed(folder)
        if not dry_run:
            await objects.remove(found)
        yield PruneReport(payloads=len(found), bytes=sum(each.size for each in found))


def _idle(before: float) -> Select[Any, Any, Any, Any]:
    at = datetime.fromtimestamp(before, UTC).isoformat(timespec="milliseconds")
    return select(runs.c.run, runs.c.workflow_id, runs.c.workflow_run_id, runs.c.closed_at).where(
        runs.c.pruned_at.is_(None),
        runs.c.opened_at < before,
        runs.c.closed_at.is_(None) | (runs.c.closed_at < before),
        ~exists().where(effects.c.run == runs.c.run, effects.c.updated_at >= before),
        ~exists().where(events.c.run == runs.c.run, events.c.at >= at),
    )


def _executions(connection: Connection, run: str) -> frozenset[RunExecution]:
    rows = connection.execute(select(chain.c.workflow_id, chain.c.workflow_run_id).where(chain.c.run == run))
    return frozenset(RunExecution(workflow_id=row[0], run_id=row[1]) for row in rows)


def parent_kept(connection: Connection, run: str) -> str | None:
    """Return the workflow id of the run that has delegated to a run, if it is kept: its undo may need the effects."""
    above = select(subruns.c.parent).where(subruns.c.run == run)
    kept = select(runs.c.workflow_id).where(runs.c.run.in_(above), runs.c.pruned_at.is_(None))
    return connection.execute(kept).scalar()
