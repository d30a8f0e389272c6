"""Forget what is remembered of a run, with the payloads behind it; the ledger says that it was forgotten, and by whom.

The chain of the run in the ledger stays as it is, so that it can still be verified. A whole run is forgotten as it is
pruned. Of one item, the stored answer, its line in the timeline and the model's own copy of the conversation go.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select, update

from backstay.errors import RunNotFound, TaskInvalid
from backstay.memory.item import MemoryItem
from backstay.shown import one_line
from store.blobs.blobs import BlobStore
from store.database.database import Database
from store.database.identity import lock_epoch
from store.database.schema import effects, events, ledger_rows, runs
from store.database.transactions import reading, writing
from store.ledger.noting import note
from store.memory.items import clean_index, drop_items
from store.runs.naming import SEALED_OF_EFFECT, conversation, of_answer, of_effect, of_lists, of_result, ref_of_event
from store.runs.pruning import Pruning, parent_kept
from store.runs.runs import Runs

FORGOTTEN = "(forgotten)"
_OF_CALL = ("arguments", "clipped", "undo", "sources")
"""What the event of a call says of its arguments."""
_OF_TASK = ("task_line", "searched", "plan_words")
"""What is kept of the words of a task with how its run was opened."""


class Forgetting:
    """Forget items and runs of one user at a time."""

    def __init__(self, database: Database, blobs: BlobStore, rows: Runs, pruning: Pruning) -> None:
        """Work on one store."""
        self.database = database
        self._blobs = blobs
        self._runs = rows
        self._pruning = pruning

    async def item(self, item: MemoryItem, *, by: str) -> int:
        """Forget one item; return how many payloads were erased.

        Raises TaskInvalid for a run that has not ended or that another one goes on from, and RunNotFound.
        """
        # Equal payloads are one: what an effect needs stays, even if a result that is forgotten holds the same.
        needed = await self._needed(item.run)
        names = [name for name in await self._payloads(item) if name not in needed]
        await self._check(item.run)
        # First, so that it can be said again where this process is killed in between: an empty entry is told to nobody.
        erased = await self._blobs.of(item.run).erase(names)
        await self._forget(item, by)
        return erased

    async def run(self, run: str, owner: str, *, by: str) -> int:
        """Forget a run as if it was pruned; return how many payloads were erased.

        Raises what `item` raises, and TaskInvalid while the run that delegated to it is kept.
        """
        await self._forget_run(run, owner, by)
        return (await self._pruning.free_payloads([run])).payloads

    @reading
    def has_forgotten(self, connection: Connection, run: str) -> bool:
        """Return whether something of a run was forgotten, so that its end is not written a second time."""
        told = select(ledger_rows.c.n).where(ledger_rows.c.run == run, ledger_rows.c.kind == "memory").limit(1)
        return connection.execute(told).first() is not None

    @reading
    def _needed(self, connection: Connection, run: str) -> frozenset[str]:
        """Return the names of the payloads without which effects of a run could not be undone or checked."""
        rows = connection.execute(select(*SEALED_OF_EFFECT).where(effects.c.run == run))
        return frozenset(name for row in rows for name in of_effect(row))

    @reading
    def _check(self, connection: Connection, run: str) -> None:
        _closed(connection, run)

    @writing
    def _forget(self, connection: Connection, item: MemoryItem, by: str) -> None:
        row = _closed(connection, item.run)
        if not drop_items(connection, item.run, [item.id]):
            raise RunNotFound(f"{item.id}: it was forgotten already")
        clean_index(connection)
        result = _without_event(row.result or {}, item)
        # An erased payload is named no more, so that nobody misses it.
        result |= {"events_ref": None, "effects_ref": None}
        values: dict[str, Any] = {"context": None, "result": result}
        match item.kind:
            case "run_metadata":
                opened = {name: told for name, told in (row.opened or {}).items() if name not in _OF_TASK}
                values |= {"text": "", "metadata": None, "opened": opened}
            case "final_answer":
                values |= {"result": _without_answer(result)}
            case "tool_call" | "tool_output":
                named = (effects.c.run == item.run, effects.c.result_ref == item.ref)
                connection.execute(update(effects).where(*named).values(result_ref=None))
        _forget_events(connection, item)
        connection.execute(update(runs).where(runs.c.run == item.run).values(**values))
        _note(connection, item.run, item.owner, by, kind=item.kind, n=item.n)

    @writing
    def _forget_run(self, connection: Connection, run: str, owner: str, by: str) -> None:
        lock_epoch(connection)
        _closed(connection, run)
        if (parent := parent_kept(connection, run)) is not None:
            name, above = (one_line(each, 100) for each in (run.rpartition("/")[0], parent))
            raise TaskInvalid(
                f"{name}: {above} delegated to it, and undoing that one undoes this one's effects; forget or prune "
                f"{above} first"
            )
        self._pruning.erase(connection, run)
        clean_index(connection)
        _note(connection, run, owner, by)

    async def _payloads(self, item: MemoryItem) -> list[str]:
        """Return the names of the payloads that hold the text of an item."""
        blobs, (workflow_id, _, workflow_run_id) = self._blobs.of(item.run), item.run.rpartition("/")
        row = await self._runs.get(workflow_id, workflow_run_id)
        if row is None:
            raise RunNotFound(f"{one_line(workflow_id, 100)}: this store knows no such run")
        result = row.result or {}
        refs = [*of_lists(result), item.ref, *(of_answer(result) if item.kind == "final_answer" else ())]
        pieces, ends = await conversation(blobs, row.context)
        names = [*pieces]
        for ref in filter(None, (*refs, *ends)):
            names += await of_result(blobs, ref)
        return list(dict.fromkeys(names))


def _closed(connection: Connection, run: str) -> Any:
    """Return the row of a run that has ended, and from which no other goes on."""
    row = connection.execute(select(runs).where(runs.c.run == run).with_for_update()).first()
    name = one_line(run.rpartition("/")[0], 100)
    if row is None or row.pruned_at is not None:
        raise RunNotFound(f"{name}: nothing of it is left")
    if row.state != "closed":
        raise TaskInvalid(f"{name} has not ended; forget it then")
    later = select(runs.c.workflow_id).where(runs.c.follows == run, runs.c.pruned_at.is_(None))
    if (follower := connection.execute(later).scalar()) is not None:
        raise TaskInvalid(
            f"{name}: {one_line(follower, 100)} goes on from it and holds what it said; forget that first"
        )
    return row


def _forget_events(connection: Connection, item: MemoryItem) -> None:
    """Have the timeline say no more of an item than that it was forgotten."""
    found = connection.execute(select(events.c.n, events.c.body).where(events.c.run == item.run)).all()
    for n, body in found:
        if (left := _without(body, item)) != body:
            where = (events.c.run == item.run, events.c.n == n)
            connection.execute(update(events).where(*where).values(body=left))


def _without_answer(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with nothing of what its run answered; one that did not succeed says it as its error, too."""
    nothing: dict[str, Any] = {"raw_outputs": {}, "output": None, "output_ref": None, "final_summary": FORGOTTEN}
    error = result.get("error")
    return {**result, **nothing, "error": error and {**error, "message": FORGOTTEN}}


def _without_event(result: Mapping[str, Any], item: MemoryItem) -> dict[str, Any]:
    """Return a result, which holds the last events of its run, with what they say of an item left out."""
    return {**result, "events": [_without(body, item) for body in result.get("events") or ()]}


def _without(body: Mapping[str, Any], item: MemoryItem) -> dict[str, Any]:
    """Return what an event says beside an item; another one may name the same answer, as of a read made twice."""
    left = _forgotten(body) if _tells_of(body, item) else dict(body)
    if item.ref and ref_of_event(left) == item.ref:
        left |= {"data": {name: value for name, value in left["data"].items() if name != "summary_ref"}}
    return left


def _tells_of(body: Mapping[str, Any], item: MemoryItem) -> bool:
    match item.kind:
        case "run_metadata":
            # Tools are searched for by the task, at the start and whenever the catalog has changed.
            return body["name"] in {"run.started", "search.run"}
        case "final_answer":
            return body["name"] == "run.ended"
        case "tool_call" | "tool_output":
            return body["n"] == item.n


def _forgotten(body: Mapping[str, Any]) -> dict[str, Any]:
    data = {name: value for name, value in body["data"].items() if name not in _OF_CALL}
    return {**body, "text": f"{one_line(str(data.get('tool') or body['name']), 80)} {FORGOTTEN}", "data": data}


def _note(connection: Connection, run: str, owner: str, by: str, **more: Any) -> None:
    note(connection, run, "memory", "memory.forgotten", {"owner": owner, "by": by, **more})
