"""Record effects: which attempt may send, and what happened."""

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    tuple_,
    union_all,
    update,
)

from backstay.authority import Authority
from backstay.effects.effect import LEGAL, EffectState
from backstay.errors import ArgumentsInvalid, EffectConflict
from store.database.database import Database
from store.database.faults import Collision
from store.database.identity import StoreIdentity, require_epoch
from store.database.schema import HIGHEST, UNANSWERED, adopted_effects, effects, parked_undos
from store.database.transactions import reading, writing
from store.effects.types import BoundUndo, EffectRow, Go, Intent, IntentAnswer
from store.ledger.noting import note
from store.runs.decisions import add_decisions
from store.runs.runs import require_not_pruned

_RECORDED = frozenset(
    {EffectState.APPLIED, EffectState.DOUBTFUL, EffectState.FAILED, EffectState.COMPENSATED, EffectState.KEPT}
)


def admit_first(intent: Intent, *, attempt: int, epoch_differs: bool) -> Go:
    """Decide about an effect that has no row.

    After a restore, the row of an earlier attempt may be lost. The same is true when a later send finds no row of the
    earlier one.
    """
    lost = (epoch_differs and attempt > 1) or intent.send > 1
    return "unknown" if lost else "go"


def admit_again(row: EffectRow, intent: Intent, *, idempotency_ttl: float | None) -> Go:
    """Decide about an effect that has a row, at the time at which the row was read."""
    if (row.tool, row.args_digest, row.undo) != (intent.tool, intent.args_digest, intent.undo):
        return "conflict"
    if row.state is EffectState.FAILED and intent.undo and intent.send > row.send:
        # The tool reported that the compensation failed; a new deliberate send may succeed.
        return "go"
    if row.state in _RECORDED:
        return "recorded"
    if intent.send < row.send:
        return "conflict"
    match row.state:
        case EffectState.NOT_SENT:
            # An empty token means that a check or a person closed this send; a late attempt must not reopen it.
            return "recorded" if intent.send == row.send and not row.token else "go"
        case EffectState.DISPATCHED if row.followed and intent.send == row.send:
            return "followed"
        case EffectState.DISPATCHED if row.lease_left_s > 0:
            return "wait"
        case EffectState.DISPATCHED if intent.send == row.send and idempotency_ttl is not None:
            return "go" if row.read_at < row.first_sent_at + idempotency_ttl else "unknown"
        case _:
            return "unknown"


_UNDONE_FROM = frozenset(before for before, after in LEGAL.items() if EffectState.COMPENSATED in after)
_SETTLED_AS = LEGAL[EffectState.DISPATCHED]

# Statements are built once: building one costs more than running it.
_FIND = select(effects).where(effects.c.effect_id == bindparam("id_"))
_FIND_LOCKED = _FIND.with_for_update()
_OF_RUN = select(effects).where(effects.c.run == bindparam("run_")).order_by(effects.c.n, effects.c.undo)
_COULD_BE_UNDONE = (EffectState.APPLIED, EffectState.DISPATCHED, EffectState.UNKNOWN, EffectState.DOUBTFUL)
_OWN = select(effects, literal("").label("made_by")).where(
    effects.c.run == bindparam("run_"), effects.c.undo.is_(False)
)
# Those of sub-runs, under the numbers and the steps that they have in the run.
_ADOPTED = (
    select(
        *(adopted_effects.c[column.name] if column.name in {"n", "step"} else column for column in effects.c),
        effects.c.run.label("made_by"),
    )
    .join(adopted_effects, adopted_effects.c.effect_id == effects.c.effect_id)
    .where(adopted_effects.c.run == bindparam("run_"))
)
_TAKEN_OVER = _ADOPTED.order_by(adopted_effects.c.n)
_NUMBERED = _ADOPTED.where(adopted_effects.c.n == bindparam("n_"))
_HIGHEST_TAKEN = select(func.max(adopted_effects.c.n)).where(adopted_effects.c.run == bindparam("run_"))
_TREE = union_all(_OWN, _ADOPTED).subquery()
_OF_TREE = select(_TREE).order_by(_TREE.c.n)


def could_be_undone(of: FromClause) -> ColumnElement[bool]:
    """Return what holds of an effect that could still be undone."""
    # An effect that was kept because nothing undoes it was dealt with before.
    kept = (of.c.state == EffectState.KEPT) & of.c.undo_shown.is_not(None)
    return of.c.state.in_(_COULD_BE_UNDONE) | kept


def is_unknown(of: FromClause) -> ColumnElement[bool]:
    """Return what holds of an effect of which nobody knows, at `now_`, whether it took place: `EffectRow.known`."""
    lost = and_(of.c.state == EffectState.DISPATCHED, of.c.lease <= bindparam("now_"), of.c.task_sealed.is_(None))
    return or_(of.c.state == EffectState.UNKNOWN, lost)


_OPEN = (_TREE.c.step > bindparam("to_step_"), could_be_undone(_TREE))
_OPEN_BEFORE = (
    select(_TREE).where(*_OPEN, _TREE.c.n < bindparam("before_")).order_by(_TREE.c.n.desc()).limit(bindparam("limit_"))
)
# Not every database compares JSON, but all compare text.
_AUTHORITY = cast(_TREE.c.authority, Text)
_OPEN_IN_ALL = select(_AUTHORITY, func.count()).where(*_OPEN).group_by(_AUTHORITY)
# The undo of an effect may be parked in the run that made it, and in those that have taken it over from sub-runs, where
# it has another number. An undo has the number of its effect.
_UNDO_OF = effects.c.run + "/" + cast(effects.c.n, Text)
_IS_PARKED = or_(
    exists().where(parked_undos.c.run == effects.c.run, parked_undos.c.effect == effects.c.n),
    exists().where(
        adopted_effects.c.effect_id == _UNDO_OF,
        parked_undos.c.run == adopted_effects.c.run,
        parked_undos.c.effect == adopted_effects.c.n,
    ),
)
_NUMBERS = union_all(
    *(
        select(table.c.run, table.c.n).where(table.c.effect_id == bindparam("id_"))
        for table in (effects, adopted_effects)
    )
)
_UNPARK = delete(parked_undos).where(tuple_(parked_undos.c.run, parked_undos.c.effect).in_(_NUMBERS))
_DEALT_WITH = frozenset({EffectState.COMPENSATED, EffectState.FAILED, EffectState.NOT_SENT})
# Databases find the rows by the index whose condition comes first.
_NOBODY_KNOWS = and_(UNANSWERED, is_unknown(effects))
_UNKNOWN = select(func.count()).select_from(effects).where(_NOBODY_KNOWS, ~_IS_PARKED)
_INSERT = insert(effects)
_UPDATE = update(effects).where(
    effects.c.effect_id == bindparam("id_"),
    effects.c.token == bindparam("token_"),
    effects.c.state == bindparam("state_"),
)


class Effects:
    """Keep one row per effect, and let one attempt at a time send it."""

    def __init__(
        self, database: Database, now: Callable[[Connection], float], identity: Callable[[], StoreIdentity]
    ) -> None:
        """Get the database's time in unix seconds from `now`, and the current identity of the store from `identity`."""
        self.database = database
        self._now = now
        self._identity = identity

    @writing
    def begin(
        self,
        connection: Connection,
        intent: Intent,
        *,
        idempotency_ttl: float | None,
        attempt: int,
        epoch_differs: bool,
    ) -> IntentAnswer:
        """Record that an attempt is about to send, and return whether it may.

        `idempotency_ttl`: how long after the first send a repeat is harmless; None if it never is. A lost row is
        recorded as unknown, to be resolved like any other. Raises Pruned, and StoreMismatch in a new epoch.
        """
        add_decisions(connection, intent.run, intent.decisions)
        row = self._find(connection, intent.effect_id, lock=True)
        if (effect := self._undone_by_hand(connection, intent, row)) is not None:
            return IntentAnswer(kind="undone", row=effect)
        if row is None:
            return self._first(connection, intent, attempt=attempt, epoch_differs=epoch_differs)
        kind = admit_again(row, intent, idempotency_ttl=idempotency_ttl)
        if kind != "go":
            return IntentAnswer(kind=kind, row=row)
        values = {
            "state": EffectState.DISPATCHED,
            "send": intent.send,
            "token": secrets.token_hex(16),
            "lease": row.read_at + intent.lease_s,
            **dict.fromkeys(("outcome", "result_ref", "undo_tool", "undo_sealed", "undo_shown", "task_sealed")),
        }
        changed = self._change(connection, row, values)
        _note_sent(connection, intent, changed)
        return IntentAnswer(kind="go", token=changed.token, row=changed)

    @reading
    def count_unknown(self, connection: Connection) -> int:
        """Return of how many effects nobody knows whether they took place; a parked one is counted as that."""
        return connection.execute(_UNKNOWN, {"now_": self._now(connection)}).scalar_one()

    @writing
    def settle(
        self,
        connection: Connection,
        effect_id: str,
        token: str,
        state: EffectState,
        *,
        outcome: str | None = None,
        result_ref: str | None = None,
        undo: BoundUndo | None = None,
    ) -> bool:
        """Record the outcome of a send; return False when this attempt may no longer record it.

        The same outcome may be recorded again: the answer to a commit may be lost.
        """
        if state not in _SETTLED_AS:
            raise EffectConflict(f"effect {effect_id} cannot go from dispatched to {state}")
        row = self._find(connection, effect_id, lock=True)
        if row is None or not token or row.token != token:
            return False
        if row.state is EffectState.DISPATCHED:
            values = {"state": state, "outcome": outcome, "result_ref": result_ref, **_undo_columns(undo)}
            self._change(connection, row, values)
        return row.state in {EffectState.DISPATCHED, state}

    @writing
    def hand_over(self, connection: Connection, effect_id: str, token: str, task_sealed: str) -> bool:
        """Record that the server works on a send as a task; return False when this attempt may no longer record it.

        Nothing is under way from then on but the task, so that the lease ends.
        """
        row = self._find(connection, effect_id, lock=True)
        if row is None or not token or row.token != token or row.state is not EffectState.DISPATCHED:
            return False
        if row.task_sealed != task_sealed:
            self._change(connection, row, {"state": row.state, "task_sealed": task_sealed, "lease": row.read_at})
        return True

    @writing
    def resolve(
        self,
        connection: Connection,
        effect_id: str,
        *,
        state: EffectState,
        outcome: str | None,
        result_ref: str | None = None,
        undo: BoundUndo | None = None,
    ) -> EffectRow:
        """Record what a check or a person found out; the attempt that sent the effect can no longer settle it.

        Recording the same again changes nothing. Raises EffectConflict while the effect may still be sent and when the
        row says something else, ArgumentsInvalid when there is no row.
        """
        values: dict[str, Any] = {"outcome": outcome, **_undo_columns(undo)}
        # Without a new result, the stored one stays.
        values |= {} if result_ref is None else {"result_ref": result_ref}
        return self._move(connection, effect_id, state, values)

    @writing
    def mark(self, connection: Connection, effect_id: str, state: EffectState) -> EffectRow:
        """Record that an effect was compensated or kept; its outcome stays. Raises what `resolve` raises."""
        return self._move(connection, effect_id, state, {})

    @reading
    def get(self, connection: Connection, effect_id: str) -> EffectRow | None:
        """Return the row of one effect, or None."""
        return self._find(connection, effect_id)

    @reading
    def of_run(self, connection: Connection, run: str) -> list[EffectRow]:
        """Return all effects of a run by number, each before its compensation."""
        return self._rows(connection, _OF_RUN, {"run_": run})

    @reading
    def taken_over(self, connection: Connection, run: str) -> list[EffectRow]:
        """Return the effects that a run has taken over from sub-runs, by their numbers in the run."""
        return self._rows(connection, _TAKEN_OVER, {"run_": run})

    @reading
    def of_tree(self, connection: Connection, run: str) -> list[EffectRow]:
        """Return the effects of a run by number, with those that it has taken over from sub-runs; no compensations."""
        return self._rows(connection, _OF_TREE, {"run_": run})

    @reading
    def open_of_run(
        self,
        connection: Connection,
        run: str,
        *,
        to_step: int | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> list[EffectRow]:
        """Return the effects of a run, and of its sub-runs, that could still be undone, the highest numbers first.

        Only those of later steps than `to_step`, with lower numbers than `before`, and no more than `limit`.
        """
        asked = {
            "run_": run,
            "to_step_": -1 if to_step is None else to_step,
            "before_": HIGHEST if before is None else before,
            "limit_": HIGHEST if limit is None else limit,
        }
        return self._rows(connection, _OPEN_BEFORE, asked)

    @reading
    def authorities_of_open(
        self, connection: Connection, run: str, *, to_step: int | None = None
    ) -> tuple[int, list[Authority]]:
        """Return how many effects of a run could still be undone, and whatever is recorded of who decides on them."""
        asked = {"run_": run, "to_step_": -1 if to_step is None else to_step}
        found = connection.execute(_OPEN_IN_ALL, asked).all()
        return sum(count for _, count in found), [Authority.model_validate_json(text) for text, _ in found if text]

    def _move(self, connection: Connection, effect_id: str, state: EffectState, values: dict[str, Any]) -> EffectRow:
        row = self._find(connection, effect_id, lock=True)
        if row is None:
            raise ArgumentsInvalid(f"no effect {effect_id!r} is recorded in this store")
        if row.lease_left_s > 0:
            raise EffectConflict(f"effect {effect_id} may still be sent until its lease ends; try again then")
        if row.state is state:
            # A person's "did not happen" also closes a send that its own attempt recorded as not sent.
            return self._change(connection, row, {"state": state, "token": ""})
        if not (_can_be_undone(row) if state is EffectState.COMPENSATED else state in LEGAL[row.state]):
            raise EffectConflict(f"effect {effect_id} is recorded as {row.known}, which cannot become {state}")
        return self._change(connection, row, {**values, "state": state, "token": ""})

    def _first(self, connection: Connection, intent: Intent, *, attempt: int, epoch_differs: bool) -> IntentAnswer:
        """Record an effect that has no row, under a number that no effect of a sub-run has."""
        # A missing row only proves that nothing was sent if this is still the epoch, and the run is not pruned.
        require_epoch(connection, self._identity())
        require_not_pruned(connection, intent.run)
        numbered = [] if intent.undo else self._rows(connection, _NUMBERED, {"run_": intent.run, "n_": intent.n})
        if numbered:
            highest = connection.execute(_HIGHEST_TAKEN, {"run_": intent.run}).scalar_one()
            return IntentAnswer(kind="taken", row=numbered[0], free=highest + 1)
        kind = admit_first(intent, attempt=attempt, epoch_differs=epoch_differs)
        row = _first_row(intent, going=kind == "go", now=self._now(connection))
        connection.execute(_INSERT, row.model_dump(exclude={"read_at", "made_by"}))
        _note_sent(connection, intent, row)
        return IntentAnswer(kind=kind, token=row.token, row=row)

    def _undone_by_hand(self, connection: Connection, intent: Intent, row: EffectRow | None) -> EffectRow | None:
        """Return the effect that an undo is about, where a person has undone it; `row` is that of the undo.

        Its lock is held until the undo is recorded, so that a person's word comes before or after that.
        """
        if not intent.undo or (row is not None and row.state is EffectState.APPLIED):
            return None
        effect = self._find(connection, intent.effect_id.removesuffix("/undo"), lock=True)
        return effect if effect is not None and effect.state is EffectState.COMPENSATED else None

    def _change(self, connection: Connection, row: EffectRow, values: dict[str, Any]) -> EffectRow:
        """Compare and set. An applied compensation compensates its effect; what does not stand is not parked."""
        values = {**values, "updated_at": row.read_at}
        old = {"id_": row.effect_id, "token_": row.token, "state_": row.state}
        if connection.execute(_UPDATE, {**old, **values}).rowcount != 1:
            raise Collision
        if values["state"] is not EffectState.DISPATCHED:
            _note_outcome(connection, row, values)
        if not row.undo and values["state"] in _DEALT_WITH:
            connection.execute(_UNPARK, {"id_": row.effect_id})
        if row.undo and values["state"] is EffectState.APPLIED:
            parent = self._find(connection, row.effect_id.removesuffix("/undo"), lock=True)
            if parent is not None and not parent.undo and _can_be_undone(parent):
                self._change(connection, parent, {"state": EffectState.COMPENSATED, "token": ""})
        return row.model_copy(update=values)

    def _rows(self, connection: Connection, chosen: Select[Any], asked: dict[str, Any]) -> list[EffectRow]:
        rows = connection.execute(chosen, asked).mappings().all()
        now = self._now(connection)
        return [EffectRow.model_validate({**row, "read_at": now, "made_by": _maker(row)}) for row in rows]

    def _find(self, connection: Connection, effect_id: str, *, lock: bool = False) -> EffectRow | None:
        statement = _FIND_LOCKED if lock else _FIND
        row = connection.execute(statement, {"id_": effect_id}).mappings().one_or_none()
        # The time is asked for after the row: a caller who waited for its lock must not decide by when the wait began.
        return None if row is None else EffectRow.model_validate({**row, "read_at": self._now(connection)})


def _maker(row: Mapping[Any, Any]) -> str:
    """Return the workflow id of the sub-run that made an effect; empty for one of the run itself."""
    return str(row.get("made_by") or "").rpartition("/")[0]


def _note_sent(connection: Connection, intent: Intent, row: EffectRow) -> None:
    """Note for the ledger that an effect is about to be sent, and by which rule; or that its record is lost."""
    said = {"effect": intent.n, "undo": intent.undo, "tool": intent.tool, "args_digest": intent.args_digest}
    said |= {"step": intent.step, "send": intent.send, "user_id": intent.user_id, "ruling": intent.ruling}
    said |= {} if intent.authority is None else {"authority": intent.authority.plain()}
    going = row.state is EffectState.DISPATCHED
    note(connection, intent.run, "effect", "effect.sent" if going else f"effect.{row.state.value}", said)


def _note_outcome(connection: Connection, row: EffectRow, values: dict[str, Any]) -> None:
    said = {"effect": row.n, "undo": row.undo, "tool": row.tool, "send": row.send, "was": row.state.value}
    said |= {name: values[name] for name in ("outcome", "result_ref", "undo_shown") if values.get(name) is not None}
    note(connection, row.run, "effect", f"effect.{EffectState(values['state']).value}", said)


def _can_be_undone(row: EffectRow) -> bool:
    """Return whether an effect may be marked compensated, also one whose server may still work on it."""
    return row.followed or row.known in _UNDONE_FROM


def _first_row(intent: Intent, *, going: bool, now: float) -> EffectRow:
    return EffectRow(
        **intent.model_dump(exclude={"lease_s", "decisions", "ruling"}),
        lease=now + intent.lease_s if going else 0,
        state=EffectState.DISPATCHED if going else EffectState.UNKNOWN,
        token=secrets.token_hex(16) if going else "",
        outcome=None if going else "the record of an earlier attempt is lost",
        first_sent_at=now,
        updated_at=now,
        read_at=now,
    )


def _undo_columns(undo: BoundUndo | None) -> dict[str, str]:
    if undo is None:
        return {}
    return {"undo_tool": undo.tool, "undo_sealed": undo.sealed_ref, "undo_shown": undo.shown}
