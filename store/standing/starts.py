"""Keep each start of a schedule or a trigger: once, and within the budget of its day."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from backstay.budgets.budget import MICRO
from backstay.canonical import canonical
from backstay.errors import DecisionRefused, TaskInvalid
from backstay.task.standing import Kind, StandingTask
from store.database.database import Database
from store.database.schema import starts
from store.database.transactions import reading, writing
from store.secrets.seal import Seal
from store.standing.tasks import StartState, locked

KEPT_S = 90 * 86_400.0
"""How long what was started is remembered, and so how long the id of an event is known."""
_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Start:
    """Hold one start."""

    id: str
    kind: Kind
    name: str
    event: str
    """By which the sender of a trigger knows it; empty for a schedule."""
    state: StartState
    told: str
    """How its run ended, why nothing was started, or that what it is a start of was removed meanwhile."""
    day: str
    micro: int
    """What is counted to that day, in millionths of a US dollar."""
    run: str
    """The workflow id of its run; empty where there is none."""
    at: float
    ended_at: float | None


class StartReplayed(DecisionRefused):
    """A request was sent before under another id, or with the key of a trigger that has been removed."""


class TooOften(DecisionRefused):
    """More requests came in a minute than a trigger takes."""


_BY_ID = select(starts).where(starts.c.id == bindparam("id_"))
_OF_TASK = (starts.c.kind == bindparam("kind_")) & (starts.c.name == bindparam("name_"))
_SIGNED = select(starts.c.id).where(_OF_TASK, starts.c.signature == bindparam("signature_"))
_LATELY = select(func.count()).where(_OF_TASK, starts.c.at > bindparam("since_"))
_COUNTED = starts.c.state.in_([StartState.RESERVED, StartState.ENDED])
_OF_DAY = select(func.coalesce(func.sum(starts.c.micro), 0), func.count()).where(
    _OF_TASK, starts.c.day == bindparam("day_"), _COUNTED
)
_NEWEST = select(starts).where(_OF_TASK).order_by(starts.c.at.desc(), starts.c.id).limit(bindparam("limit_"))
_OLD = delete(starts).where(_OF_TASK, starts.c.at < bindparam("before_"), starts.c.state != StartState.RESERVED)
_CHANGE = update(starts).where(starts.c.id == bindparam("id_"))


class Starts:
    """Accept, reserve for and settle starts; each of these changes nothing when it is repeated."""

    def __init__(self, database: Database, clock: Callable[[], float], seal: Seal) -> None:
        """Read time from `clock`, in unix seconds; others' input is sealed until its run has ended."""
        self.database = database
        self._clock = clock
        self._seal = seal

    @writing
    def accept(
        self,
        connection: Connection,
        start: str,
        standing: StandingTask,
        *,
        event: str,
        signature: str,
        given: dict[str, Any],
    ) -> tuple[Start, bool]:
        """Keep an event that was sent to a trigger; return its start, and whether it is new.

        Raises Replayed for a signature that came under another id, and TooOften.
        """
        kept = locked(connection, standing.kind, standing.name)
        if kept is None or kept.standing != standing:
            # The request was signed with a key that is gone; one that has the name now has another author.
            raise StartReplayed("this trigger was removed meanwhile")
        if (known := _own(connection, start, standing)) is not None:
            return known, False
        named = {"kind_": standing.kind, "name_": standing.name}
        if connection.execute(_SIGNED, {**named, "signature_": signature}).first() is not None:
            raise StartReplayed("this request was sent before under another id; sign each request again")
        most = 0 if standing.door is None else standing.door.per_minute
        lately = connection.execute(_LATELY, {**named, "since_": self._clock() - _MINUTE_S}).scalar_one()
        if lately >= most:
            raise TooOften(f"{most} requests came within a minute; send this one again later")
        more = {"event": event, "signature": signature, "sealed_input": self._seal.close(canonical(given).encode())}
        self._insert(connection, start, standing, StartState.ACCEPTED, **more)
        connection.execute(_OLD, {**named, "before_": self._clock() - KEPT_S})
        return _known(connection, start), True

    @reading
    def given(self, connection: Connection, start: str, standing: StandingTask) -> dict[str, Any] | None:
        """Return what was sent to a trigger; None where nothing was, or where it is settled.

        Raises TaskInvalid for what was sent to another one.
        """
        row = None if _own(connection, start, standing) is None else connection.execute(_BY_ID, {"id_": start}).one()
        sealed = None if row is None else row.sealed_input
        return None if sealed is None else json.loads(self._seal.open(bytes(sealed)))

    @writing
    def reserve(self, connection: Connection, start: str, standing: StandingTask, run: str) -> Start:
        """Count the most that a run may cost to the day, before it starts; return the start, refused where it is.

        Of a start that was reserved for already, nothing is counted a second time. Raises TaskInvalid for a start of
        another schedule or trigger, also of one that had the name before.
        """
        locked(connection, standing.kind, standing.name)
        known = _own(connection, start, standing)
        if known is not None and known.state is StartState.RESERVED and known.told:
            raise TaskInvalid(known.told)
        if known is not None and known.state is not StartState.ACCEPTED:
            return known
        day = standing.day(self._clock())
        named = {"kind_": standing.kind, "name_": standing.name}
        spent, count = connection.execute(_OF_DAY, {**named, "day_": day}).one()
        refused = _too_much(standing, int(spent), count)
        if refused:
            return self._refused(connection, start, standing, refused)
        counted = {"day": day, "micro": standing.reserved_micro, "run": run}
        if known is None:
            self._insert(connection, start, standing, StartState.RESERVED, **counted)
            connection.execute(_OLD, {**named, "before_": self._clock() - KEPT_S})
        else:
            connection.execute(_CHANGE.values(state=StartState.RESERVED, **counted), {"id_": start})
        return _known(connection, start)

    @writing
    def refuse(self, connection: Connection, start: str, standing: StandingTask, reason: str) -> Start:
        """Say why nothing is started; one that was reserved for, or has ended, stays as it is."""
        return self._refused(connection, start, standing, reason)

    @writing
    def settle(self, connection: Connection, start: str, told: str, micro: int | None) -> Start | None:
        """Count what a run has cost in place of what was reserved; all of it where nobody knows the cost."""
        known = _found(connection, start)
        if known is None or known.state is not StartState.RESERVED:
            return known
        billed = known.micro if micro is None else micro
        ended = {"state": StartState.ENDED, "told": told, "micro": billed, "ended_at": self._clock()}
        connection.execute(_CHANGE.values(sealed_input=None, **ended), {"id_": start})
        return _known(connection, start)

    @reading
    def get(self, connection: Connection, start: str, kind: Kind, name: str) -> Start | None:
        """Return a start of this very schedule or trigger; None where there is none."""
        known = _found(connection, start)
        return known if known is not None and (known.kind, known.name) == (kind, name) else None

    @reading
    def newest(self, connection: Connection, kind: Kind, name: str, limit: int = 5) -> Sequence[Start]:
        """Return the last starts, the newest first."""
        rows = connection.execute(_NEWEST, {"kind_": kind, "name_": name, "limit_": limit})
        return [_read(row) for row in rows]

    @reading
    def counted(self, connection: Connection, standing: StandingTask) -> tuple[int, int]:
        """Return what is counted to this day, in millionths of a US dollar, and how many runs are."""
        values = {"kind_": standing.kind, "name_": standing.name, "day_": standing.day(self._clock())}
        spent, count = connection.execute(_OF_DAY, values).one()
        return int(spent), count

    def _refused(self, connection: Connection, start: str, standing: StandingTask, reason: str) -> Start:
        known = _own(connection, start, standing)
        if known is None:
            self._insert(connection, start, standing, StartState.REFUSED, told=reason, ended_at=self._clock())
        elif known.state is StartState.ACCEPTED:
            said = {"state": StartState.REFUSED, "told": reason, "ended_at": self._clock(), "sealed_input": None}
            connection.execute(_CHANGE.values(**said), {"id_": start})
        return _known(connection, start)

    def _insert(
        self, connection: Connection, start: str, standing: StandingTask, state: StartState, **more: Any
    ) -> None:
        row: dict[str, Any] = {"event": "", "signature": "", "sealed_input": None, "told": "", "day": "", "micro": 0}
        row |= {"id": start, "kind": standing.kind, "name": standing.name, "state": state, "run": ""}
        row |= {"at": self._clock(), "ended_at": None}
        connection.execute(insert(starts), row | more)


def _too_much(standing: StandingTask, spent: int, count: int) -> str:
    """Return why no further run fits into the day, or nothing."""
    day = standing.per_day
    if day.max_runs is not None and count >= day.max_runs:
        return f"per_day.max_runs: {count} of {day.max_runs} runs were started today ({standing.time_zone})"
    if spent + standing.reserved_micro > round(day.max_llm_cost_usd * MICRO):
        return (
            f"per_day.max_llm_cost_usd: {spent / MICRO:g} of {day.max_llm_cost_usd:g} USD are spent or reserved today "
            f"({standing.time_zone}), and a run may cost {standing.reserved_micro / MICRO:g}"
        )
    return ""


def _found(connection: Connection, start: str) -> Start | None:
    row = connection.execute(_BY_ID, {"id_": start}).first()
    return None if row is None else _read(row)


def _own(connection: Connection, start: str, standing: StandingTask) -> Start | None:
    """Return a start of this very schedule or trigger; others may name workflows at Temporal so, too."""
    known = _found(connection, start)
    if known is not None and (known.kind, known.name) != (standing.kind, standing.name):
        raise TaskInvalid(f"the start {start} belongs to the {known.kind} {known.name}")
    return known


def _known(connection: Connection, start: str) -> Start:
    return _read(connection.execute(_BY_ID, {"id_": start}).one())


def _read(row: Any) -> Start:
    kept = ("id", "kind", "name", "event", "told", "day", "micro", "run", "at", "ended_at")
    return Start(**{name: getattr(row, name) for name in kept}, state=StartState(row.state))
