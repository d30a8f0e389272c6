"""The lines by which decisions are remembered beyond their run: those that hold, and those that wait."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from pydantic import ValidationError
from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select, update

from backstay.approvals.approvers import WORDS_HOLD_S
from backstay.approvals.voting import with_vote
from backstay.errors import DecisionRefused, PolicyInvalid
from backstay.policies.accepted import MOST_LINES, AcceptedLine
from backstay.shown import one_line
from store.database.database import Database
from store.database.identity import lock_epoch
from store.database.schema import accepted_lines
from store.database.transactions import reading, writing

HOLDS, WAITS, REMOVED = "holds", "waits", "removed"
_log = structlog.get_logger(__name__)
_BY_ID = select(accepted_lines).where(accepted_lines.c.id == bindparam("id_"))
_OF_USER = accepted_lines.c.user_id == bindparam("user_")
_COUNT = select(func.count()).where(_OF_USER, accepted_lines.c.state == bindparam("state_"))
_HOLDING = (
    select(accepted_lines)
    .where(
        _OF_USER,
        accepted_lines.c.state == HOLDS,
        or_(accepted_lines.c.session_id == "", accepted_lines.c.session_id == bindparam("session_")),
        or_(accepted_lines.c.expires_at.is_(None), accepted_lines.c.expires_at > bindparam("now_")),
    )
    .order_by(accepted_lines.c.changed_at, accepted_lines.c.id)
)
_WAITING = select(accepted_lines).where(_OF_USER, accepted_lines.c.state == WAITS).order_by(accepted_lines.c.changed_at)
_EVERY = (
    select(accepted_lines)
    .where(accepted_lines.c.state != REMOVED)
    .order_by(accepted_lines.c.changed_at.desc(), accepted_lines.c.id)
)
_UPDATE = update(accepted_lines).where(accepted_lines.c.id == bindparam("id_"))
_DELETE = delete(accepted_lines).where(accepted_lines.c.id == bindparam("id_"))


@dataclass(frozen=True, slots=True)
class KeptLine:
    """Hold a line as it is kept."""

    id: str
    user_id: str
    session_id: str
    verdict: str
    state: str
    """holds | waits | removed: whether runs obey it, too few people have accepted it yet, or it was withdrawn."""
    said: dict[str, float]
    """Who has said it, and when."""
    expires_at: float | None
    line: AcceptedLine | None
    """None for a row that cannot be read."""

    @property
    def votes(self) -> tuple[str, ...]:
        """Return who has said it."""
        return tuple(self.said)

    @property
    def holds(self) -> bool:
        """Return whether runs obey it, unless it has expired."""
        return self.state == HOLDS


class AcceptedLines:
    """Keep lines, let people accept and remove them, and hand out those that a run is to obey."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Read time from `clock`, in unix seconds."""
        self.database = database
        self._clock = clock

    @writing
    def keep(
        self,
        connection: Connection,
        lines: Sequence[AcceptedLine],
        *,
        people: Collection[str] = (),
        quorum: int = 1,
        counts: bool = False,
        hold_s: float = WORDS_HOLD_S,
    ) -> list[KeptLine]:
        """Keep lines and return them; a line holds when `quorum` of the people have said the same, else it waits.

        `counts`: it is proven who says it now; else the lines are only proposed. `hold_s`: for how many seconds what
        people have said before makes up a number with it. A repeat changes nothing else. Raises DecisionRefused when
        the user has too many.
        """
        lock_epoch(connection)
        connection.execute(delete(accepted_lines).where(accepted_lines.c.expires_at <= self._clock()))
        return [self._kept(connection, line, people, quorum, hold_s, counts=counts) for line in lines]

    @writing
    def accept(
        self, connection: Connection, line_id: str, by: str, *, expires_at: float | None = None
    ) -> KeptLine | None:
        """Let a line hold because an operator says so; None when there is no such line."""
        lock_epoch(connection)
        found = _one(connection, line_id)
        if found is None or found.line is None or found.state == REMOVED:
            return None
        if not found.holds:
            self._demand_room(connection, found.line, HOLDS)
        ends = found.line.expires_at if expires_at is None else expires_at
        said = found.line.by if found.holds else by
        line = found.line.model_copy(update={"by": said, "expires_at": ends})
        self._write(connection, line, HOLDS, found.said, known=True)
        return _one(connection, line_id)

    @writing
    def remove(self, connection: Connection, line_id: str) -> bool:
        """Remove a line, also one that cannot be read; return whether there was one.

        The request that it came from stays known: a run that Temporal runs again from there must not bring it back.
        """
        found = _one(connection, line_id)
        if found is None or found.state == REMOVED:
            return False
        if found.line is None:
            connection.execute(_DELETE, {"id_": line_id})
        else:
            self._write(connection, found.line, REMOVED, {}, known=True)
        return True

    @reading
    def every(self, connection: Connection) -> list[KeptLine]:
        """Return all lines, the latest first."""
        return [_read(row) for row in connection.execute(_EVERY)]

    @reading
    def holding(self, connection: Connection, user_id: str, session_id: str | None) -> tuple[AcceptedLine, ...]:
        """Return the lines that a run of this user and session obeys, the oldest first.

        One that allows and cannot be read is passed over, so that people are asked. Raises PolicyInvalid for one that
        denies and cannot be read, because nobody knows what.
        """
        values = {"user_": user_id, "session_": session_id or "", "now_": self._clock()}
        kept = [_read(row) for row in connection.execute(_HOLDING, values)]
        for row in kept:
            if row.line is None and row.verdict != "allow":
                shown = one_line(row.id, 40)
                raise PolicyInvalid(
                    f"accepted line {shown}: it denies something and cannot be read; remove it with "
                    f"`backstay policy remove {shown}`"
                )
            if row.line is None:
                _log.warning("policy.line_unreadable", line=row.id, fix="backstay policy remove")
        return tuple(row.line for row in kept if row.line is not None)

    def _kept(
        self,
        connection: Connection,
        line: AcceptedLine,
        people: Collection[str],
        quorum: int,
        hold_s: float,
        *,
        counts: bool,
    ) -> KeptLine:
        known = _one(connection, line.id)
        if known is not None and known.line is not None:
            again = known.state == REMOVED and known.line.request == line.request
            if known.holds or again:
                return known
        now, before = self._clock(), {} if known is None else known.said
        said = with_vote(before, line.by, now, hold_s) if counts else before
        # Somebody may have lost the right since; then it needs the word of another.
        votes = {person: at for person, at in said.items() if person in people and now - at <= hold_s}
        holds = len(votes) >= quorum
        if holds or known is None or known.state == REMOVED:
            self._demand_room(connection, line, HOLDS if holds else WAITS)
        told = line.model_copy(update={"by": ", ".join(votes)}) if votes else line
        self._write(connection, told, HOLDS if holds else WAITS, votes, known=known is not None)
        return _read(connection.execute(_BY_ID, {"id_": line.id}).one())

    def _write(
        self, connection: Connection, line: AcceptedLine, state: str, votes: dict[str, float], *, known: bool
    ) -> None:
        row: dict[str, Any] = {
            "user_id": line.user_id,
            "session_id": line.session_id,
            "verdict": line.verdict,
            "state": state,
            "votes": votes,
            "line": line.plain(),
            "changed_at": self._clock(),
            "expires_at": line.expires_at,
        }
        if known:
            connection.execute(_UPDATE.values(row), {"id_": line.id})
        else:
            connection.execute(insert(accepted_lines), {"id": line.id, **row})

    def _demand_room(self, connection: Connection, line: AcceptedLine, state: str) -> None:
        count = connection.execute(_COUNT, {"user_": line.user_id, "state_": state}).scalar_one()
        if count >= MOST_LINES and not (state == WAITS and self._forget_proposal(connection, line.user_id)):
            raise DecisionRefused(
                f"remember: {count} lines of this user {'hold' if state == HOLDS else 'wait'} already; "
                "remove some with `backstay policy remove`"
            )

    def _forget_proposal(self, connection: Connection, user_id: str) -> bool:
        """Make room for a line that waits: forget the oldest one for which nobody who counts has spoken."""
        rows = map(_read, connection.execute(_WAITING, {"user_": user_id}))
        oldest = next((row.id for row in rows if not row.votes), None)
        if oldest is not None:
            connection.execute(_DELETE, {"id_": oldest})
        return oldest is not None


def _one(connection: Connection, line_id: str) -> KeptLine | None:
    row = connection.execute(_BY_ID, {"id_": line_id}).first()
    return None if row is None else _read(row)


def _read(row: Any) -> KeptLine:
    """Read a row; its line is believed only when the columns, by which it is found, say the same."""
    try:
        line: AcceptedLine | None = AcceptedLine.model_validate(row.line)
    except ValidationError:
        line = None
    if line is not None and (line.identified().id, line.user_id, line.session_id, line.verdict, line.expires_at) != (
        row.id,
        row.user_id,
        row.session_id,
        row.verdict,
        row.expires_at,
    ):
        line = None
    kept: dict[str, Any] = row.votes if isinstance(row.votes, dict) else {}
    said = {person: float(at) for person, at in kept.items() if isinstance(at, int | float)}
    return KeptLine(row.id, row.user_id, row.session_id, row.verdict, row.state, said, row.expires_at, line)
