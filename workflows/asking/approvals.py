"""Hold the requests that wait for people."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from temporalio import workflow

from backstay import calls, errors
from backstay.approvals import admission, approvers
from backstay.approvals.approval import (
    Approval,
    ApprovalRequest,
    CallVerdict,
    ChangedCall,
    RequestKind,
    Verdict,
)
from backstay.approvals.edits import change_lines
from backstay.approvals.notice import DecisionNotice, NoticeKind
from backstay.approvals.proposal import PlanToggles
from backstay.approvals.undo_words import undo_told
from backstay.approvals.verdicts import comes_to, most_permissive, verdict_of_each, verdict_words
from backstay.approvals.voting import comments_of, said_of_plan, voted
from backstay.authority import Authority
from backstay.canonical import canonical, digest_of
from backstay.policies.accepted import AcceptedLine
from backstay.policies.ruling import Ruling
from backstay.quoting import named
from backstay.shown import one_line
from backstay.task.lane import ASIDE, is_lane
from backstay.tools.tool import ToolCall
from workflows.asking.hiding import decision_without_secrets
from workflows.asking.notices import Notices
from workflows.asking.opening import opened_request
from workflows.asking.remembering import DecisionMemory
from workflows.asking.reminders import Check, CheckAnswer, Lines, Pending, Reminders, never
from workflows.dispatch.activity_calls import ActivityCalls
from workflows.state.state import RunState
from workflows.state.work import OpenRequest, RequestOutcome

SIGNAL = "signal"
EXPIRED = "expired"
WITHDRAWN = "withdrawn"
WHOLE_CHARACTERS = 30_000
"""How much of whole arguments one answer holds; every query answer must stay under 128 KiB."""
RECORDED_CHARACTERS = 4000
"""How much the record of a decision says of what it changed."""
_ANSWERS_CHECKED = frozenset({RequestKind.ELICITATION, RequestKind.BUDGET})
"""The requests whose answers must fit before they decide."""


def identity_of(approval: Approval) -> tuple[str, str | None]:
    """Return the sender under whom the answer to a decision is kept, empty when unverified, and the event."""
    if approval.proof is None:
        return "", approval.event_id
    return approval.by, approval.event_id or approval.proof


def _repeated(approval: Approval, answer: dict[str, Any]) -> dict[str, Any]:
    each = [single.verdict for single in (approval.calls or {}).values()]
    # Where it rejected every call, it came to that.
    said = {most_permissive(approval).value, *(["reject"] if {*each} == {"reject"} else [])}
    if answer.get("request_id") != approval.request_id or answer.get("verdict") not in said:
        raise errors.DecisionRefused(f"event_id: {approval.event_id} was used for another decision")
    return answer


class Approvals:
    """Open requests, accept decisions, let requests expire."""

    def __init__(self, state: RunState, activities: ActivityCalls, changed: Callable[[], None]) -> None:
        """Use the run's state; `changed` is called whenever something that people see has changed."""
        self.state = state
        self.activities = activities
        self.changed = changed
        self.notices = Notices(state, activities)
        self.reminders = Reminders(state, self.notices, changed)
        self.remembering = DecisionMemory(state, activities, changed)
        self.pending: dict[str, Pending] = {}
        self.checking = 0
        """How many decisions that came by signal are being looked at."""
        self.closing: Callable[[], bool] = never
        """Whether the run is about to continue as a new execution, so that nothing may wait for what comes later."""

    @property
    def announcing(self) -> bool:
        """Return whether something is being told that the next execution would have to tell again."""
        return self.notices.under_way

    @property
    def requests(self) -> tuple[ApprovalRequest, ...]:
        """Return the open requests, oldest first."""
        return tuple(pending.request for pending in self.pending.values())

    @property
    def waiting(self) -> bool:
        """Return whether the run waits for people, and for every request they are still to decide."""
        waits = [pending.decided is None and not pending.unless() for pending in self.pending.values()]
        return bool(waits) and all(waits)

    async def ask(
        self,
        request: ApprovalRequest,
        ruling: Ruling | None = None,
        check_changes: Check | None = None,
        unless: Callable[[], bool] = never,
        *,
        key: str,
        lines: Lines | None = None,
        calls: Mapping[int, ToolCall] | None = None,
        check_answer: CheckAnswer | None = None,
    ) -> RequestOutcome:
        """Open a request and wait until people decide or it expires; that may take days.

        It is withdrawn, as if expired, when `unless` becomes true. A request of the execution before with the same key
        goes on, with its id, its votes and its time of expiry.
        """
        pending = next((found for found in self.pending.values() if found.key == key and not found.asked), None)
        if pending is None:
            pending = Pending(key, opened_request(self.state, request, ruling))
            self.pending[pending.request.id] = pending
            self.reminders.record("approval.asked", pending.request, request.question)
            self.changed()
            self.notices.add(NoticeKind.ASKED, request=pending.request)
            self.step_aside()
        pending.asked, pending.check_changes, pending.unless, pending.lines = True, check_changes, unless, lines
        pending.calls, pending.check_answer = calls or {}, check_answer
        return await self._settled(pending, ruling)

    def step_aside(self) -> None:
        """Tell the lane that started this run, if any, that its next job need not wait for this one."""
        info = workflow.info()
        if info.parent is not None and is_lane(info.parent.workflow_id):
            lane = workflow.get_external_workflow_handle(info.parent.workflow_id)
            telling = asyncio.ensure_future(lane.signal(ASIDE, info.workflow_id))
            # A lane that has ended waits for nobody.
            telling.add_done_callback(lambda told: told.cancelled() or told.exception())

    async def _settled(self, pending: Pending, ruling: Ruling | None) -> RequestOutcome:
        request_id = pending.request.id
        try:
            with self.activities.stopwatch.waiting():
                decided = await self.reminders.wait(pending, ruling)
        except asyncio.CancelledError:
            if pending.decided is None:
                # What waits for it ends, perhaps with the run: no task may begin here.
                self.notices.keep(NoticeKind.WITHDRAWN, request_id=request_id)
            raise
        finally:
            del self.pending[request_id]
            self.changed()
        undecided = WITHDRAWN if pending.withdrawn else EXPIRED
        self.state.closed[request_id] = (
            undecided if decided.verdict is None else f"{verdict_words(decided.verdict)} by {decided.by}"
        )
        return decided

    def whole_call(self, asked: dict[str, Any]) -> dict[str, Any] | None:
        """Return a part of the JSON of a call's arguments, all of them; None where no such call waits."""
        pending = self.pending.get(str(asked.get("id")))
        index, offset = asked.get("index", 0), asked.get("offset", 0)
        if pending is None or not isinstance(index, int) or index not in pending.calls:
            return None
        call = pending.calls[index]
        text = canonical(call.arguments)
        offset = offset if isinstance(offset, int) and offset >= 0 else 0
        part = text[offset : offset + WHOLE_CHARACTERS]
        more = offset + len(part) < len(text)
        answer = {"text": part, "next": offset + len(part) if more else None}
        if offset:
            return answer
        facts: dict[str, Any] = {"tool": one_line(call.tool.name, 200), "safety": call.tool.safety.value}
        undo = undo_told(call.tool, self.state.opened.policy)
        facts |= {"undoable": undo.undoable, "undo": undo.how}
        return answer | {"call": facts, "indexes": sorted(pending.calls)}

    def open_requests(self) -> tuple[OpenRequest, ...]:
        """Return the open requests as the next execution needs them."""
        return tuple(
            OpenRequest(
                key=pending.key,
                request=pending.request,
                reminded=pending.reminded,
            )
            for pending in self.pending.values()
        )

    def reopen(self, requests: Sequence[OpenRequest]) -> None:
        """Open the requests of the execution before; they can be decided before the run asks again."""
        for kept in requests:
            pending = Pending(kept.key, kept.request, asked=False, reminded=kept.reminded)
            self.pending[kept.request.id] = pending
        self.notices.resume()

    def withdraw_unasked(self) -> None:
        """Withdraw requests of the execution before that the run did not come to again."""
        for request_id in [request_id for request_id, pending in self.pending.items() if not pending.asked]:
            self.reminders.withdraw(self.pending.pop(request_id))
            self.state.closed[request_id] = WITHDRAWN

    def refusal(self, approval: Approval) -> errors.BackstayError | None:
        """Return why a decision cannot be accepted now, or None."""
        pending = self.pending.get(approval.request_id)
        if pending is None or pending.decided is not None:
            past = self.state.closed.get(approval.request_id)
            if past == EXPIRED:
                return errors.Expired(f"request_id: {approval.request_id} has expired; nobody decided in time")
            if past == WITHDRAWN:
                return errors.DecisionRefused(
                    f"request_id: {approval.request_id} was withdrawn; nobody needs an answer"
                )
            if pending is not None and pending.decided is not None:
                past = f"{verdict_words(pending.decided.verdict)} by {pending.decided.by}"
            known = ", ".join(self.pending) or "none"
            if past:
                return errors.DecisionRefused(f"request_id: {approval.request_id} is decided already: {past}")
            # A decision never waits for its request: after a reset Temporal sends old updates again.
            unknown = one_line(named(approval.request_id), 80)
            return errors.DecisionRefused(f"{admission.NOT_OPEN}{unknown}; open requests: {known}")
        return admission.refusal(pending.request, approval, self.starters, self.authority)

    @property
    def authority(self) -> Authority:
        """Return who may change the run as a whole."""
        return approvers.authority_over_run(self.state.opened.policy)

    @property
    def starters(self) -> frozenset[str]:
        """Return the names of who started the run; empty when nobody proved it."""
        proven = self.state.opened.started_by
        return frozenset({proven, self.state.task.user_id}) if proven else frozenset()

    async def decide(self, data: Any, update: str) -> dict[str, Any]:
        """Accept one decision; raises a BackstayError when it cannot be accepted.

        The same decision with the same event id gets the stored answer.
        """
        approval = admission.admit(data)
        sender, event_id = identity_of(approval)

        def refuse() -> None:
            self._raise_refusal(approval)

        answer = await self.answered(sender, event_id, update, data, refuse)
        again = False
        try:
            return await self._decided(approval, update) if answer is None else _repeated(approval, answer)
        except errors.RunContinuing:
            # By signal, it is looked at again in the next execution, which is the same use of its proof.
            again = True
            raise
        finally:
            if not again:
                self.state.work.looked_at.pop(str(data.get("proof")), None)

    async def _decided(self, approval: Approval, update: str) -> dict[str, Any]:
        """Accept a decision whose proof, if any, holds."""
        sender, event_id = identity_of(approval)
        pending = self.pending.get(approval.request_id)
        request = None if pending is None else pending.request
        approval = await decision_without_secrets(self.activities, approval, request)
        changes, lines = await self._checked(approval)
        # The same event can arrive twice at once; then the other one may have been handled first.
        answer = self.state.answer_to(sender, event_id)
        if answer is not None:
            return _repeated(approval, answer)
        self._raise_refusal(approval)
        answer = self.state.remember_answer(sender, event_id, self._accept(approval, changes, update))
        if lines:
            answer["remembered"] = await self.remembering.remember(approval, lines, self.starters)
        return answer

    async def answered(
        self,
        sender: str,
        event_id: str | None,
        update: str,
        payload: dict[str, Any],
        refuse: Callable[[], None],
    ) -> dict[str, Any] | None:
        """Return the answer that the same event got before, or None when it is new and its proof, if any, holds.

        `refuse` raises when a new event cannot be accepted. Raises NotVerified.
        """
        answer = self.state.answer_to(sender, event_id)
        if answer is None:
            refuse()
        if payload.get("proof") is not None:
            # Also for a repeat: the answer is for the sender whom the proof names.
            fresh = await self.verify(update, payload, str(payload.get("request_id", "")))
            answer = self.state.answer_to(sender, event_id)
            if not fresh and answer is None:
                raise errors.NotVerified(f"proof: used already; sign the {update} again")
        return answer

    async def verify(self, update: str, payload: dict[str, Any], request_id: str = "", *, run: str = "") -> bool:
        """Have a proof checked; return whether it is used for the first time. Raises NotVerified.

        `run`: the key of the run that the proof names; empty for this one.
        """
        own, looked_at, proof = workflow.info(), self.state.work.looked_at, str(payload.get("proof"))
        used_by = looked_at.get(proof) or self._next_use(run)
        workflow_id, _, run_id = run.rpartition("/") if run else (own.workflow_id, "", own.first_execution_run_id)
        ask = calls.CheckProof(
            workflow_id=workflow_id,
            run_id=run_id,
            update=update,
            payload=payload,
            request_id=request_id,
            digest=self.state.digests.get(request_id, ""),
            used_by=used_by,
        )
        proven = await self.activities.execute_in_handler(
            calls.check_proof, ask, summary=f"check the proof of {update}"
        )
        if not proven.verified:
            raise errors.NotVerified(f"proof: {proven.reason}")
        if used_by.startswith(SIGNAL) and not proven.used:
            looked_at[proof] = used_by
        return not proven.used

    def _next_use(self, run: str) -> str:
        """Return by what the next proof is used up: only the same use may be made again."""
        info, own = workflow.current_update_info(), workflow.info()
        if info is not None:
            return f"update {info.id}"
        if run:
            # Every workflow that names the run would count its proofs from one.
            return f"workflow {own.workflow_id}/{own.first_execution_run_id}"
        self.state.proofs += 1
        return f"{SIGNAL} {self.state.proofs}"

    def _raise_refusal(self, approval: Approval) -> None:
        refused = self.refusal(approval)
        if refused is not None:
            raise refused

    async def _checked(self, approval: Approval) -> tuple[dict[int, CallVerdict], tuple[AcceptedLine, ...]]:
        """Return the changes of a decision and the lines it is remembered by; DecisionInvalid for a wrong answer."""
        changes = approval.calls or {}
        # While a proof was looked at, the same event may have closed the request.
        pending = self.pending.get(approval.request_id)
        if pending is None:
            return changes, ()
        if any(verdict.verdict == "modify" for verdict in changes.values()):
            await self._asked(pending)
            if pending.check_changes is not None:
                changes = await pending.check_changes(changes)
        if approval.verdict is Verdict.ANSWER and pending.request.kind in _ANSWERS_CHECKED:
            await self._asked(pending)
            if pending.check_answer is not None:
                await pending.check_answer(approval.answer)
        if not approval.remember:
            return changes, ()
        await self._asked(pending)
        return changes, () if pending.lines is None else pending.lines(pending.request, approval)

    async def _asked(self, pending: "Pending") -> None:
        """Wait until a request that the execution before opened is asked here, too, or is closed.

        Raises RunContinuing where the run continues first: one that is paused comes to it only when it is resumed.
        """

        def is_known() -> bool:
            return pending.asked or pending.request.id not in self.pending

        await workflow.wait_condition(lambda: is_known() or self.closing())
        if not is_known():
            raise errors.RunContinuing

    def _accept(self, approval: Approval, changes: dict[int, CallVerdict], update: str) -> dict[str, Any]:
        pending = self.pending[approval.request_id]
        at = workflow.now().isoformat(timespec="seconds")
        request, complete, changes, vote = voted(pending.request, approval, changes, self.starters, at)
        pending.request, verified = request, approval.proof is not None
        state, again = "decided" if complete else "recorded", admission.asks_again(request, approval)
        differing = _differing(pending.calls, changes)
        said, each = comes_to(request, approval), verdict_of_each(request, approval)
        about = {"request_id": request.id, "args_digest": request.args_digest, "verdict": said.value}
        about |= {"calls": each} if each else {}
        about |= {"comment": one_line(approval.comment, 500)}
        about |= {"remember": approval.remember} if approval.remember else {}
        about |= {"stop": True} if approval.stop else {}
        about |= {"asked_again": True} if again else {}
        about |= said_of_plan(approval) if request.proposal is not None else {}
        about |= {"changed": differing} if differing else {}
        self.state.record_decision(update, approval.by, workflow.now(), verified=verified, state=state, **about)
        shown = {"calls": {str(index): verdict for index, verdict in each.items()}} if each else {}
        self.reminders.record(
            "approval.decided", request, f"{verdict_words(said)} by {approval.by}", **vote, **shown, state=state
        )
        if complete:
            pending.decided = RequestOutcome(
                verdict=said,
                calls=changes,
                answer=approval.answer,
                stop=approval.stop,
                by=one_line(approval.by, 200),
                verified=verified,
                comment=comments_of(request, approval),
                on_expiry=request.on_expiry,
                again=again,
                **_of_plan(request),
            )
            decision = DecisionNotice.of(request, approval, differing, verified=verified, again=again)
            self.notices.add(NoticeKind.DECIDED, request_id=request.id, decision=decision)
        self.changed()
        answer = {"request_id": request.id, "verdict": said.value, "state": state, "by": approval.by}
        return answer | ({"asked_again": True} if again else {})


def _differing(calls: Mapping[int, ToolCall], changes: dict[int, CallVerdict]) -> tuple[ChangedCall, ...]:
    """Return what a decision changes of calls, as its record keeps it."""
    found = {index: named.arguments for index, named in changes.items() if named.arguments is not None}
    most = max(200, RECORDED_CHARACTERS // max(len(found), 1))
    return tuple(
        ChangedCall(
            index=index,
            args_digest=digest_of(arguments),
            lines=change_lines(calls[index].arguments, arguments, most) if index in calls else (),
        )
        for index, arguments in found.items()
    )


def _of_plan(request: ApprovalRequest) -> dict[str, Any]:
    """Return what was decided about a plan beside its steps."""
    if request.proposal is None:
        return {}
    proposal, toggles = request.proposal, request.proposal.toggles
    narrowed = toggles if toggles != PlanToggles() else None
    said = {"per_step": proposal.per_step, "dry_run": proposal.dry_run, "toggles": narrowed}
    return said | {"left_out_by": proposal.left_out_by, "no_processes_by": proposal.no_processes_by}
