"""Store one row per run."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import Connection, Select, bindparam, exists, func, insert, literal, or_, select, tuple_, update

from backstay.errors import Pruned
from backstay.frozen import Frozen
from store.database.database import Database
from store.database.identity import StoreIdentity, require_epoch
from store.database.schema import chain, requests, runs, secrets
from store.database.transactions import only_with, reading, writing
from store.ledger.noting import note
from store.ledger.writing import ChainWriter


class RunRow(Frozen):
    """Hold one row of the table `runs`; times are unix seconds by the clock of the worker that wrote them."""

    run: str
    workflow_id: str
    workflow_run_id: str
    """The first one of the chain."""
    user_id: str
    text: str
    state: Literal["open", "closed"]
    opened_at: float
    closed_at: float | None = None
    opened: dict[str, Any]
    """What was resolved when the run began; empty when its beginning was never recorded."""
    store: str
    result: dict[str, Any] | None = None
    pruned_at: float | None = None
    """When everything else of the run was removed."""
    session_id: str | None = None
    follows: str | None = None
    """The run whose context it continues."""
    context: str | None = None
    """Ref of the transcript that it left when it ended; None when no run can follow it."""
    metadata: dict[str, Any] | None = None
    """What the task said of itself for other programs, redacted."""
    checked_at: float = 0
    """When Temporal was last asked whether it is still open."""
    lost_at: float | None = None
    """When Temporal was found to have ended it without its saying so, such as a run that was terminated."""

    @property
    def part_of(self) -> str | None:
        """Return the workflow id of the run that has delegated to this one; None for one that is not a sub-run."""
        above = self.opened.get("above")
        return str(above[-1]["workflow_id"]) if above else None

    def require_not_pruned(self) -> None:
        """Raise Pruned when only this row is left of the run."""
        _raise_if_pruned(self.run, self.pruned_at)


def _raise_if_pruned(run: str, pruned_at: float | None) -> None:
    """Raise Pruned when `pruned_at` is set."""
    if pruned_at is not None:
        on = datetime.fromtimestamp(pruned_at, UTC).strftime("%Y-%m-%d")
        raise Pruned(f"run {run} was pruned on {on}: its effects are no longer known and nothing of it is sent")


def require_not_pruned(connection: Connection, run: str) -> None:
    """Raise Pruned when the run is marked as pruned."""
    _raise_if_pruned(run, connection.execute(_PRUNED_AT, {"run_": run}).scalar())


_TEXT_LIMIT = 500
_MOST_LINKED = 200
"""How many runs before or after one are looked at."""
_MOST_WORDS = 20
RunFilter = Literal[
    "all",
    "open",
    "waiting",
    "completed",
    "failed",
    "budget_exceeded",
    "rejected",
    "cancelled",
    "rolled_back",
    "rollback_failed",
]
_OPENED = ("model", "policy_hash", "prompt_hash", "catalog", "started_by")
_ENDED = ("outcome", "success", "final_summary", "error", "usage")
_NEWEST = select(runs).order_by(runs.c.opened_at.desc(), runs.c.run.desc())
_WAITS = exists().where(requests.c.run == runs.c.run, requests.c.state == "open")
_PRUNED_AT = select(runs.c.pruned_at).where(runs.c.run == bindparam("run_"))


class Runs:
    """Keep one row per run, found by any run id of its chain."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], float],
        identity: Callable[[], StoreIdentity],
        ledger: ChainWriter,
    ) -> None:
        """Get the time in unix seconds from `clock`, and the current identity of the store from `identity`."""
        self.database = database
        self._ledger = ledger
        self._clock = clock
        self._identity = identity

    @writing
    def opened(
        self,
        connection: Connection,
        *,
        run: str,
        workflow_id: str,
        workflow_run_id: str,
        user_id: str,
        text: str,
        opened: Mapping[str, Any],
        store: str | None = None,
        session_id: str | None = None,
        follows: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Record that a run began; a repeat only adds another run id of its chain.

        Raises Pruned, also when the run that it follows was pruned.
        """
        row = {
            "run": run,
            "workflow_id": workflow_id,
            "workflow_run_id": workflow_run_id,
            "user_id": user_id,
            "text": text[:_TEXT_LIMIT],
            "opened": dict(opened),
            "store": store or self._identity().stamp,
            "session_id": session_id,
            "follows": follows,
            "metadata": dict(metadata) if metadata else None,
        }
        if follows is not None:
            # Until this transaction ends, no run can be pruned.
            require_epoch(connection, self._identity())
            require_not_pruned(connection, follows)
        if self._insert(connection, row):
            note(connection, run, "run", "run.opened", _beginning(row))
        _link(connection, {"workflow_id": workflow_id, "workflow_run_id": workflow_run_id}, run)

    @writing
    def add_execution(self, connection: Connection, run: str, *, workflow_id: str, workflow_run_id: str) -> None:
        """Record another execution that works on the run, so that the run is not pruned meanwhile.

        Raises Pruned if it is pruned already.
        """
        require_epoch(connection, self._identity())
        require_not_pruned(connection, run)
        _link(connection, {"workflow_id": workflow_id, "workflow_run_id": workflow_run_id}, run)

    @writing
    def closed(
        self, connection: Connection, run: str, result: Mapping[str, Any], *, context: str | None = None
    ) -> str | None:
        """Record how a run ended, also if its beginning was never recorded; a later result replaces an earlier one.

        `context`: ref of the transcript with which another run can go on. Return the head of its chain, which the
        stored result names. Raises Pruned.
        """
        workflow_id, _, workflow_run_id = run.rpartition("/")
        row = {
            "run": run,
            "workflow_id": workflow_id,
            "workflow_run_id": workflow_run_id,
            "user_id": "",
            "text": "",
            "opened": {},
            "store": self._identity().stamp,
        }
        self._insert(connection, row)
        note(connection, run, "run", "run.closed", _end(result))
        head = self._ledger.head_of(connection, run)
        told = {**result, "ledger_head": head}
        values = {"state": "closed", "closed_at": self._clock(), "outcome": result.get("outcome"), "result": told}
        connection.execute(update(runs).where(runs.c.run == run).values(**values, context=context))
        return head

    async def unchecked(self, limit: int = 50) -> list[RunRow]:
        """Return runs that have not said that they ended, first those that were not looked at for the longest time."""
        chosen = select(runs).where(runs.c.state == "open", runs.c.lost_at.is_(None), runs.c.pruned_at.is_(None))
        return await self._rows(chosen.order_by(runs.c.checked_at, runs.c.run).limit(limit))

    @only_with("rows")
    @writing
    def checked(self, connection: Connection, rows: Sequence[RunRow]) -> None:
        """Record that these runs were looked at."""
        these = runs.c.run.in_([row.run for row in rows])
        connection.execute(update(runs).where(these).values(checked_at=self._clock()))

    async def get(self, workflow_id: str, workflow_run_id: str | None = None) -> RunRow | None:
        """Return the latest run of a workflow id, or the one to whose chain a run id belongs."""
        chosen = select(runs).where(runs.c.workflow_id == workflow_id)
        if workflow_run_id is not None:
            link = {"workflow_id": workflow_id, "workflow_run_id": workflow_run_id}
            own = runs.c.workflow_run_id == workflow_run_id
            chosen = chosen.where(own | runs.c.run.in_(select(chain.c.run).filter_by(**link)))
        found = await self._rows(chosen.order_by(runs.c.opened_at.desc(), runs.c.run.desc()).limit(1))
        return found[0] if found else None

    async def worked_on(self, workflow_id: str) -> RunRow | None:
        """Return the run that a workflow of this name works on, as an undo after the end does."""
        linked = select(chain.c.run).where(chain.c.workflow_id == workflow_id)
        found = await self._rows(_NEWEST.where(runs.c.run.in_(linked)).limit(1))
        return found[0] if found else None

    @writing
    def take_handles(self, connection: Connection, run: str, followed: str) -> None:
        """Give a run the secrets of the run that it follows, with their providers; a repeat changes nothing.

        Raises Pruned.
        """
        require_epoch(connection, self._identity())
        require_not_pruned(connection, followed)
        own = select(secrets.c.handle).where(secrets.c.run == run)
        taken = select(literal(run), secrets.c.handle, secrets.c.provider, secrets.c.sealed).where(
            secrets.c.run == followed, secrets.c.handle.not_in(own)
        )
        connection.execute(insert(secrets).from_select(["run", "handle", "provider", "sealed"], taken))

    async def earlier(self, row: RunRow) -> list[RunRow]:
        """Return a run and those that it follows, directly or through others, the oldest first."""
        found = [row]
        while found[-1].follows is not None and len(found) < _MOST_LINKED:
            before = await self._rows(select(runs).where(runs.c.run == found[-1].follows))
            if not before:
                break
            found += before
        return found[::-1]

    async def later(self, run: str) -> list[RunRow]:
        """Return the runs that follow a run, directly or through others, the oldest first, without pruned ones."""
        found: dict[str, RunRow] = {}
        wanted = [run]
        while wanted:
            chosen = select(runs).where(runs.c.follows.in_(wanted), runs.c.pruned_at.is_(None))
            rows = await self._rows(chosen.order_by(runs.c.opened_at, runs.c.run).limit(_MOST_LINKED))
            wanted = [row.run for row in rows if row.run not in found]
            found |= {row.run: row for row in rows}
            if len(found) > _MOST_LINKED:
                break
        return sorted(found.values(), key=lambda row: (row.opened_at, row.run))

    async def newest(self, limit: int, *, user_id: str | None = None) -> list[RunRow]:
        """Return the latest runs, of everybody or of one user, the newest first."""
        return await self.page(user_id=user_id, limit=limit)

    async def page(
        self,
        *,
        state: RunFilter = "all",
        words: str = "",
        user_id: str | None = None,
        named: str = "",
        before: tuple[float, str] | None = None,
        limit: int = 50,
    ) -> list[RunRow]:
        """Return runs, the newest first.

        `state`: only those that are open, that wait for people, or that ended so. `words`: only those that hold each
        of these words, in any case, in their text, workflow id, user or session. `named`: only those whose workflow id
        begins so. `before`: only those older than the run that began then and is called so.
        """
        chosen = _NEWEST.limit(limit)
        if before is not None:
            chosen = chosen.where(tuple_(runs.c.opened_at, runs.c.run) < tuple_(*map(literal, before)))
        if user_id is not None:
            chosen = chosen.where(runs.c.user_id == user_id)
        if named:
            chosen = chosen.where(runs.c.workflow_id.startswith(named, autoescape=True))
        return await self._rows(_holding(_in_state(chosen, state), words))

    def _insert(self, connection: Connection, row: Mapping[str, Any]) -> bool:
        """Add a row; return whether there was none."""
        now = self._clock()
        is_new = connection.execute(select(runs.c.run).where(runs.c.run == row["run"])).first() is None
        if is_new:
            connection.execute(insert(runs).values(**row, state="open", opened_at=now, checked_at=now))

        require_not_pruned(connection, row["run"])
        return is_new

    @reading
    def _rows(self, connection: Connection, chosen: Select[Any]) -> list[RunRow]:
        return [RunRow.model_validate(dict(row)) for row in connection.execute(chosen).mappings()]


def _beginning(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the ledger says of the beginning of a run: who, what, and under which policy, model and prompt."""
    named = ("workflow_id", "workflow_run_id", "user_id", "session_id", "text", "follows", "store")
    opened = row["opened"]
    return {name: row[name] for name in named} | {name: opened[name] for name in _OPENED if name in opened}


def _end(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the ledger says of the end of a run."""
    return {name: result[name] for name in _ENDED if name in result}


def _link(connection: Connection, link: Mapping[str, str], run: str) -> None:
    if connection.execute(select(chain).filter_by(**link)).first() is None:
        connection.execute(insert(chain).values(**link, run=run))


def _in_state(chosen: Select[Any], state: RunFilter) -> Select[Any]:
    match state:
        case "all":
            return chosen
        case "open":
            return chosen.where(runs.c.state == "open")
        case "waiting":
            return chosen.where(runs.c.state == "open", _WAITS)
        case _:
            return chosen.where(runs.c.outcome == state)


def _holding(chosen: Select[Any], words: str) -> Select[Any]:
    searched = (runs.c.text, runs.c.workflow_id, runs.c.user_id, runs.c.session_id)
    for word in words.split()[:_MOST_WORDS]:
        # Not every database knows the small form of each letter, so the word is also looked for as it was written.
        small = [func.lower(column).contains(word.casefold(), autoescape=True) for column in searched]
        chosen = chosen.where(or_(*small, *(column.contains(word, autoescape=True) for column in searched)))
    return chosen
