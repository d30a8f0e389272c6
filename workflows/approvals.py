"""Hold the requests that wait for people."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls, errors
from backstay.approvals import deciding
from backstay.approvals.approval import Approval, ApprovalRequest, CallVerdict, RequestKind, Verdict
from backstay.policies.ruling import Ruling
from backstay.shown import one_line
from workflows.activity_calls import ActivityCalls
from workflows.state import RunState

EXPIRED = "expired"
EARLY_DECISIONS = "early-decisions"
"""The patch id; runs from before this change refuse a decision whose request is not open yet."""
_EARLY_S = 1
"""How long a decision waits for its request to open."""
_EARLY_IDS = 16
_EARLY_DECISIONS = 32
"""How many decisions of one run may wait like this; each adds events to history, and anyone can send one."""


@dataclass(frozen=True)
class Decided:
    """Hold what was decided about a request."""

    verdict: Verdict | None
    """None when the request expired."""
    calls: dict[int, CallVerdict] = field(default_factory=dict)
    answer: Any = None
    stop: bool = False
    by: str = ""
    comment: str = ""
    on_expiry: str = "reject"


@dataclass
class Pending:
    """Hold one open request, and its decision once it is complete."""

    request: ApprovalRequest
    check_changes: Callable[[dict[int, CallVerdict]], Awaitable[dict[int, CallVerdict]]] | None = None
    decided: Decided | None = None


class Approvals:
    """Open requests, accept decisions, let requests expire."""

    def __init__(self, state: RunState, activities: ActivityCalls, changed: Callable[[], None]) -> None:
        """Use the run's state; `changed` is called whenever something that people see has changed."""
        self.state = state
        self.activities = activities
        self.changed = changed
        self.pending: dict[str, Pending] = {}
        self.closed: dict[str, str] = {}
        self._early_decisions = 0

    @property
    def requests(self) -> tuple[ApprovalRequest, ...]:
        """Return the open requests, oldest first."""
        return tuple(pending.request for pending in self.pending.values())

    async def ask(
        self,
        request: ApprovalRequest,
        ruling: Ruling | None = None,
        check_changes: Callable[[dict[int, CallVerdict]], Awaitable[dict[int, CallVerdict]]] | None = None,
        unless: Callable[[], bool] = lambda: False,
    ) -> Decided:
        """Open a request and wait until people decide or it expires; that may take days.

        It is withdrawn, as if expired, when `unless` becomes true.
        """
        pending = Pending(self._opened(request, ruling), check_changes)
        request = pending.request
        self.pending[request.id] = pending
        self._record("approval.asked", request, request.question)
        self.changed()
        announcing = self._announce(request)
        try:
            with self.activities.stopwatch.waiting():
                decided = await self._wait(pending, ruling, unless)
        finally:
            del self.pending[request.id]
            self.changed()
            if announcing is not None:
                announcing.cancel()
        self.closed[request.id] = EXPIRED if decided.verdict is None else f"{decided.verdict} by {decided.by}"
        return decided

    def _opened(self, request: ApprovalRequest, ruling: Ruling | None) -> ApprovalRequest:
        now = workflow.now()
        number = self.state.next_request
        self.state.next_request += 1
        update: dict[str, Any] = {
            "id": f"r{number}",
            "created_at": now.isoformat(timespec="seconds"),
            "cost_so_far": round(self.state.ledger.spent / 1e6, 6),
            "reason": one_line(request.reason, 500),
        }
        if ruling is not None:
            update |= {
                "rule": ruling.rule,
                "approvers": tuple(ruling.approvers),
                "quorum": ruling.quorum,
                "no_self_approval": ruling.no_self_approval,
                "on_expiry": ruling.on_expiry,
            }
            if ruling.timeout_s is not None:
                update["expires_at"] = (now + timedelta(seconds=ruling.timeout_s)).isoformat(timespec="seconds")
        return request.model_copy(update=update)

    async def _wait(self, pending: Pending, ruling: Ruling | None, unless: Callable[[], bool]) -> Decided:
        timeout = None if ruling is None or ruling.timeout_s is None else timedelta(seconds=ruling.timeout_s)
        request_id = pending.request.id
        for escalated in (False, True):
            try:
                await workflow.wait_condition(
                    lambda: pending.decided is not None or unless(),
                    timeout=timeout,
                    timeout_summary=None if timeout is None else f"approval {request_id}",
                )
                if pending.decided is not None:
                    return pending.decided
                self._record("approval.withdrawn", pending.request, "no longer needed")
                return Decided(verdict=None, on_expiry="reject")
            except TimeoutError:
                if pending.request.on_expiry == "escalate" and not escalated and timeout is not None:
                    later = (workflow.now() + timeout).isoformat(timespec="seconds")
                    pending.request = pending.request.model_copy(update={"expires_at": later})
                    self._record("approval.escalated", pending.request, "nobody decided in time; asked again")
                    self._announce(pending.request)
                    continue
            break
        self._record("approval.expired", pending.request, "nobody decided in time")
        return Decided(verdict=None, on_expiry=pending.request.on_expiry)

    def _announce(self, request: ApprovalRequest) -> "asyncio.Task[Any] | None":
        if not self.state.opened.wait_notices:
            return None
        ask = calls.Announce(workflow_id=workflow.info().workflow_id, request=request)
        return asyncio.create_task(self._announced(ask))

    async def _announced(self, ask: calls.Announce) -> None:
        try:
            await self.activities.execute_once(calls.announce, ask, summary=f"announce {ask.request.id}", counted=False)
        except ApplicationError as error:
            self.state.record("approval.unannounced", error.message, workflow.now(), request=ask.request.id)

    def refusal(self, approval: Approval) -> errors.BackstayError | None:
        """Return why a decision cannot be accepted now, or None."""
        pending = self.pending.get(approval.request_id)
        if pending is None or pending.decided is not None:
            past = self.closed.get(approval.request_id)
            if past == EXPIRED:
                return errors.Expired(f"request_id: {approval.request_id} has expired; nobody decided in time")
            if pending is not None and pending.decided is not None:
                past = f"{pending.decided.verdict} by {pending.decided.by}"
            known = ", ".join(self.pending) or "none"
            return errors.DecisionRefused(
                f"request_id: {approval.request_id} is decided already: {past}"
                if past
                else f"request_id: no request {one_line(approval.request_id, 80)}; open requests: {known}"
            )
        return deciding.refusal(pending.request, approval, self.state.task.user_id)

    def may_open_soon(self, request_id: str) -> bool:
        """Return whether a decision is worth waiting for a request that is not open yet.

        Temporal can answer a query with a request that a workflow task is about to open, and then deliver the decision
        in that same task, before whatever opens the request.
        """
        digits = request_id[1:10]
        number = int(digits) if request_id == f"r{digits}" and digits.isdecimal() else 0
        first = self.state.next_request
        return first <= number < first + _EARLY_IDS and self._early_decisions < _EARLY_DECISIONS

    async def _wait_until_open(self, request_id: str) -> None:
        if not self.may_open_soon(request_id) or not workflow.patched(EARLY_DECISIONS):
            return
        self._early_decisions += 1
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: request_id in self.pending,
                timeout=_EARLY_S,
                timeout_summary=f"wait for {request_id} to open",
            )

    async def decide(self, data: Any, update: str) -> dict[str, Any]:
        """Accept one decision; raises a BackstayError when it cannot be accepted.

        The same decision with the same event id gets the stored answer.
        """
        approval = deciding.admit(data)
        if approval.event_id is not None and approval.event_id in self.state.answered:
            return self._repeated(approval)
        await self._wait_until_open(approval.request_id)
        self._raise_refusal(approval)
        if approval.proof is not None:
            await self.verify(update, data)
        changes = await self._checked_changes(approval)
        if approval.event_id is not None and approval.event_id in self.state.answered:
            # The same event arrived twice at once, and the other one was handled first.
            return self._repeated(approval)
        self._raise_refusal(approval)
        return self.state.remember_answer(approval.event_id, self._accept(approval, changes))

    async def verify(self, update: str, payload: dict[str, Any]) -> None:
        """Check a proof; raises NotVerified when it is not valid."""
        ask = calls.CheckProof(workflow_id=workflow.info().workflow_id, update=update, payload=payload)
        proven = await self.activities.execute_in_handler(
            calls.check_proof, ask, summary=f"check the proof of {update}"
        )
        if not proven.verified:
            raise errors.NotVerified(f"proof: {proven.reason}")

    def _repeated(self, approval: Approval) -> dict[str, Any]:
        answer = self.state.answered[approval.event_id or ""]
        if (answer.get("request_id"), answer.get("verdict")) != (approval.request_id, approval.verdict.value):
            raise errors.DecisionRefused(f"event_id: {approval.event_id} was used for another decision")
        return answer

    def _raise_refusal(self, approval: Approval) -> None:
        refused = self.refusal(approval)
        if refused is not None:
            raise refused

    async def _checked_changes(self, approval: Approval) -> dict[int, CallVerdict]:
        named = approval.calls or {}
        check = self.pending[approval.request_id].check_changes
        if check is None or not any(verdict.verdict == "modify" for verdict in named.values()):
            return named
        return await check(named)

    def _accept(self, approval: Approval, changes: dict[int, CallVerdict]) -> dict[str, Any]:
        pending = self.pending[approval.request_id]
        request = pending.request
        if request.quorum > 1 and changes:
            # With a quorum, a person must not add arguments that the other approvers have not seen.
            raise errors.DecisionRefused(
                "calls: a request with a quorum is decided as a whole; reject it to have it changed"
            )
        vote = {"by": approval.by, "verdict": approval.verdict.value, "verified": approval.proof is not None}
        at = workflow.now().isoformat(timespec="seconds")
        pending.request = request = request.model_copy(update={"decided": (*request.decided, vote | {"at": at})})
        yes = approval.verdict is not Verdict.REJECT
        complete = not yes or len(request.decided) >= request.quorum
        state = "decided" if complete else "recorded"
        self._record("approval.decided", request, f"{approval.verdict} by {approval.by}", **vote, state=state)
        if complete:
            pending.decided = Decided(
                verdict=approval.verdict,
                calls=changes,
                answer=approval.answer,
                stop=approval.stop,
                by=one_line(approval.by, 200),
                comment=approval.comment,
                on_expiry=request.on_expiry,
            )
        self.changed()
        return {"request_id": request.id, "verdict": approval.verdict.value, "state": state, "by": approval.by}

    def _record(self, name: str, request: ApprovalRequest, text: str, **data: Any) -> None:
        kind = RequestKind(request.kind).value
        self.state.record(name, one_line(text, 300), workflow.now(), request=request.id, kind=kind, **data)
