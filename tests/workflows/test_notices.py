"""What is told of a run fits into what the server takes."""

from datetime import UTC, datetime

from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.approvals.notice import NoticeDraft, NoticeKind
from backstay.canonical import canonical
from backstay.task.task import Task
from tests.requirements import promise
from workflows.asking.notices import Notices
from workflows.dispatch.activity_calls import ActivityCalls
from workflows.state.state import RunState
from workflows.state.stopwatch import Stopwatch


@promise("approvals:told-batch")
def test_no_activity_is_given_more_notices_than_the_server_takes():
    def draft(number, size):
        request = ApprovalRequest(kind=RequestKind.QUESTION, question="?", reason="x" * size)
        return NoticeDraft(sequence=number, event=NoticeKind.ASKED, at="2026-01-01", request=request)

    state = RunState(run="task-1/f", task=Task(text="t"))
    notices = Notices(state, ActivityCalls(state, Stopwatch(lambda: datetime(2026, 1, 1, tzinfo=UTC))))
    sizes = [10] * 30 + [100_000] * 30 + [900_000] + [10] * 3
    state.notices = [draft(number, size) for number, size in enumerate(sizes, start=1)]
    told = []
    while batch := notices.first():
        assert len(batch) == 1 or len(canonical([draft.plain() for draft in batch]).encode()) < 1_000_000
        assert len(batch) <= 20
        told += batch
        notices.confirm(batch)
    assert [draft.sequence for draft in told] == list(range(1, len(sizes) + 1))
