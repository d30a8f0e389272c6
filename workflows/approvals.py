"""Hold the requests that wait for people."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls, errors
from backstay.approvals import deciding
from backstay.approvals.approval import Approval, ApprovalRequest, CallVerdict, Links, RequestKind, Verdict
from backstay.approvals.proposal import PlanToggles
from backstay.approvals.voting import said_of_plan, voted
from backstay.authority import Authority
from backstay.canonical import canonical, digest_of
from backstay.policies.accepted import AcceptedLine
from backstay.policies.ruling import Ruling
from backstay.shown import one_line
from backstay.tools.tool import ToolCall
from workflows.activity_calls import ActivityCalls, Stopped
from workflows.state import RunState
from workflows.work import Decided, OpenRequest

EXPIRED = "expired"
NOBODY_ACCEPTS = "policy.yaml does not let this person accept lines; an operator can, with `backstay policy accept`"
WHOLE_CHARACTERS = 30_000
"""How much of whole arguments one answer holds; every query answer must stay under 128 KiB."""
BESIDE_THE_DIGEST = {"may_remember", "task", "user_id", "session_id", "step", "links"}
"""What the digest of a request leaves out: it follows from the rule, or from the run, which a proof names too."""
ANSWERS_CHECKED = "answers-checked"
"""Since this change an answer to a tool's server is checked before it is accepted."""
ONE_AUTHORITY = "one-authority"
"""Since this change every update, signal, request, undo and cancellation obeys the policy's rules about people."""


def identity_of(approval: Approval) -> tuple[str, str | None]:
    """Return the sender under whom the answer to a decision is kept, empty when unverified, and the event."""
    if approval.proof is None:
        return "", approval.event_id
    return approval.by, approval.event_id or approval.proof


def _repeated(approval: Approval, answer: dict[str, Any]) -> dict[str, Any]:
    if (answer.get("request_id"), answer.get("verdict")) != (approval.request_id, approval.verdict.value):
        raise errors.DecisionRefused(f"event_id: {approval.event_id} was used for another decision")
    return answer


Lines = Callable[[Approval], tuple[AcceptedLine, ...]]
"""Returns what a decision is to be remembered by; raises DecisionRefused."""
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
    escalated: bool = False
    check_changes: Check | None = None
    lines: Lines | None = None
    unless: Callable[[], bool] = never
    """Whether it is no longer needed."""
    calls: Mapping[int, ToolCall] = field(default_factory=dict)
    """The calls that it is about, whole."""
    check_answer: CheckAnswer | None = None
    decided: Decided | None = None


class Approvals:
    """Open requests, accept decisions, let requests expire."""

    def __init__(self, state: RunState, activities: ActivityCalls, changed: Callable[[], None]) -> None:
        """Use the run's state; `changed` is called whenever something that people see has changed."""
        self.state = state
        self.activities = activities
        self.changed = changed
        self.pending: dict[str, Pending] = {}
        self.announcing = 0
        """How many requests are being announced."""

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
    ) -> Decided:
        """Open a request and wait until people decide or it expires; that may take days.

        It is withdrawn, as if expired, when `unless` becomes true. A request of the execution before with the same key
        goes on, with its id, its votes and its time of expiry.
        """
        pending = next((found for found in self.pending.values() if found.key == key and not found.asked), None)
        announcing = None
        if pending is None:
            pending = Pending(key, self._opened(request, ruling))
            self.pending[pending.request.id] = pending
            self._record("approval.asked", pending.request, request.question)
            self.changed()
            announcing = self._announce(pending.request)
        pending.asked, pending.check_changes, pending.unless, pending.lines = True, check_changes, unless, lines
        pending.calls, pending.check_answer = calls or {}, check_answer
        request_id = pending.request.id
        try:
            with self.activities.stopwatch.waiting():
                decided = await self._wait(pending, ruling)
        finally:
            del self.pending[request_id]
            self.changed()
            if announcing is not None:
                announcing.cancel()
        self.state.closed[request_id] = EXPIRED if decided.verdict is None else f"{decided.verdict} by {decided.by}"
        return decided

    def whole_call(self, asked: dict[str, Any]) -> dict[str, Any] | None:
        """Return a part of the JSON of a call's arguments, all of them; None where no such call waits."""
        pending = self.pending.get(str(asked.get("id")))
        index, offset = asked.get("index", 0), asked.get("offset", 0)
        if pending is None or not isinstance(index, int) or index not in pending.calls:
            return None
        text = canonical(pending.calls[index].arguments)
        offset = offset if isinstance(offset, int) and offset >= 0 else 0
        part = text[offset : offset + WHOLE_CHARACTERS]
        more = offset + len(part) < len(text)
        return {"text": part, "next": offset + len(part) if more else None}

    def open_requests(self) -> tuple[OpenRequest, ...]:
        """Return the open requests as the next execution needs them."""
        return tuple(
            OpenRequest(key=pending.key, request=pending.request, escalated=pending.escalated)
            for pending in self.pending.values()
        )

    def reopen(self, requests: Sequence[OpenRequest]) -> None:
        """Open the requests of the execution before; they can be decided before the run asks again."""
        for kept in requests:
            pending = Pending(kept.key, kept.request, asked=False, escalated=kept.escalated)
            self.pending[kept.request.id] = pending

    def withdraw_unasked(self) -> None:
        """Withdraw requests of the execution before that the run did not come to again."""
        for request_id in [request_id for request_id, pending in self.pending.items() if not pending.asked]:
            self._record("approval.withdrawn", self.pending.pop(request_id).request, "no longer needed")
            self.state.closed[request_id] = EXPIRED

    def _opened(self, request: ApprovalRequest, ruling: Ruling | None) -> ApprovalRequest:
        now = workflow.now()
        number = self.state.next_request
        self.state.next_request += 1
        info = workflow.info()
        update: dict[str, Any] = {
            "id": f"r{number}",
            "namespace": info.namespace,
            "run_id": info.first_execution_run_id,
            "created_at": now.isoformat(timespec="seconds"),
            "cost_so_far": round(self.state.ledger.spent / 1e6, 6),
            "reason": one_line(request.reason, 500),
            **self._of_run(),
        }
        if len(request.calls) == 1 and not request.args_digest:
            update["args_digest"] = request.calls[0].args_digest
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
        request = request.model_copy(update=update)
        beside = BESIDE_THE_DIGEST | {name for name in ("proposal", "forecast") if not getattr(request, name)}
        digest = digest_of(request.model_dump(mode="json", by_alias=True, exclude=beside))
        self.state.keep_digest(request.id, digest)
        return request.model_copy(update={"digest": digest})

    def _of_run(self) -> dict[str, Any]:
        """Return what a request says of its run."""
        info, task, opened = workflow.info(), self.state.task, self.state.opened
        run = "/".join(quote(name, safe="") for name in (info.workflow_id, info.run_id))
        web_ui = f"{opened.web_ui}/namespaces/{quote(info.namespace, safe='')}/workflows/{run}"
        return {
            "task": opened.task_line,
            "user_id": one_line(task.user_id, 200),
            "session_id": None if task.session_id is None else one_line(task.session_id, 200),
            "step": self.state.usage.step,
            "links": Links(web_ui=web_ui if opened.web_ui else None),
        }

    async def _wait(self, pending: Pending, ruling: Ruling | None) -> Decided:
        whole = None if ruling is None or ruling.timeout_s is None else timedelta(seconds=ruling.timeout_s)
        timeout = None if whole is None else _left(pending.request, whole)
        request_id = pending.request.id
        while True:
            try:
                await workflow.wait_condition(
                    lambda: pending.decided is not None or pending.unless(),
                    timeout=timeout,
                    timeout_summary=None if timeout is None else f"approval {request_id}",
                )
                if pending.decided is not None:
                    return pending.decided
                self._record("approval.withdrawn", pending.request, "no longer needed")
                return Decided(verdict=None, on_expiry="reject")
            except TimeoutError:
                if pending.request.on_expiry != "escalate" or pending.escalated or whole is None:
                    break
                timeout, pending.escalated = whole, True
                later = (workflow.now() + whole).isoformat(timespec="seconds")
                pending.request = pending.request.model_copy(update={"expires_at": later})
                self._record("approval.escalated", pending.request, "nobody decided in time; asked again")
                self._announce(pending.request)
        self._record("approval.expired", pending.request, "nobody decided in time")
        return Decided(verdict=None, on_expiry=pending.request.on_expiry)

    def _announce(self, request: ApprovalRequest) -> "asyncio.Task[Any] | None":
        if not self.state.opened.wait_notices:
            return None
        ask = calls.Announce(workflow_id=workflow.info().workflow_id, request=request)
        return asyncio.create_task(self._announced(ask))

    async def _announced(self, ask: calls.Announce) -> None:
        self.announcing += 1
        try:
            await self.activities.execute_once(calls.announce, ask, summary=f"announce {ask.request.id}", counted=False)
        except ApplicationError as error:
            self.state.record("approval.unannounced", error.message, workflow.now(), request=ask.request.id)
        finally:
            self.announcing -= 1

    def refusal(self, approval: Approval, *, strict: bool = True) -> errors.BackstayError | None:
        """Return why a decision cannot be accepted now, or None; `strict` for runs that began with one authority."""
        pending = self.pending.get(approval.request_id)
        if pending is None or pending.decided is not None:
            past = self.state.closed.get(approval.request_id)
            if past == EXPIRED:
                return errors.Expired(f"request_id: {approval.request_id} has expired; nobody decided in time")
            if pending is not None and pending.decided is not None:
                past = f"{pending.decided.verdict} by {pending.decided.by}"
            known = ", ".join(self.pending) or "none"
            if past:
                return errors.DecisionRefused(f"request_id: {approval.request_id} is decided already: {past}")
            # A decision never waits for its request: after a reset Temporal sends old updates again.
            unknown = one_line(approval.request_id, 80)
            return errors.DecisionRefused(f"{deciding.NOT_OPEN}{unknown}; open requests: {known}")
        if not strict:
            return deciding.refusal(pending.request, approval, self._voters, Authority())
        return deciding.refusal(pending.request, approval, self.starters, self.authority)

    @property
    def authority(self) -> Authority:
        """Return who may change the run as a whole."""
        return deciding.authority_over_run(self.state.opened.policy)

    @property
    def restricted(self) -> bool:
        """Return whether every way into the run obeys the policy's rules about people.

        A run that began before that was so goes on as it began.
        """
        return self.authority.restricts and workflow.patched(ONE_AUTHORITY)

    @property
    def starters(self) -> frozenset[str]:
        """Return the names of who started the run; empty when nobody proved it."""
        proven = self.state.opened.started_by
        return frozenset({proven, self.state.task.user_id}) if proven else frozenset()

    @property
    def _voters(self) -> frozenset[str]:
        """Return the names that count as the person who started the run, also where nobody proved it before."""
        return self.starters if self.restricted else frozenset({self.state.task.user_id})

    async def decide(self, data: Any, update: str) -> dict[str, Any]:
        """Accept one decision; raises a BackstayError when it cannot be accepted.

        The same decision with the same event id gets the stored answer.
        """
        approval = deciding.admit(data)
        by_sender = approval.proof is not None and workflow.patched(ONE_AUTHORITY)
        sender, event_id = identity_of(approval) if by_sender else ("", approval.event_id)

        def refuse() -> None:
            self._raise_refusal(approval)

        answer = await self.answered(sender, event_id, update, data, refuse, by_sender=by_sender)
        if answer is None:
            changes, lines = await self._checked(approval)
            # The same event can arrive twice at once; then the other one may have been handled first.
            answer = self.state.answer_to(sender, event_id)
            if answer is None:
                self._raise_refusal(approval)
                answer = self.state.remember_answer(sender, event_id, self._accept(approval, changes, update))
                if lines:
                    answer["remembered"] = await self._remembered(approval, lines)
                return answer
        return _repeated(approval, answer)

    async def answered(
        self,
        sender: str,
        event_id: str | None,
        update: str,
        payload: dict[str, Any],
        refuse: Callable[[], None],
        *,
        by_sender: bool,
    ) -> dict[str, Any] | None:
        """Return the answer that the same event got before, or None when it is new and its proof, if any, holds.

        `refuse` raises when a new event cannot be accepted. Raises NotVerified.
        """
        answer = self.state.answer_to(sender, event_id)
        if answer is None:
            refuse()
        if payload.get("proof") is not None and (by_sender or answer is None):
            # Also for a repeat: the answer is for the sender whom the proof names.
            fresh = await self.verify(update, payload, str(payload.get("request_id", "")))
            answer = self.state.answer_to(sender, event_id)
            if by_sender and not fresh and answer is None:
                raise errors.NotVerified(f"proof: used already; sign the {update} again")
        return answer

    async def verify(self, update: str, payload: dict[str, Any], request_id: str = "", *, run: str = "") -> bool:
        """Have a proof checked; return whether it is used for the first time. Raises NotVerified.

        `run`: the key of the run that the proof names; empty for this one.
        """
        info, own = workflow.current_update_info(), workflow.info()
        if info is None:
            self.state.proofs += 1
        workflow_id, _, run_id = run.rpartition("/") if run else (own.workflow_id, "", own.first_execution_run_id)
        ask = calls.CheckProof(
            workflow_id=workflow_id,
            run_id=run_id,
            update=update,
            payload=payload,
            request_id=request_id,
            digest=self.state.digests.get(request_id, ""),
            used_by=f"signal {self.state.proofs}" if info is None else f"update {info.id}",
        )
        proven = await self.activities.execute_in_handler(
            calls.check_proof, ask, summary=f"check the proof of {update}"
        )
        if not proven.verified:
            raise errors.NotVerified(f"proof: {proven.reason}")
        return not proven.used

    def _raise_refusal(self, approval: Approval) -> None:
        refused = self.refusal(approval, strict=self.restricted)
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
        elicits = approval.verdict is Verdict.ANSWER and pending.request.kind is RequestKind.ELICITATION
        if elicits and workflow.patched(ANSWERS_CHECKED):
            await self._asked(pending)
            if pending.check_answer is not None:
                await pending.check_answer(approval.answer)
        if not approval.remember:
            return changes, ()
        await self._asked(pending)
        return changes, () if pending.lines is None else pending.lines(approval)

    async def _asked(self, pending: "Pending") -> None:
        """Wait until a request that the execution before opened is asked here, too, or is closed."""
        await workflow.wait_condition(lambda: pending.asked or pending.request.id not in self.pending)

    async def _remembered(self, approval: Approval, lines: tuple[AcceptedLine, ...]) -> list[dict[str, Any]]:
        """Obey what a decision is remembered by, as far as this person may say so, and keep it for later runs."""
        policy = self.state.opened.policy
        authority, run = deciding.accepting_of(policy), deciding.authority_in_run(policy)

        def refusal(needed: Authority) -> str:
            return str(deciding.refused_person(needed, approval.by, approval.proof, self.starters) or "")

        why = refusal(run)
        here = run.quorum == 1 and not why
        if here:
            self.state.obey(lines)
        held = frozenset[str]()
        if approval.remember != "run":
            ask = calls.RememberLines(lines=lines)
            why = NOBODY_ACCEPTS if authority is None else refusal(authority)
            if authority is not None and not why:
                ask = ask.model_copy(update={"accepting": True, "quorum": authority.quorum})
            held, fault = await self._kept(ask)
            why = fault or why
        return [self._told(line, approval, here=here, held=line.id in held, why=why) for line in lines]

    async def _kept(self, ask: calls.RememberLines) -> tuple[frozenset[str], str]:
        """Keep lines for later runs; return which hold, and why others do not, where that is known only now."""
        try:
            kept = await self.activities.execute_in_handler(calls.remember_lines, ask, summary="remember a decision")
        except (errors.BackstayError, Stopped) as error:
            return frozenset(), f"not kept: {error}"
        self.state.obey(kept.held)
        return frozenset(line.id for line in kept.held), f"{kept.missing} more must say so" if kept.missing else ""

    def _told(self, line: AcceptedLine, approval: Approval, *, here: bool, held: bool, why: str) -> dict[str, Any]:
        """Record and return how far a line holds."""
        whole = held or (here and approval.remember == "run")
        holds = str(approval.remember) if whole else "run" if here else ""
        waits = "" if whole else one_line(why, 300) or NOBODY_ACCEPTS
        text = f"{line.words} holds for: {holds or 'nothing yet'}{f'; {waits}' if waits else ''}"
        self.state.record("policy.remembered", one_line(text, 500), workflow.now(), line=line.id, holds=holds)
        self.changed()
        return {"line": line.id, "tool": line.tool, "holds": holds, "waits": waits}

    def _accept(self, approval: Approval, changes: dict[int, CallVerdict], update: str) -> dict[str, Any]:
        pending = self.pending[approval.request_id]
        at = workflow.now().isoformat(timespec="seconds")
        request, complete, changes, vote = voted(pending.request, approval, changes, self._voters, at)
        pending.request, verified = request, approval.proof is not None
        state = "decided" if complete else "recorded"
        about = {"request_id": request.id, "args_digest": request.args_digest, "verdict": approval.verdict.value}
        about |= {"comment": one_line(approval.comment, 500)}
        about |= {"remember": approval.remember} if approval.remember else {}
        about |= said_of_plan(approval) if request.proposal is not None else {}
        self.state.record_decision(update, approval.by, workflow.now(), verified=verified, state=state, **about)
        self._record("approval.decided", request, f"{approval.verdict} by {approval.by}", **vote, state=state)
        if complete:
            pending.decided = Decided(
                verdict=approval.verdict,
                calls=changes,
                answer=approval.answer,
                stop=approval.stop,
                by=one_line(approval.by, 200),
                verified=verified,
                comment=approval.comment,
                on_expiry=request.on_expiry,
                **_of_plan(request),
            )
        self.changed()
        return {"request_id": request.id, "verdict": approval.verdict.value, "state": state, "by": approval.by}

    def _record(self, name: str, request: ApprovalRequest, text: str, **data: Any) -> None:
        kind = RequestKind(request.kind).value
        self.state.record(name, one_line(text, 300), workflow.now(), request=request.id, kind=kind, **data)


def _of_plan(request: ApprovalRequest) -> dict[str, Any]:
    """Return what was decided about a plan beside its steps; what stays at its default does not reach history."""
    if request.proposal is None:
        return {}
    proposal, toggles = request.proposal, request.proposal.toggles
    more = {"per_step": proposal.per_step, "dry_run": proposal.dry_run}
    more |= {"toggles": toggles if toggles != PlanToggles() else None}
    return {name: value for name, value in more.items() if value}


def _left(request: ApprovalRequest, whole: timedelta) -> timedelta:
    """Return how long a request still waits; `whole` for one that was just opened."""
    now = workflow.now()
    if request.expires_at is None or request.created_at == now.isoformat(timespec="seconds"):
        return whole
    return max(datetime.fromisoformat(request.expires_at) - now, timedelta(milliseconds=1))
