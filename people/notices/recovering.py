"""Ask runs what they wait for after the store was restored, so that the inbox shows that and nothing else."""

from collections import deque
from collections.abc import Collection, Iterator, Sequence

import structlog

from backstay.approvals.approval import Verdict
from backstay.approvals.notice import DecisionNotice, NoticeDraft, NoticeKind
from backstay.client import Backstay
from backstay.client.executions import Execution, started_with
from backstay.task.event import Event
from store.notices.recovering import AskingRun, OpenRequests
from store.store import Store

MOST_RUNS = 10_000
"""How many open runs are looked through at most, the newest first."""
AT_ONCE = 200
"""How many runs are asked before others get their turn."""
MOST_FAILED = 5
"""How many of them may fail to answer before the rest waits for the next time."""
_BECAME = {
    "approval.decided": NoticeKind.DECIDED,
    "approval.expired": NoticeKind.EXPIRED,
    "approval.withdrawn": NoticeKind.WITHDRAWN,
}
_NONE = OpenRequests(0, 0)
log = structlog.get_logger("backstay.notices")


class Recovery:
    """Compare the requests of a restored store with those of the open runs, once in the life of a process.

    A run is asked only where the store and Temporal differ in how many requests it has, or where nothing was written of
    them since the restore.
    """

    def __init__(self, store: Store, backstay: Backstay) -> None:
        """Ask nothing yet."""
        self._store = store
        self._backstay = backstay
        self._left: deque[Execution] | None = None
        self._failed: list[Execution] = []

    async def compare(self) -> bool:
        """Ask some of the runs that are left; return whether others can be asked now. Raises BackstayError."""
        if self._store.recovering.restored_at is None:
            return False
        if self._left is None:
            self._left = deque(await self._differing())
        failed = 0
        for _ in range(min(AT_ONCE, len(self._left))):
            execution = self._left.popleft()
            try:
                await self._compare(execution)
            except Exception as error:
                # Such as one that no worker can replay: it is asked again the next time.
                self._failed.append(execution)
                failed += 1
                if failed == MOST_FAILED:
                    raise
                said = f"{type(error).__name__}: {error}"
                log.warning("requests.not_compared", workflow_id=execution.workflow_id, error=said)
        if self._left:
            return True
        self._left.extend(self._failed)
        self._failed.clear()
        return False

    async def _differing(self) -> list[Execution]:
        recovering, queue = self._store.recovering, self._backstay.task_queue
        known, since = await recovering.open_requests(), recovering.restored_at or 0
        found = [run for run in await self._backstay.open_runs(MOST_RUNS) if run.task_queue == queue]
        return [run for run in found if _differs(run, known.get(run.workflow_id, _NONE), since)]

    async def _compare(self, execution: Execution) -> None:
        handle, recovering = self._backstay.run(execution.workflow_id), self._store.recovering
        status = await handle.status()
        asking = await self._asking(execution, status.run_id)
        missing = await recovering.put_back(asking, status.pending)
        doubted = await recovering.doubted(asking)
        if missing:
            # While it was written, the run may have told the store of a decision that it did not know.
            status = await handle.status()
        gone = (missing | doubted).difference(request.id for request in status.pending)
        if gone:
            await recovering.close(asking, list(_became(gone, (await handle.timeline()).events)))
        if missing or gone:
            log.info("requests.recovered", workflow_id=asking.workflow_id, missing=len(missing), closed=len(gone))

    async def _asking(self, execution: Execution, run_id: str) -> AskingRun:
        workflow_id, runs = execution.workflow_id, self._store.runs
        row = await runs.get(workflow_id, run_id)
        if execution.kind == "UndoRun":
            row = await runs.worked_on(workflow_id)
            if row is None:
                _, given = await started_with(self._backstay.client, workflow_id, run_id)
                row = await runs.get(given["workflow_id"], given.get("run_id"))
        return AskingRun(f"{workflow_id}/{run_id}" if row is None else row.run, workflow_id, run_id)


def _differs(run: Execution, known: OpenRequests, since: float) -> bool:
    """Return whether the store may not have what a run asks; without search attributes, only the run knows."""
    differs = run.waiting != known.known if run.state else run.started_at < since
    return differs or bool(known.doubted)


def _became(gone: Collection[str], events: Sequence[Event]) -> Iterator[NoticeDraft]:
    """Yield what became of requests, as far as their run still tells it."""
    told: dict[str, Event] = {}
    for event in events:
        if event.name in _BECAME and event.data.get("state", "decided") == "decided":
            told[str(event.data.get("request"))] = event
    for request_id in sorted(gone):
        event = told.get(request_id)
        kind, at = (NoticeKind.DECIDED, "") if event is None else (_BECAME[event.name], event.at)
        decision = None
        if event is not None and kind is NoticeKind.DECIDED:
            said = event.data
            verdict, by = Verdict(said["verdict"]), str(said["by"])
            decision = DecisionNotice(verdict=verdict, by=by, verified=bool(said.get("verified")))
        yield NoticeDraft(sequence=0, event=kind, at=at, request_id=request_id, decision=decision)
