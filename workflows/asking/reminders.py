"""Wait for decisions: how long, when people are reminded, and when others are asked too."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import workflow

from backstay.approvals.approval import Approval, ApprovalRequest, CallVerdict, RequestKind
from backstay.approvals.notice import NoticeKind
from backstay.policies.accepted import AcceptedLine
from backstay.policies.ruling import Ruling
from backstay.shown import one_line
from backstay.tools.tool import ToolCall
from workflows.asking.notices import Notices
from workflows.asking.opening import left_of
from workflows.state.state import RunState
from workflows.state.work import RequestOutcome

MOST_REMINDERS = 20
"""How often people are reminded of one request."""

Lines = Callable[[ApprovalRequest, Approval], tuple[AcceptedLine, ...]]
"""Returns what a decision about a request, as it is by now, is to be remembered by; raises DecisionRefused."""
Check = Callable[[dict[int, CallVerdict]], Awaitable[dict[int, CallVerdict]]]
CheckAnswer = Callable[[Any], Awaitable[None]]
"""Raises DecisionInvalid for an answer that does not fit."""


def never() -> bool:
    """Return False: the answer is always needed."""
    return False


@dataclass
class Pending:
    """Hold one open request, and its decision once it is complete."""

    key: str
    request: ApprovalRequest
    asked: bool = True
    """Whether the run asks; a request of the execution before is not asked before the run comes to it again."""
    reminded: int = 0
    """How often people were reminded."""
    check_changes: Check | None = None
    lines: Lines | None = None
    unless: Callable[[], bool] = never
    """Whether it is no longer needed."""
    calls: Mapping[int, ToolCall] = field(default_factory=dict)
    """The calls that it is about, whole."""
    check_answer: CheckAnswer | None = None
    decided: RequestOutcome | None = None
    withdrawn: bool = False


class Reminders:
    """Wait for what people decide about requests."""

    def __init__(self, state: RunState, notices: Notices, changed: Callable[[], None]) -> None:
        """Tell people by the notices; `changed` is called whenever something that people see has changed."""
        self.state = state
        self.notices = notices
        self.changed = changed

    async def wait(self, pending: Pending, ruling: Ruling | None) -> RequestOutcome:
        """Wait until a request is decided, or nobody has decided in time; remind people, and ask others, meanwhile."""
        whole = None if ruling is None or ruling.timeout_s is None else timedelta(seconds=ruling.timeout_s)
        again = None if ruling is None or ruling.remind_after_s is None else timedelta(seconds=ruling.remind_after_s)
        until = None if whole is None else workflow.now() + left_of(pending.request, whole)
        while True:
            left = None if until is None else max(until - workflow.now(), timedelta(milliseconds=1))
            reminds = again is not None and pending.reminded < MOST_REMINDERS and (left is None or again < left)
            if await self._closed_within(pending, again if reminds else left):
                if pending.decided is not None:
                    return pending.decided
                self.withdraw(pending)
                return RequestOutcome(verdict=None, on_expiry="reject")
            if reminds:
                self._remind(pending)
            elif pending.request.on_expiry != "escalate" or pending.request.escalated or whole is None:
                break
            else:
                self._escalate(pending, ruling, whole)
                until = workflow.now() + whole
        self.record("approval.expired", pending.request, "nobody decided in time")
        self.notices.add(NoticeKind.EXPIRED, request_id=pending.request.id)
        return RequestOutcome(verdict=None, on_expiry=pending.request.on_expiry)

    async def _closed_within(self, pending: Pending, timeout: timedelta | None) -> bool:
        try:
            await workflow.wait_condition(
                lambda: pending.decided is not None or pending.unless(),
                timeout=timeout,
                timeout_summary=None if timeout is None else f"approval {pending.request.id}",
            )
        except TimeoutError:
            # A decision may have been accepted in the very task in which the time ran out, and then it counts.
            return pending.decided is not None or pending.unless()
        return True

    def _remind(self, pending: Pending) -> None:
        pending.reminded += 1
        self.record("approval.reminded", pending.request, "nobody has decided yet; people are told again")
        self.notices.add(NoticeKind.ASKED, request=pending.request, reminder=pending.reminded)

    def _escalate(self, pending: Pending, ruling: Ruling | None, whole: timedelta) -> None:
        """Ask again, for as long, those whom the rule names for that, too."""
        later = (workflow.now() + whole).isoformat(timespec="seconds")
        update: dict[str, Any] = {"expires_at": later, "escalated": True}
        if ruling is not None and ruling.escalate_to:
            # In a plan, who was asked about a part may be asked about another one, too.
            before = () if pending.request.proposal is not None else pending.request.approvers
            update["escalated_to"] = tuple(person for person in ruling.escalate_to if person not in before)
            if pending.request.approvers:
                # Where nobody is named, everybody may decide already.
                update["approvers"] = tuple(sorted({*pending.request.approvers, *ruling.escalate_to}))
            if pending.request.proposal is not None:
                update["proposal"] = pending.request.proposal.escalated
        pending.request = pending.request.model_copy(update=update)
        self.record("approval.escalated", pending.request, "nobody decided in time; asked again")
        self.notices.add(NoticeKind.ASKED, request=pending.request)
        self.changed()

    def withdraw(self, pending: Pending) -> None:
        """Close a request that is no longer needed."""
        pending.withdrawn = True
        self.record("approval.withdrawn", pending.request, "no longer needed")
        if pending.decided is None:
            self.notices.add(NoticeKind.WITHDRAWN, request_id=pending.request.id)

    def record(self, name: str, request: ApprovalRequest, text: str, **data: Any) -> None:
        """Record an event of a request."""
        kind = RequestKind(request.kind).value
        self.state.record(name, one_line(text, 300), workflow.now(), request=request.id, kind=kind, **data)
