"""Store the timelines of runs."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from backstay.task.event import Event, NumberedDraft, moment
from store.database.database import Database
from store.database.schema import HIGHEST, events
from store.database.transactions import only_with, reading, writing
from store.ledger.noting import note
from store.runs.parked import note_undos
from store.secrets.handles import count_of_run

_OF = (events.c.run == bindparam("run_"), events.c.n.in_(bindparam("numbers", expanding=True)))
_KNOWN = select(events.c.n, events.c.at, events.c.body).where(*_OF)
_DRAFTS = select(events.c.n, events.c.body).where(*_OF)
_OUTCOMES = select(events.c.n, events.c.outcome).where(*_OF, events.c.outcome.is_not(None))
_DELETE = delete(events).where(*_OF)
_INSERT = insert(events)
_OF_RUN = (
    select(events.c.body).where(events.c.run == bindparam("run_"), events.c.n > bindparam("after")).order_by(events.c.n)
)
_OF_EFFECTS = select(events.c.body).where(
    events.c.run == bindparam("run_"),
    events.c.n > 0,
    events.c.effect.in_(bindparam("effects", expanding=True)),
)
_AT_ONCE = 500
_LAST = select(func.max(events.c.n)).where(
    events.c.run == bindparam("run_"), events.c.n.between(1, bindparam("below") - 1)
)


class WrittenEvents(NamedTuple):
    """Tell what became of events."""

    events: list[Event]
    """Those that are new in the timeline."""
    handles: int
    """How many handles the run has, which costs little to know here."""


class Events:
    """Keep every event of every run, once."""

    def __init__(self, database: Database) -> None:
        """Use this database."""
        self.database = database

    @only_with("new", "numbered")
    @writing
    def append(
        self,
        connection: Connection,
        run: str,
        new: Sequence[Event],
        numbered: Sequence[NumberedDraft] = (),
        *,
        outcomes: Mapping[int, Mapping[str, Any]] | None = None,
        rulings: Mapping[int, str] | None = None,
    ) -> WrittenEvents | None:
        """Add events. If two have the same number, the later one stays, so a repeat changes nothing.

        An event with a number below zero is a draft: it joins the timeline when it is `numbered`. After a workflow
        reset, a number can come again with another event. An attempt from before the reset must not bring the old one
        back. `outcomes` are kept with drafts, by their number, until they join the timeline; `rulings` say by which
        rules the calls of drafts were made, for the ledger. None without events.
        """
        numbers = {event.n for event in new} | {number for draft in numbered for number in (draft.n, -draft.draft)}
        there = {row.n: row for row in connection.execute(_KNOWN, {"run_": run, "numbers": sorted(numbers)})}
        named = _named({n: row.body for n, row in there.items()}, numbered)
        latest = {event.n: event for event in sorted([*new, *named], key=lambda event: event.at)}
        known: dict[int, str] = {n: there[n].at for n in latest if n in there}
        # A repeat is not written again: two writers that replace one row get in each other's way.
        kept = [event for n, event in sorted(latest.items()) if n < 0 or n not in known or known[n] < event.at]
        stale = [-draft.draft for draft in numbered] + [event.n for event in kept if event.n in known]
        if stale:
            connection.execute(_DELETE, {"run_": run, "numbers": stale})
        if kept:
            kept_with = outcomes or {}
            bodies = [event.plain() for event in kept]
            rows = [
                {"run": run, **_columns(body), "body": body, "outcome": kept_with.get(-body["n"])} for body in bodies
            ]
            connection.execute(_INSERT, rows)
            # A draft that is left again, or joins the timeline, is there already.
            noted = {event.n for event in named} | {n for n in known if n < 0}
            _note(connection, run, [body for body in bodies if body["n"] not in noted], rulings or {})
        told = [event for event in kept if event.n > 0 and event.n not in known]
        note_undos(connection, run, told)
        return WrittenEvents(told, count_of_run(connection, run))

    @reading
    def of_run(self, connection: Connection, run: str, after: int = 0, limit: int | None = None) -> list[Event]:
        """Return the events with a number above `after`, in order; at most `limit`."""
        bodies = connection.execute(_OF_RUN.limit(limit), {"run_": run, "after": after}).scalars()
        return [Event.model_validate(body) for body in bodies]

    @reading
    def numbered(self, connection: Connection, run: str, numbers: Sequence[int]) -> list[Event]:
        """Return the events with these numbers, in order."""
        found = connection.execute(_DRAFTS, {"run_": run, "numbers": list(numbers)})
        return [Event.model_validate(row.body) for row in sorted(found, key=lambda row: row.n)]

    @reading
    def outcomes(self, connection: Connection, run: str, drafts: Sequence[int]) -> dict[int, Mapping[str, Any]]:
        """Return what is kept with drafts that have not joined the timeline yet, by their number."""
        asked = {"run_": run, "numbers": [-draft for draft in drafts]}
        return {-row.n: row.outcome for row in connection.execute(_OUTCOMES, asked)}

    @reading
    def arguments(self, connection: Connection, run: str, effects: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return what these effects were called with, in short, where an event tells it."""
        found: dict[int, dict[str, Any]] = {}
        for start in range(0, len(effects), _AT_ONCE):
            asked = {"run_": run, "effects": list(effects[start : start + _AT_ONCE])}
            told = [body["data"] for body in connection.execute(_OF_EFFECTS, asked).scalars()]
            found |= {data["effect"]: data["arguments"] for data in told if "arguments" in data}
        return found

    @reading
    def last(self, connection: Connection, run: str, *, below: int) -> int:
        """Return the highest number of an event of a run that is lower than `below`; 0 when there is none."""
        return connection.execute(_LAST, {"run_": run, "below": below}).scalar() or 0


def _columns(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return those parts of an event that are columns, too."""
    effect = (body.get("data") or {}).get("effect")
    # The data of an event is what others say, too.
    known = effect if type(effect) is int and 0 < effect <= HIGHEST else None
    return {name: body[name] for name in ("n", "at", "name")} | {"effect": known}


def _note(connection: Connection, run: str, bodies: Sequence[dict[str, Any]], rulings: Mapping[int, str]) -> None:
    """Note events for the ledger; a draft has neither a place in the timeline yet nor a time."""
    for body in bodies:
        said = body if body["n"] > 0 else {name: value for name, value in body.items() if name not in {"n", "at"}}
        ruling = rulings.get(-body["n"])
        note(connection, run, "event", body["name"], said | {"ruling": ruling} if ruling else said)


def _named(bodies: Mapping[int, Any], numbered: Sequence[NumberedDraft]) -> list[Event]:
    """Return drafts as events; those that have joined the timeline already are not among them."""
    return [
        Event.model_validate(bodies[-number.draft] | {"n": number.n, "at": moment(number.at_ms)})
        for number in numbered
        if -number.draft in bodies
    ]
