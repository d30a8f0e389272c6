"""Keep schedules and triggers: what they start, whose they are, and what they may spend."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import structlog
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from backstay.errors import StoreUnavailable, TaskInvalid, WorkerMisfit
from backstay.frozen import Frozen
from backstay.task.standing import Kind, StandingTask
from store.database.database import Database
from store.database.schema import standing_tasks, starts
from store.database.transactions import reading, writing
from store.secrets.seal import Seal

MOST = 500
"""How many there may be of one kind."""
_NAMED = (standing_tasks.c.kind == bindparam("kind_")) & (standing_tasks.c.name == bindparam("name_"))
_ONE = select(standing_tasks).where(_NAMED)
_LOCKED = _ONE.with_for_update()
_ALL = select(standing_tasks).order_by(standing_tasks.c.kind, standing_tasks.c.name)
_COUNT = select(func.count()).where(standing_tasks.c.kind == bindparam("kind_"))
_log = structlog.get_logger(__name__)


class StartState(StrEnum):
    """Say how far a start came."""

    ACCEPTED = "accepted"
    """The event is kept, and nothing was reserved yet."""
    RESERVED = "reserved"
    """The most that its run may cost is counted to the day."""
    ENDED = "ended"
    """Its run has ended, and what it cost is counted to the day."""
    REFUSED = "refused"
    """Nothing is started."""


@dataclass(frozen=True, slots=True)
class KeptTask:
    """Hold a schedule or a trigger as it is kept."""

    standing: StandingTask
    paused: str
    """Why nothing is started; empty where it is."""
    added_at: float


class StandingTasks:
    """Add, pause and remove schedules and triggers, and find them again."""

    def __init__(self, database: Database, clock: Callable[[], float], seal: Seal) -> None:
        """Read time from `clock`, in unix seconds; keys of triggers are sealed before they are written."""
        self.database = database
        self._clock = clock
        self._seal = seal

    @writing
    def add(self, connection: Connection, standing: StandingTask, key: bytes | None = None) -> None:
        """Keep a new one; raises TaskInvalid for a name that is taken, or where there are too many."""
        if _found(connection, standing.kind, standing.name) is not None:
            raise TaskInvalid(
                f"name: there is a {standing.kind} {standing.name} already; remove it first, or choose another name"
            )
        if connection.execute(_COUNT, {"kind_": standing.kind}).scalar_one() >= MOST:
            raise TaskInvalid(f"name: there are {MOST} {standing.kind}s already; remove one first")
        row = {
            "kind": standing.kind,
            "name": standing.name,
            "body": standing.model_dump(mode="json", exclude_unset=True),
            "paused": "",
            "sealed_key": None if key is None else self._seal.close(key),
            "added_at": self._clock(),
        }
        connection.execute(insert(standing_tasks), row)

    @reading
    def get(self, connection: Connection, kind: Kind, name: str) -> KeptTask | None:
        """Return the one of that name; None where there is none."""
        return _found(connection, kind, name)

    @reading
    def trigger(self, connection: Connection, name: str) -> tuple[KeptTask, bytes] | None:
        """Return a trigger and its key; None where there is none of that name, or where its key cannot be read."""
        row = connection.execute(_ONE, {"kind_": "trigger", "name_": name}).first()
        if row is None or row.sealed_key is None:
            return None
        try:
            return _read(row), self._seal.open(bytes(row.sealed_key))
        except (WorkerMisfit, StoreUnavailable) as error:
            # Its sender has proved nothing yet, and must not be told more than of a name that is not there.
            _log.error("trigger.key_unreadable", trigger=name, error=str(error))
            return None

    @reading
    def every(self, connection: Connection) -> list[KeptTask]:
        """Return all of them, by kind and name."""
        return [_read(row) for row in connection.execute(_ALL)]

    @writing
    def pause(self, connection: Connection, kind: Kind, name: str, reason: str) -> bool:
        """Start nothing from now on, or go on where no reason is given; return whether there is one of that name."""
        changed = update(standing_tasks).where(_NAMED).values(paused=reason)
        return connection.execute(changed, {"kind_": kind, "name_": name}).rowcount > 0

    @writing
    def remove(self, connection: Connection, kind: Kind, name: str) -> bool:
        """Forget one, and the key of a trigger; return whether there was one. The runs that it has started are kept.

        A start that is accepted or reserved starts nothing any more, also under somebody else who takes the name.
        """
        locked(connection, kind, name)
        told = {"told": f"the {kind} was removed"}
        refused = {"state": StartState.REFUSED, "sealed_input": None, "ended_at": self._clock()}
        own = (starts.c.kind == kind, starts.c.name == name)
        connection.execute(update(starts).where(*own, starts.c.state == StartState.ACCEPTED).values(**told, **refused))
        # Nobody knows here whether its run has begun, which counts to its day.
        connection.execute(update(starts).where(*own, starts.c.state == StartState.RESERVED).values(**told))
        return connection.execute(delete(standing_tasks).where(_NAMED), {"kind_": kind, "name_": name}).rowcount > 0


def locked(connection: Connection, kind: Kind, name: str) -> KeptTask | None:
    """Lock out all others who start something of one standing task, until the transaction ends; return it."""
    row = connection.execute(_LOCKED, {"kind_": kind, "name_": name}).first()
    return None if row is None else _read(row)


class _StoredTask(Frozen):
    """Read what is stored without the checks of what comes from outside."""

    standing: StandingTask


def _found(connection: Connection, kind: Kind, name: str) -> KeptTask | None:
    row = connection.execute(_ONE, {"kind_": kind, "name_": name}).first()
    return None if row is None else _read(row)


def _read(row: object) -> KeptTask:
    body, paused, added_at = (getattr(row, name) for name in ("body", "paused", "added_at"))
    return KeptTask(_StoredTask.model_validate({"standing": body}).standing, paused, added_at)
