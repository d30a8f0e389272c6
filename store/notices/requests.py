"""The requests of all runs, open and closed, so that nobody has to ask every run."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, Select, delete, func, insert, or_, select, update

from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.approvals.notice import DecisionNotice, NoticeDraft, NoticeKind
from backstay.canonical import digest_of
from backstay.frozen import Frozen
from store.database.database import Database
from store.database.schema import requests
from store.database.transactions import only_with, reading, writing
from store.ledger.noting import note

RequestState = Literal["open", "decided", "expired", "withdrawn", "ended"]
_BECAME: dict[NoticeKind, RequestState] = {
    NoticeKind.DECIDED: "decided",
    NoticeKind.EXPIRED: "expired",
    NoticeKind.WITHDRAWN: "withdrawn",
}
_MOST_WORDS = 4000
_OF_CALLS = frozenset({RequestKind.CALL, RequestKind.BATCH})


class RequestRow(Frozen):
    """Hold one request as it was asked, and what became of it; times are unix seconds."""

    position: int
    """Grows with each request of the store; pages go by it."""
    workflow_id: str
    run_id: str
    """The run id of the first execution of the workflow that asks."""
    run: str
    """The run whose effects are asked about; an undo after the end asks in a workflow of its own."""
    request_id: str
    user_id: str
    session_id: str | None = None
    state: RequestState
    request: dict[str, Any]
    """The ApprovalRequest as JSON."""
    decision: DecisionNotice | None = None
    opened_at: float
    changed_at: float
    expires_at: float | None = None
    checked_at: float = 0
    """When Temporal was last asked whether the run is still open."""
    kind: str = ""
    """What the request is about."""
    alike: str = ""
    """The same for requests of calls of which the very same is shown; empty where they cannot be decided at once."""
    reminded: int = 0
    """How often people were reminded of it."""
    reminded_at: float | None = None
    """When they last were; kept here, because notices are forgotten while a request may still wait."""


class Requests:
    """Keep every request once, in the order in which they were asked."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Read time from `clock`, in unix seconds."""
        self.database = database
        self._clock = clock

    async def page(
        self,
        *,
        closed: bool = False,
        before: int | None = None,
        limit: int = 50,
        user_id: str | None = None,
        words: str = "",
        seen_by: str | None = None,
        kind: str = "",
    ) -> list[RequestRow]:
        """Return requests, the newest first: those that are open, or those that are not.

        `before`: only those with a lower position. `words`: only those that hold each of these words, in any case, in
        their task, question, tools, arguments, workflow id or user. `seen_by`: only those that concern this person, as
        the user of the run or as somebody who may decide.
        """
        chosen = select(requests).where(_is_open(not closed)).order_by(requests.c.position.desc()).limit(limit)
        if before is not None:
            chosen = chosen.where(requests.c.position < before)
        if user_id is not None:
            chosen = chosen.where(requests.c.user_id == user_id)
        if kind:
            chosen = chosen.where(requests.c.kind == kind)
        if seen_by is not None:
            chosen = chosen.where(_concerns(seen_by))
        return await self._rows(_holding(chosen, words))

    async def get(self, workflow_id: str, request_id: str, run_id: str | None = None) -> RequestRow | None:
        """Return a request; of several runs of that workflow id the newest, unless `run_id` names one."""
        chosen = select(requests).where(requests.c.workflow_id == workflow_id, requests.c.request_id == request_id)
        if run_id is not None:
            chosen = chosen.where(requests.c.run_id == run_id)
        found = await self._rows(chosen.order_by(requests.c.position.desc()).limit(1))
        return found[0] if found else None

    async def of_workflow(self, workflow_id: str, limit: int = 200, *, run: str | None = None) -> list[RequestRow]:
        """Return the requests of a workflow id, the newest first; with `run`, only those about that run."""
        chosen = select(requests).where(requests.c.workflow_id == workflow_id)
        if run is not None:
            chosen = chosen.where(requests.c.run == run)
        return await self._rows(chosen.order_by(requests.c.position.desc()).limit(limit))

    @reading
    def count_open(self, connection: Connection, seen_by: str | None = None) -> int:
        """Return how many requests are open; with `seen_by`, how many of them concern this person."""
        chosen = select(func.count()).select_from(requests).where(_is_open(True))
        if seen_by is not None:
            chosen = chosen.where(_concerns(seen_by))
        return connection.execute(chosen).scalar_one()

    @only_with("alike", otherwise=dict)
    @reading
    def count_alike(self, connection: Connection, alike: Sequence[str], seen_by: str | None = None) -> dict[str, int]:
        """Return how many open requests are about the same calls, by what they have in common."""
        wanted = [said for said in dict.fromkeys(alike) if said]
        chosen = select(requests.c.alike, func.count()).where(_is_open(True), requests.c.alike.in_(wanted))
        if seen_by is not None:
            chosen = chosen.where(_concerns(seen_by))
        return {str(said): int(count) for said, count in connection.execute(chosen.group_by(requests.c.alike))}

    async def of_alike(self, alike: str, seen_by: str | None = None, limit: int = 200) -> list[RequestRow]:
        """Return the open requests about the same calls, the oldest first."""
        chosen = select(requests).where(_is_open(True), requests.c.alike == alike)
        if seen_by is not None:
            chosen = chosen.where(_concerns(seen_by))
        return await self._rows(chosen.order_by(requests.c.position).limit(limit))

    @reading
    def mark(self, connection: Connection) -> tuple[float, int]:
        """Return what differs whenever a request was opened or something became of one."""
        latest = select(func.max(requests.c.changed_at), func.max(requests.c.position))
        changed_at, position = connection.execute(latest).one()
        return float(changed_at or 0), int(position or 0)

    @reading
    def oldest_open(self, connection: Connection) -> float | None:
        """Return when the oldest open request was asked; None without any."""
        return connection.execute(select(func.min(requests.c.opened_at)).where(_is_open(True))).scalar()

    async def unchecked(self, limit: int = 50) -> list[RequestRow]:
        """Return open requests, first those whose runs were not looked at for the longest time."""
        chosen = select(requests).where(_is_open(True)).order_by(requests.c.checked_at, requests.c.position)
        return await self._rows(chosen.limit(limit))

    @only_with("rows")
    @writing
    def checked(self, connection: Connection, rows: Sequence[RequestRow]) -> None:
        """Record that the runs of these requests were looked at."""
        these = requests.c.position.in_([row.position for row in rows])
        connection.execute(update(requests).where(these).values(checked_at=self._clock()))

    @writing
    def keep_votes(self, connection: Connection, row: RequestRow, votes: Sequence[dict[str, Any]]) -> None:
        """Keep with an open request the votes that its run has now, unless the request has changed since it was read.

        A run tells nobody of a vote that waits for others.
        """
        request = {**row.request, "decided": [*votes]}
        same = (requests.c.position == row.position, _is_open(True), requests.c.changed_at == row.changed_at)
        connection.execute(update(requests).where(*same).values(request=request, changed_at=self._clock()))

    @writing
    def forget(self, connection: Connection, before: float, *, dry_run: bool = False) -> int:
        """Remove closed requests that nothing has changed since a unix time; return how many."""
        old = (~_is_open(True)) & (requests.c.changed_at < before)
        count = connection.execute(select(func.count()).select_from(requests).where(old)).scalar_one()
        if not dry_run:
            connection.execute(delete(requests).where(old))
        return count

    @reading
    def _rows(self, connection: Connection, chosen: Select[Any]) -> list[RequestRow]:
        return [RequestRow.model_validate(dict(row)) for row in connection.execute(chosen).mappings()]


def keep_request(
    connection: Connection, now: float, draft: NoticeDraft, *, run: str, workflow_id: str, run_id: str
) -> dict[str, Any] | None:
    """Keep what a notice says of a request, in a transaction under way; return the request as it was asked."""
    request_id = draft.request.id if draft.request is not None else draft.request_id
    if not request_id:
        return None
    named = (
        requests.c.workflow_id == workflow_id,
        requests.c.run_id == run_id,
        requests.c.request_id == request_id,
    )
    before = connection.execute(select(requests.c.request, requests.c.reminded).where(*named)).first()
    known = None if before is None else before.request
    if draft.request is not None:
        request = draft.request.plain()
        if not draft.reminder:
            note(connection, run, "request", "request.asked", request)
        values = _asked(now, draft.request)
        if draft.reminder or not draft.request.escalation:
            values |= {"reminded": draft.reminder, "reminded_at": _unix(draft.at) if draft.reminder else None}
        if known is None:
            first = {"run": run, "workflow_id": workflow_id, "run_id": run_id, "request_id": request_id}
            connection.execute(insert(requests), first | values | {"opened_at": now, "checked_at": now})
        else:
            connection.execute(update(requests).where(*named).values(**values))
        return request
    if known is not None and draft.event in _BECAME:
        decision = None if draft.decision is None else draft.decision.plain()
        values = {"state": _BECAME[draft.event], "decision": decision, "changed_at": now}
        connection.execute(update(requests).where(*named).values(**values))
        said = {"request_id": request_id, "decision": decision}
        note(connection, run, "request", f"request.{draft.event.value}", said)
    return known


def end_requests(connection: Connection, now: float, workflow_id: str, run_id: str) -> int:
    """Close what is open of a run that has ended, in a transaction under way; return how many requests that were."""
    named = (requests.c.workflow_id == workflow_id, requests.c.run_id == run_id, _is_open(True))
    return connection.execute(update(requests).where(*named).values(state="ended", changed_at=now)).rowcount


def _asked(now: float, request: ApprovalRequest) -> dict[str, Any]:
    expires = None if request.expires_at is None else _unix(request.expires_at)
    return {
        "user_id": request.user_id,
        "session_id": request.session_id,
        "state": "open",
        "request": request.plain(),
        "decision": None,
        "words": _words_of(request),
        "changed_at": now,
        "expires_at": expires,
        **_facts_of(request),
    }


def _unix(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def _facts_of(request: ApprovalRequest) -> dict[str, str]:
    """Return what requests are chosen by: who may decide, what kind they are, and which are about the same calls."""
    deciders = "\n".join(sorted(request.deciders))
    # Who decides them at once is shown one of them: all that is shown of a call must be the same, also what it changes.
    same = [call.model_copy(update={"index": 0}).plain() for call in request.calls]
    same += [] if request.program is None else [request.program.plain()]
    whole = request.kind in _OF_CALLS and all(call.args_digest for call in request.calls)
    return {
        "readers": f"\n{deciders}\n" if deciders else "",
        "kind": request.kind.value,
        "alike": digest_of(same) if whole and same else "",
    }


def _concerns(by: str) -> Any:
    """Return the condition that a request concerns a person; names are compared character by character."""
    named = func.replace(requests.c.readers, f"\n{by}\n", "") != requests.c.readers
    return or_(requests.c.readers == "", requests.c.user_id == by, named)


def _words_of(request: ApprovalRequest) -> str:
    """Return what a search looks at, in lower case; a page of requests reads no JSON."""
    calls = [f"{call.tool} {call.arguments}" for call in request.calls]
    steps = [] if request.proposal is None else [f"{step.action} {step.summary}" for step in request.proposal.steps]
    parts = [*request.above, request.task, request.question, request.user_id, request.kind.value, *calls, *steps]
    return "\n".join(parts).casefold()[:_MOST_WORDS]


def _holding(chosen: Select[Any], words: str) -> Select[Any]:
    for word in words.casefold().split()[:20]:
        within = requests.c.words.contains(word, autoescape=True)
        chosen = chosen.where(within | requests.c.workflow_id.contains(word, autoescape=True))
    return chosen


def _is_open(wanted: bool) -> Any:  # noqa: FBT001 - the one thing it is about
    return requests.c.state == "open" if wanted else requests.c.state != "open"
