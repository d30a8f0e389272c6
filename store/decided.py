"""Read what people decided about calls, from the ledger, in the form that lines are learned from."""

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, and_, bindparam, case, func, or_, select

from backstay.approvals.approval import RecordedDecision
from backstay.canonical import digest_of
from backstay.effects.effect import EffectState
from backstay.policies.learning.case import Case, Said
from backstay.provenance.source import Source
from backstay.shown import holds_mask
from backstay.task.ledger.chain import time_of
from backstay.tools.tool import Safety
from store.database.database import Database
from store.database.schema import effects, ledger_rows, tool_definitions
from store.database.transactions import reading
from store.definitions import FIRST_SIGHT
from store.effects.effects import is_unknown

_AT_ONCE = 200
"""This many runs are read at once."""
_ASKED, _OPENED = "request.asked", "run.opened"
_DECIDED = and_(ledger_rows.c.kind == "decision", ledger_rows.c.at >= bindparam("since_"))
_RUNS = select(ledger_rows.c.run).where(_DECIDED).distinct().order_by(ledger_rows.c.run)
_ROWS = (
    select(ledger_rows.c.run, ledger_rows.c.kind, ledger_rows.c.name, ledger_rows.c.at, ledger_rows.c.body)
    .where(
        ledger_rows.c.run.in_(bindparam("runs_", expanding=True)),
        or_(ledger_rows.c.kind == "decision", ledger_rows.c.name.in_((_ASKED, _OPENED))),
    )
    .order_by(ledger_rows.c.run, ledger_rows.c.n)
)
_UNDO = effects.alias("undo")
_NOT_UNDONE = or_(_UNDO.c.state.in_((EffectState.FAILED, EffectState.DOUBTFUL)), is_unknown(_UNDO))
_UNDOS = (
    select(effects.c.tool, func.count(), func.sum(case((_NOT_UNDONE, 1), else_=0)))
    .join(_UNDO, and_(_UNDO.c.run == effects.c.run, _UNDO.c.n == effects.c.n, _UNDO.c.undo.is_(True)))
    .where(effects.c.undo.is_(False), _UNDO.c.first_sent_at >= bindparam("since_"))
    .group_by(effects.c.tool)
)
_ACCEPTED = (
    select(tool_definitions.c.tool, func.max(tool_definitions.c.allowed_at))
    .where(tool_definitions.c.allowed_by != FIRST_SIGHT)
    .group_by(tool_definitions.c.tool)
)
_ONE_AT_A_TIME = frozenset({"call", "batch"})
_CODES = ("<U+", "⏎", "…")
_CLIPPED_FROM = 150
"""In arguments that are not shown whole, a string of this many characters may have been cut."""
_CHANGED = re.compile(r"[~+-] ([^:.]+)[:.]")
_SAID: Mapping[str, Said] = {"approve": "approve", "modify": "modify", "reject": "reject"}


class DecidedCalls:
    """Read decisions about calls as cases to learn from, and how undos went."""

    def __init__(self, database: Database, now: Callable[[Connection], float]) -> None:
        """Get the database's time in unix seconds from `now`."""
        self.database = database
        self._now = now

    async def cases(self, since: float, user: str | None = None) -> AsyncGenerator[Case]:
        """Yield each decision about each call since a unix time; with `user`, only about runs for that user."""
        begins, accepted = time_of(since), await self.accepted_definitions()
        names = await self._runs(begins)
        for start in range(0, len(names), _AT_ONCE):
            for rows in await self._rows(names[start : start + _AT_ONCE]):
                for found in cases_of(rows, accepted, user):
                    if found.decided_at >= since:
                        yield found

    @reading
    def undos(self, connection: Connection, since: float) -> dict[str, tuple[int, int]]:
        """Return by tool how many of its calls were to be undone, and of how many it is not known that they were."""
        given = {"since_": since, "now_": self._now(connection)}
        return {tool: (tried, int(failed)) for tool, tried, failed in connection.execute(_UNDOS, given)}

    @reading
    def accepted_definitions(self, connection: Connection) -> dict[str, float]:
        """Return the tools of which people have accepted another definition, with when they last did."""
        return {tool: at for tool, at in connection.execute(_ACCEPTED)}  # noqa: C416 - rows are not pairs for pyright

    @reading
    def _runs(self, connection: Connection, since: str) -> list[str]:
        return [*connection.execute(_RUNS, {"since_": since}).scalars()]

    @reading
    def _rows(self, connection: Connection, runs: Sequence[str]) -> list[list[Any]]:
        found: dict[str, list[Any]] = {}
        for row in connection.execute(_ROWS, {"runs_": list(runs)}):
            found.setdefault(row.run, []).append(row)
        return [*found.values()]


def cases_of(rows: Sequence[Any], accepted: Mapping[str, float], user: str | None = None) -> Iterator[Case]:
    """Yield the cases of one run from its rows in order; a row that cannot be read is passed over."""
    requests: dict[str, dict[str, Any]] = {}
    starters: frozenset[str] = frozenset()
    whose: str | None = None
    for row in rows:
        body = json.loads(row.body)
        if row.name == _OPENED:
            whose = str(body.get("user_id", ""))
            proven = str(body.get("started_by") or "")
            starters = frozenset({proven, whose}) if proven else frozenset()
        elif row.name == _ASKED:
            requests[str(body.get("id", ""))] = body
        elif user is None or user == whose:
            yield from _of_decision(row.run, starters, requests, body, accepted)


def _of_decision(
    run: str,
    starters: frozenset[str],
    requests: Mapping[str, dict[str, Any]],
    body: dict[str, Any],
    accepted: Mapping[str, float],
) -> Iterator[Case]:
    try:
        decision = RecordedDecision.model_validate(body)
        request = requests[decision.request_id]
        asked_at, decided_at = (datetime.fromisoformat(at).timestamp() for at in (request["created_at"], decision.at))
    except (ValidationError, KeyError, ValueError, TypeError):
        return
    for call in request.get("calls", ()):
        said = _SAID.get(decision.calls.get(call["index"], decision.verdict))
        # A decision that waits for the word of others has let nothing go.
        if said is None or (said == "approve" and decision.state != "decided"):
            continue
        yield Case(
            run=run,
            request=decision.request_id,
            starters=starters,
            tool=call["tool"],
            arguments=call["arguments"],
            by=decision.by,
            said=said,
            verified=decision.verified,
            # It is recorded in whole seconds, so nobody is taken to have read for longer than they had.
            asked_at=asked_at + 1,
            decided_at=decided_at,
            args_digest=call.get("args_digest", ""),
            unseen=_unseen(call),
            incomplete=call.get("left_out", 0) > 0,
            by_default=request.get("kind") in _ONE_AT_A_TIME and "always" in request.get("may_remember", ()),
            reads=call.get("safety") == Safety.READ_ONLY.value,
            sources=_sources(call.get("sources", {})),
            edited=_edited(decision, call["index"]) if said == "modify" else frozenset(),
            was_edited=bool(call.get("changed") or call.get("changed_by")),
            current=decided_at >= accepted.get(call["tool"], 0),
        )


def _unseen(call: Mapping[str, Any]) -> frozenset[str]:
    """Return which arguments may be other ones than those that are shown."""
    arguments = call["arguments"]
    whole = not call.get("clipped") and not call.get("left_out") and digest_of(arguments) == call.get("args_digest")
    return frozenset() if whole else frozenset(name for name, value in arguments.items() if not _is_certain(value))


def _is_certain(value: Any) -> bool:
    if isinstance(value, dict | list):
        return False
    if not isinstance(value, str):
        return True
    return len(value) < _CLIPPED_FROM and not holds_mask(value) and not any(code in value for code in _CODES)


def _sources(told: Mapping[str, Any]) -> dict[str, tuple[Source, ...]]:
    """Return where arguments came from, by their top-level names."""
    found: dict[str, tuple[Source, ...]] = {}
    for pointer, sources in told.items():
        name = pointer.removeprefix("/").partition("/")[0].replace("~1", "/").replace("~0", "~")
        found[name] = (*found.get(name, ()), *map(Source.model_validate, sources))
    return found


def _edited(decision: RecordedDecision, index: int) -> frozenset[str]:
    """Return the names of what a person changed; a value that cannot be told counts as another argument."""
    lines = [line for changed in decision.changed if changed.index == index for line in changed.lines]
    named = [found[1] for line in lines if (found := _CHANGED.match(line))]
    is_whole = bool(named) and not lines[-1].endswith("of the difference")
    return frozenset(named if is_whole else [*named, ""])
