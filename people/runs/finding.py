"""Find the run that a person names, in the store and at Temporal, if they may see it."""

import contextlib
from dataclasses import dataclass
from typing import NamedTuple

from backstay.authority import principal
from backstay.client import Backstay
from backstay.client.executions import Execution, undo_id
from backstay.errors import RunNotFound, TaskInvalid, Transient, Unreachable
from backstay.shown import NOBODY, one_line
from people.decide.seeing import Seeing
from store.runs.runs import RunRow
from store.store import Store

UNDO = "UndoRun"


class RunSources(NamedTuple):
    """Hold what a run is looked at with: Temporal, what the store has of it, and who may see it."""

    backstay: Backstay | None
    """None where Temporal does not answer."""
    store: Store | None
    """None where there is no store to read."""
    seeing: Seeing | None
    """None for those who can read both by themselves, and so see everything."""
    fault: str = ""
    """Why Temporal does not answer."""

    def asked(self) -> Backstay:
        """Return Temporal for a run that it has answered about."""
        if self.backstay is None:
            raise Unreachable(self.fault)
        return self.backstay

    async def row(self, workflow_id: str, run_id: str | None = None) -> RunRow | None:
        """Return what the store has of a run, by default of the newest one of its name."""
        return None if self.store is None else await self.store.runs.get(workflow_id, run_id)


@dataclass(frozen=True)
class KnownRun:
    """Name a run, and hold what is known of it without asking it."""

    workflow_id: str
    run_id: str
    """The run id of its first execution."""
    user_id: str
    session_id: str | None
    text: str
    row: RunRow | None
    """None for a run that no worker has begun yet."""
    execution: Execution | None
    """None for a run that Temporal no longer knows, or while Temporal does not answer."""
    fault: str = ""
    """Why Temporal did not answer."""
    is_older: bool = False
    """Whether a newer run has this workflow id; Temporal does by that name only what is meant for the newest."""

    @property
    def run(self) -> str:
        """Return the name of the run in the store."""
        return f"{self.workflow_id}/{self.run_id}" if self.row is None else self.row.run

    @property
    def is_open(self) -> bool:
        """Return whether the run is open, as far as can be known now."""
        if self.execution is not None:
            return self.execution.is_open
        return bool(self.fault) and not self.is_older and self.row is not None and self.row.state == "open"

    @property
    def started_at(self) -> float | None:
        """Return when it began, in unix seconds; None where nobody knows it any more."""
        if self.row is not None:
            return self.row.opened_at
        return None if self.execution is None else self.execution.started_at

    @property
    def ended_at(self) -> float | None:
        """Return when it ended, in unix seconds; None while it is open."""
        closed = None if self.row is None else self.row.closed_at
        return closed if closed is not None or self.execution is None else self.execution.closed_at

    @property
    def first_run_id(self) -> str:
        """Return the run id by which Temporal knows its first execution; a reset may have given it another."""
        return self.run_id if self.execution is None else self.execution.first_run_id

    @property
    def undo_id(self) -> str:
        """Return the workflow id of an undo after the end."""
        return undo_id(self.workflow_id)


async def find(sources: RunSources, by: str, workflow_id: str, run_id: str | None = None) -> KnownRun:
    """Return a run that a person may see, by default the newest one of its name; raises RunNotFound for others.

    Those who see everything find undos after the end by their own names, too. Raises Unreachable where Temporal does
    not answer and the store does not know the run: it may exist all the same.
    """
    found = await _found(sources, workflow_id, run_id or None)
    seeing = sources.seeing
    if seeing is None:
        if found is None:
            raise RunNotFound(f"there is no run {one_line(workflow_id, 200)}; `backstay list` shows the runs")
        return found
    if found is None or not await seeing.run(by, found.run, found.user_id):
        if found is not None and found.fault:
            # The answer is that for a run that is not known, or it would tell that there is one.
            raise Unreachable(found.fault)
        # A person who may not see a run is not told that there is one.
        raise RunNotFound("there is no such run, or it is not yours to see")
    return found


async def _found(sources: RunSources, workflow_id: str, run_id: str | None) -> KnownRun | None:
    newest = await sources.row(workflow_id)
    row = newest if run_id is None else await sources.row(workflow_id, run_id)
    execution, fault = None, ""
    try:
        execution = await sources.asked().execution(workflow_id)
    except RunNotFound:
        if row is None:
            return None
    except Transient as error:
        if row is None:
            # The run may be there, and no worker has begun it yet: who is told otherwise starts it once more.
            raise
        fault = str(error)
    if execution is not None and newest is not None and newest.workflow_run_id != execution.first_run_id:
        # The name was used again, and the newest run of that name may not have begun yet.
        newest = await sources.row(workflow_id, execution.first_run_id)
        row = newest if run_id is None else row
    if row is not None:
        is_older = newest is None or newest.run != row.run
        return KnownRun(
            workflow_id=row.workflow_id,
            run_id=row.workflow_run_id,
            user_id=row.user_id,
            session_id=row.session_id,
            text=row.text,
            row=row,
            execution=None if is_older else execution,
            fault=fault,
            is_older=is_older,
        )
    if execution is None or run_id not in {None, execution.first_run_id}:
        return None
    if execution.kind == UNDO and sources.seeing is not None:
        return None
    return await _without_row(sources.asked(), execution)


async def _without_row(backstay: Backstay, execution: Execution) -> KnownRun:
    """Return what only Temporal knows: a run that has not begun, or an undo after the end of one."""
    task = {}
    with contextlib.suppress(TaskInvalid):
        task = await backstay.task_of(execution.workflow_id, execution.first_run_id)
    session = task.get("session_id")
    return KnownRun(
        workflow_id=execution.workflow_id,
        run_id=execution.first_run_id,
        user_id=principal(str(task.get("user_id", NOBODY))),
        session_id=None if session is None else str(session),
        # The words of the task are shown once a worker has looked for secrets in them.
        text="",
        row=None,
        execution=execution,
    )
