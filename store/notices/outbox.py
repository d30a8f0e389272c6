"""What is still to be told to whom: every notice reaches every receiver, in the order of its run.

A notice is written in one transaction together with one line for each receiver. Whichever process serves a receiver
claims a line under a lease, sends it, and settles it. A line whose sender died is claimed again when the lease is over,
so a receiver may get a notice twice, under the same id; it gets a later notice of the same run before only where the
receiver itself says that this one need not be waited for.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

import structlog
from pydantic import ValidationError
from sqlalchemy import (
    Connection,
    Exists,
    Select,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    union,
    update,
)

from backstay.approvals.approval import Links
from backstay.approvals.notice import Notice, NoticeDraft, NoticeKind
from backstay.frozen import Frozen
from store.database.database import Database
from store.database.schema import deliveries, outbox, receivers, requests, runs
from store.database.transactions import afterwards, only_with, reading, writing
from store.ledger.noting import note
from store.notices.requests import end_requests, keep_request

KEPT_S = 24 * 3600.0
"""How long a receiver that does not answer is tried."""
FORGOTTEN_S = 48 * 3600.0
"""How long a receiver that nobody serves is written for."""
LEASE_S = 60.0
"""How long whoever claims a notice has to send it."""
_FIRST_RETRY_S = 1.0
_LONGEST_RETRY_S = 300.0
_WAITING, _DONE, _GIVEN_UP = "waiting", "done", "given_up"
_PASSED = "passed"
"""It still waits, but what comes after it does not wait for it."""
_TO_BE_SENT = (_WAITING, _PASSED)
_RESULT = {"events", "effects", "raw_outputs"}
"""What a notice leaves out of a Result: it may be long, and the Result says where it is."""


_log = structlog.get_logger(__name__)


class Claim(Frozen):
    """Hold one notice that is to be sent to one receiver, and the right to send it."""

    receiver: str
    position: int
    token: str
    tries: int
    """How often it was tried before."""
    written_at: float
    notice: Notice
    holds: bool = True
    """Whether what comes after it waits for it; where it does not, it never does again."""


class Lost(NamedTuple):
    """Name a workflow that has ended without telling so, and how it ended."""

    run: str
    """The run that it works on: its own, or that of which it is an undo."""
    workflow_id: str
    run_id: str
    """The run id of its first execution."""
    result: Mapping[str, Any]
    namespace: str


class Outbox:
    """Write notices, and hand them out to who sends them."""

    def __init__(self, database: Database, clock: Callable[[], float], now: Callable[[Connection], float]) -> None:
        """`now` is the time of leases, on which all processes agree; `clock` gives the times that people read."""
        self.database = database
        self._clock = clock
        self._now = now
        self.written = 0
        """How often this process has written."""
        self._news = asyncio.Event()

    @writing
    def subscribe(self, connection: Connection, receiver: str) -> None:
        """Write for this receiver from now on; to be repeated for as long as somebody serves it."""
        now = self._now(connection)
        known = connection.execute(select(receivers.c.name).where(receivers.c.name == receiver)).first()
        if known is None:
            connection.execute(insert(receivers).values(name=receiver, since=now, seen_at=now))
        else:
            connection.execute(update(receivers).where(receivers.c.name == receiver).values(seen_at=now))

    def tell_here(self, written: object) -> None:
        """Wake those who wait in this process for what a transaction has written, unless that is nothing."""
        if written:
            self.written += 1
            news, self._news = self._news, asyncio.Event()
            news.set()

    @only_with("drafts", otherwise=list)
    @afterwards(tell_here)
    @writing
    def write(
        self,
        connection: Connection,
        run: str,
        workflow_id: str,
        run_id: str,
        drafts: Sequence[NoticeDraft],
        *,
        namespace: str = "",
        page: str = "",
        result: Mapping[str, Any] | None = None,
    ) -> list[Notice]:
        """Write the notices of one workflow, and what they say of its requests; a repeat writes nothing.

        `page` is the address of the page that people decide on; `result` how the run ended, for the notice of that.
        """
        now = self._clock()
        ids = [Notice.named(workflow_id, run_id, draft) for draft in drafts]
        known = set(connection.execute(select(outbox.c.id).where(outbox.c.id.in_(ids))).scalars())
        common = _common(connection, run, namespace)
        written: list[Notice] = []
        for draft in sorted(drafts, key=lambda draft: draft.sequence):
            if Notice.named(workflow_id, run_id, draft) in known:
                continue
            request = keep_request(connection, now, draft, run=run, workflow_id=workflow_id, run_id=run_id)
            if draft.event is NoticeKind.ENDED:
                end_requests(connection, now, workflow_id, run_id)
            notice = _notice(workflow_id, run_id, draft, common, page=page, request=request, result=result)
            self._add(connection, now, run, notice)
            written.append(notice)
        if written:
            # It lives: it was reset, or Temporal has come back from a backup.
            lost = (runs.c.run == f"{workflow_id}/{run_id}", runs.c.lost_at.is_not(None))
            connection.execute(update(runs).where(*lost).values(lost_at=None, checked_at=now))
        return written

    @afterwards(tell_here)
    @writing
    def lost(self, connection: Connection, lost: Lost, *, page: str = "") -> bool:
        """Tell that Temporal has ended a workflow, once; return whether it was to be told.

        A workflow that has told it itself tells nothing more, and neither does an undo of which nothing waits.
        """
        run, workflow_id, run_id, result, namespace = lost
        stream, now = f"{workflow_id}/{run_id}", self._clock()
        waited = end_requests(connection, now, workflow_id, run_id)
        silent = update(runs).where(runs.c.run == stream, runs.c.state == "open", runs.c.lost_at.is_(None))
        if not connection.execute(silent.values(lost_at=now)).rowcount and not waited:
            return False
        last = connection.execute(select(func.max(outbox.c.sequence)).where(outbox.c.stream == stream)).scalar()
        at = datetime.fromtimestamp(now, UTC).isoformat()
        draft = NoticeDraft(sequence=(last or 0) + 1, event=NoticeKind.ENDED, at=at)
        common = _common(connection, run, namespace)
        notice = _notice(workflow_id, run_id, draft, common, page=page, request=None, result=result)
        self._add(connection, now, run, notice)
        note(connection, run, "run", "run.lost", {"workflow_id": workflow_id, "run_id": run_id, "result": {**result}})
        return True

    async def news(self, seen: int, within_s: float) -> None:
        """Wait until this process has written more than `seen`, at most so long: other processes write, too."""
        if self.written == seen:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), within_s)

    def _add(self, connection: Connection, now: float, run: str, notice: Notice) -> None:
        stream = f"{notice.workflow_id}/{notice.run_id}"
        row = {"id": notice.id, "run": run, "stream": stream, "sequence": notice.sequence, "created_at": now}
        added = connection.execute(insert(outbox).values(**row, body=notice.plain()))
        at = self._now(connection)
        served = connection.execute(select(receivers.c.name).where(receivers.c.seen_at > at - FORGOTTEN_S)).scalars()
        position = (added.inserted_primary_key or (0,))[0]
        lines = [
            {
                "receiver": name,
                "position": position,
                "stream": stream,
                "sequence": notice.sequence,
                "state": _WAITING,
                "tries": 0,
                "due_at": at,
                "lease": 0.0,
                "token": "",
                "written_at": at,
            }
            for name in served
        ]
        if lines:
            connection.execute(insert(deliveries), lines)

    @only_with("receivers_", otherwise=list)
    @writing
    def claim(self, connection: Connection, receivers_: Collection[str], limit: int = 20) -> list[Claim]:
        """Claim what is due for receivers, of each run only the first notice that others wait for, and those passed."""
        now = self._now(connection)
        # Each in its own statement, which reads no more of the index than it returns: there may be a pile of them.
        first = _due(receivers_, _WAITING, now, limit).where(~_blocked())
        passed = _due(receivers_, _PASSED, now, limit)
        rows = [row for due in (first, passed) for row in connection.execute(due).all()]
        rows = sorted(rows, key=lambda row: (row.due_at, row.position))[:limit]
        return [claim for row in rows if (claim := _claimed(connection, row, now))]

    @writing
    def sent(self, connection: Connection, claim: Claim) -> None:
        """Record that a receiver has a notice."""
        self._settle(connection, claim, {"state": _DONE, "tries": claim.tries + 1})

    @writing
    def failed(
        self, connection: Connection, claim: Claim, retry_in_s: float | None = None, *, holds: bool = True
    ) -> bool:
        """Record that a receiver did not take a notice; return whether it will be tried again.

        The waits between tries double; after a day it is given up, and the next notice of the run is tried, which is
        tried at once where this one does not hold it back. A notice that was passed once stays passed.
        """
        holds = holds and claim.holds
        values = _put_back(claim.tries, claim.written_at, self._now(connection), retry_in_s, holds=holds)
        return self._settle(connection, claim, values) and values["state"] != _GIVEN_UP

    @reading
    def waiting(self, connection: Connection, receiver: str) -> int:
        """Return how many notices a receiver has not had yet."""
        chosen = (
            select(func.count())
            .select_from(deliveries)
            .where(deliveries.c.receiver == receiver, deliveries.c.state.in_(_TO_BE_SENT))
        )
        return connection.execute(chosen).scalar_one()

    @writing
    def forget(self, connection: Connection, before: float) -> int:
        """Remove notices that were written before a unix time and are to be sent to nobody any more.

        The last one of a workflow that may still be open stays: its number tells that of the next.
        A receiver that nobody has served for two days, such as one under an address of before, waits no more.
        """
        at = self._now(connection)
        served = select(receivers.c.name).where(receivers.c.seen_at > at - FORGOTTEN_S)
        # Looked up once: for each notice anew, a pile of them would hold up all writers for minutes.
        unsent = (deliveries.c.state.in_(_TO_BE_SENT), deliveries.c.receiver.in_(served))
        waits = select(deliveries.c.position).where(*unsent)
        old = and_(
            outbox.c.created_at < before, outbox.c.position.not_in(waits), outbox.c.position.not_in(_last_of_open())
        )
        positions = select(outbox.c.position).where(old)
        count = connection.execute(select(func.count()).select_from(outbox).where(old)).scalar_one()
        connection.execute(delete(deliveries).where(deliveries.c.position.in_(positions)))
        connection.execute(delete(outbox).where(old))
        return count

    def _settle(self, connection: Connection, claim: Claim, values: Mapping[str, Any]) -> bool:
        """Change a line if it is still held under this claim."""
        mine = (
            deliveries.c.receiver == claim.receiver,
            deliveries.c.position == claim.position,
            deliveries.c.token == claim.token,
        )
        return bool(connection.execute(update(deliveries).where(*mine).values(**values)).rowcount)


def _due(receivers_: Collection[str], state: str, now: float, limit: int) -> Select[Any]:
    """Return a query for lines of one state that are due and that nobody holds, first those that have been so longest.

    The index of what is due is in this order only within one state.
    """
    return (
        select(deliveries, outbox.c.body)
        .join(outbox, outbox.c.position == deliveries.c.position)
        .where(
            deliveries.c.receiver.in_(list(receivers_)),
            deliveries.c.state == state,
            deliveries.c.due_at <= now,
            deliveries.c.lease <= now,
        )
        .order_by(deliveries.c.due_at, deliveries.c.position)
        .limit(limit)
    )


def _blocked() -> Exists:
    """Return whether an earlier notice of the same run holds a line back."""
    earlier = deliveries.alias()
    return exists().where(
        earlier.c.receiver == deliveries.c.receiver,
        earlier.c.stream == deliveries.c.stream,
        earlier.c.state == _WAITING,
        or_(
            earlier.c.sequence < deliveries.c.sequence,
            and_(earlier.c.sequence == deliveries.c.sequence, earlier.c.position < deliveries.c.position),
        ),
    )


def _last_of_open() -> Select[Any]:
    """Return a query for the last notices of workflows whose end may still have to be told."""
    silent = select(runs.c.run).where(runs.c.state == "open", runs.c.lost_at.is_(None))
    asking = select(requests.c.workflow_id + "/" + requests.c.run_id).where(requests.c.state == "open")
    streams = union(silent, asking)
    # After a reset a later notice may have a lower number.
    last = select(outbox.c.stream, func.max(outbox.c.sequence)).where(outbox.c.stream.in_(streams))
    return select(outbox.c.position).where(
        tuple_(outbox.c.stream, outbox.c.sequence).in_(last.group_by(outbox.c.stream))
    )


def _claimed(connection: Connection, row: Any, now: float) -> Claim | None:
    token = secrets.token_hex(8)
    free = (
        deliveries.c.receiver == row.receiver,
        deliveries.c.position == row.position,
        deliveries.c.state == row.state,
        deliveries.c.lease == row.lease,
        deliveries.c.token == row.token,
    )
    try:
        notice = Notice.model_validate(row.body)
    except ValidationError as error:
        # Such as one that only a newer version can read: it must not hold up what others are told.
        changed = _put_back(row.tries, row.written_at, now, holds=row.state == _WAITING)
        if connection.execute(update(deliveries).where(*free).values(**changed)).rowcount:
            # Without what it holds, which is nobody's business here.
            where = [".".join(map(str, fault["loc"])) for fault in error.errors(include_input=False)][:5]
            about = {"receiver": row.receiver, "position": row.position, "state": changed["state"]}
            _log.error("notice.unreadable", **about, where=where)
        return None
    taken = connection.execute(update(deliveries).where(*free).values(lease=now + LEASE_S, token=token))
    if not taken.rowcount:
        return None
    return Claim(
        receiver=row.receiver,
        position=row.position,
        token=token,
        tries=row.tries,
        written_at=row.written_at,
        notice=notice,
        holds=row.state == _WAITING,
    )


def _put_back(
    tries: int, written_at: float, now: float, retry_in_s: float | None = None, *, holds: bool
) -> dict[str, Any]:
    """Return what a line becomes that was not taken: it is due again later, or given up after a day."""
    wait = retry_in_s or min(_FIRST_RETRY_S * 2.0 ** min(tries, 20), _LONGEST_RETRY_S)
    state = _WAITING if holds else _PASSED
    if now + wait > written_at + KEPT_S:
        state = _GIVEN_UP
    return {"state": state, "tries": tries + 1, "due_at": now + wait, "lease": 0.0, "token": ""}


def _common(connection: Connection, run: str, namespace: str) -> dict[str, Any]:
    """Return what every notice says of its run."""
    chosen = select(runs.c.user_id, runs.c.session_id, runs.c.opened, runs.c.metadata).where(runs.c.run == run)
    row = connection.execute(chosen).first()
    if row is None:
        return {"namespace": namespace}
    return {
        "namespace": namespace,
        "user_id": row.user_id,
        "session_id": row.session_id,
        "task": str((row.opened or {}).get("task_line", "")),
        "metadata": row.metadata or {},
        "web_ui": str((row.opened or {}).get("web_ui", "")),
    }


def _notice(
    workflow_id: str,
    run_id: str,
    draft: NoticeDraft,
    common: dict[str, Any],
    *,
    page: str,
    request: dict[str, Any] | None,
    result: Mapping[str, Any] | None,
) -> Notice:
    about = {NoticeKind.EFFECT_UNKNOWN: "effect", NoticeKind.BUDGET_OVERSHOT: "budget"}.get(draft.event)
    more: dict[str, Any] = {} if about is None else {about: draft.data}
    if draft.event is NoticeKind.ENDED and result is not None:
        more["result"] = {name: value for name, value in result.items() if name not in _RESULT}
    return Notice(
        id=Notice.named(workflow_id, run_id, draft),
        sequence=draft.sequence,
        event=draft.event,
        at=draft.at,
        workflow_id=workflow_id,
        run_id=run_id,
        links=_links(page, common, workflow_id, run_id, request),
        request=request,
        decision=draft.decision,
        reminder=draft.reminder,
        **{name: value for name, value in common.items() if name != "web_ui"},
        **more,
    )


def _links(
    page: str, common: Mapping[str, Any], workflow_id: str, run_id: str, request: dict[str, Any] | None
) -> Links:
    """Return where people find the request, or else the run."""
    if request is not None:
        return Links.model_validate(request.get("links") or {})
    namespace, name = quote(str(common["namespace"]), safe=""), quote(workflow_id, safe="")
    web_ui = str(common.get("web_ui", ""))
    return Links(
        page=f"{page}/runs/{name}" if page else None,
        web_ui=f"{web_ui}/namespaces/{namespace}/workflows/{name}/{quote(run_id, safe='')}" if web_ui else None,
    )
