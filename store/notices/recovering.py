"""Bring requests up to date after a restore: what was asked and decided since the backup, only the runs still know."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, case, func, select, update

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.notice import NoticeDraft, NoticeKind
from store.database.database import Database
from store.database.identity import StoreIdentity
from store.database.schema import requests
from store.database.transactions import reading, writing
from store.notices.requests import keep_request

_OPEN = requests.c.state == "open"


class OpenRequests(NamedTuple):
    """Count the open requests of a workflow id."""

    known: int
    """Those of which something was written since the restore."""
    doubted: int
    """Those that stand as in the backup."""


class AskingRun(NamedTuple):
    """Name a workflow that asks people something."""

    run: str
    """The run that it works on: its own, or that of which it is an undo."""
    workflow_id: str
    run_id: str
    """The run id of its first execution."""


class Recovering:
    """Compare requests with what their runs say, and write what is missing."""

    def __init__(self, database: Database, clock: Callable[[], float], identity: Callable[[], StoreIdentity]) -> None:
        """Read time from `clock`, in unix seconds."""
        self.database = database
        self._clock = clock
        self._identity = identity

    @property
    def restored_at(self) -> float | None:
        """Return when the store was last restored from a backup, in unix seconds; None where it never was."""
        # The number of an epoch is the time at which it began.
        return self._since if self._since > 1 else None

    @property
    def _since(self) -> int:
        return self._identity().epoch

    @reading
    def open_requests(self, connection: Connection) -> dict[str, OpenRequests]:
        """Return how many open requests each workflow id has."""
        known = func.sum(case((requests.c.changed_at >= self._since, 1), else_=0))
        chosen = select(requests.c.workflow_id, known, func.count()).where(_OPEN).group_by(requests.c.workflow_id)
        return {str(name): OpenRequests(int(n), int(total - n)) for name, n, total in connection.execute(chosen)}

    @reading
    def doubted(self, connection: Connection, asking: AskingRun) -> frozenset[str]:
        """Return the open requests of a workflow that stand as in the backup, by id."""
        old = (*_of(asking), _OPEN, requests.c.changed_at < self._since)
        return frozenset(connection.execute(select(requests.c.request_id).where(*old)).scalars())

    @writing
    def put_back(self, connection: Connection, asking: AskingRun, pending: Sequence[ApprovalRequest]) -> frozenset[str]:
        """Keep what waits as its run says it, unless something was written of it since; return what was missing."""
        now, missing = self._clock(), set[str]()
        for request in pending:
            named = (*_of(asking), requests.c.request_id == request.id)
            row = connection.execute(select(requests).where(*named)).first()
            if row is not None and row.changed_at >= self._since:
                continue
            if row is not None and (row.state, row.request) == ("open", request.plain()):
                connection.execute(update(requests).where(*named).values(changed_at=now))
                continue
            at = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")
            draft = NoticeDraft(sequence=0, event=NoticeKind.ASKED, at=at, request=request)
            keep_request(connection, now, draft, **asking._asdict())
            missing.add(request.id)
        return frozenset(missing)

    @writing
    def close(self, connection: Connection, asking: AskingRun, became: Sequence[NoticeDraft]) -> None:
        """Keep what became of requests that still stand as open."""
        for draft in became:
            still = (*_of(asking), _OPEN, requests.c.request_id == draft.request_id)
            if connection.execute(select(requests.c.position).where(*still)).first() is not None:
                keep_request(connection, self._clock(), draft, **asking._asdict())


def _of(asking: AskingRun) -> tuple[Any, ...]:
    return requests.c.workflow_id == asking.workflow_id, requests.c.run_id == asking.run_id
