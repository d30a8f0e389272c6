"""Decide which calls may be made: by the policy, and where a rule asks, by a person."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Literal

from temporalio import workflow

from backstay import calls, errors
from backstay.approvals import approvers
from backstay.approvals.approval import (
    PROGRAM_INDEX,
    Approval,
    ApprovalRequest,
    CallVerdict,
    RequestedCall,
    RequestKind,
    Verdict,
)
from backstay.budgets.budget import calls_refused
from backstay.canonical import digest_of
from backstay.errors import DecisionRefused
from backstay.policies.accepted import SESSION_S, AcceptedLine, Like, Remember, arguments_shown, reaches_out
from backstay.policies.engine_tools import rule_on_any
from backstay.policies.labels import rule_on_labels
from backstay.policies.policy import Policy, rule_on_repeat
from backstay.policies.policy import Purpose as RuledAs
from backstay.policies.ruling import Ruling, rule_on_change, stricter
from backstay.shown import one_line
from backstay.task.plan import has_references, holds_notation
from backstay.task.status import State
from backstay.tools.stages import Purpose, Stage, applies
from backstay.tools.tool import DELEGATE, PreviewedCall, ToolCall, ToolResult
from workflows.asking.reminders import never
from workflows.consent.asked_calls import (
    PROGRAM_SHOWN,
    SHOWN_CHARACTERS,
    RuledCall,
    key_of,
    kind_of,
    question_of,
    shown_call,
    shown_ruled,
    with_undo,
)
from workflows.consent.changing import changed, checked_change, said_of
from workflows.context.run_context import RunContext
from workflows.state.state import write_key
from workflows.state.work import RequestOutcome

DECISIONS = (Verdict.APPROVE.value, Verdict.MODIFY.value, Verdict.REJECT.value)
WHOLE_DECISIONS = (Verdict.APPROVE.value, Verdict.REJECT.value)
"""For compensations and programs: a person approves or rejects them as a whole and cannot change parts."""
Consented = ToolCall | ToolResult
"""The call that may be made, perhaps modified, or the result that says why it may not."""
Answered = dict[int, Consented]
"""The outcome for each call of a batch, by index."""
Foretelling = Callable[[ApprovalRequest], ApprovalRequest]
"""Adds to a request what a rehearsal foretells."""


class Consent:
    """Rule on calls and ask people about those that a rule asks about."""

    def __init__(self, context: RunContext) -> None:
        """Use the run's context."""
        self.context = context
        self.undoes_by_itself = False
        """Whether nobody asked for an undo; else a task's own rules about it do not count, only the operator's."""
        self.accepted: set[tuple[str, str]] = set()
        """The changed tools, each with its definition, of which a call was permitted since."""
        self.program: ToolCall | None = None
        """The program under way, whose source people see with its calls."""
        self.obeyed: set[str] = set()
        """The accepted lines by which a call was permitted, by id."""

    async def obtain(
        self,
        batch: Sequence[ToolCall],
        purpose: Purpose = Purpose.CALL,
        *,
        kind: RequestKind | None = None,
        unless: Callable[[], bool] = never,
    ) -> Answered:
        """Return for each call whether it may be made; one request is opened for each set of approvers.

        A request is withdrawn when `unless` becomes true. Raises Rejected when a person rejects and stops the run,
        Expired when a rule says that expiry fails it.
        """
        if not applies(purpose, Stage.RULE):
            return dict(enumerate(batch))
        ruled = [
            RuledCall(index, call, self.ruling(call, purpose), whole=call.tool.name == DELEGATE)
            for index, call in enumerate(batch)
        ]
        if purpose in {Purpose.CALL, Purpose.PROGRAM} and kind is None:
            ruled = self.with_repeats(ruled)
        answered: Answered = {}
        asked: dict[tuple[Any, ...], list[RuledCall]] = {}
        for item in ruled:
            match item.ruling.verdict:
                case "allow":
                    self.record_line(item.ruling)
                    answered[item.index] = item.call
                case "ask":
                    asks = self.with_default(item, purpose)
                    asked.setdefault(approvers.constraint(item.ruling), []).append(asks)
                case _:
                    answered[item.index] = denied(item.ruling)
        if applies(purpose, Stage.RESERVE) and kind is not RequestKind.PROGRAM:
            # Nobody is asked about calls that the budget would refuse anyway.
            await self.afford([item.call for item in ruled if item.ruling.verdict != "deny"])
        answered |= await self.refused_by_checks([item for group in asked.values() for item in group], purpose)
        groups = [[item for item in group if item.index not in answered] for group in asked.values()]
        return answered | await self.ask_all([group for group in groups if group], purpose, kind, unless)

    async def refused_by_checks(self, ruled: Sequence[RuledCall], purpose: Purpose) -> Answered:
        """Return which calls the operator's own checks deny, as far as the arguments are known by now."""
        found: Answered = {}
        for item in ruled:
            call, name = item.call, item.call.tool.name
            of_plan = purpose is Purpose.PLAN_STEP and not item.whole
            known = not of_plan or not has_references(call.arguments)
            if call.tool.judged and known and purpose is not Purpose.UNDO:
                summary = f"have the operator's checks look at {one_line(name, 80)}"
                checked = await self.context.check_call(
                    name, call.arguments, resolved=True, of_plan=of_plan, judge=True, summary=summary
                )
                if checked.error_type == "Denied":
                    found[item.index] = ToolResult(success=False, error=checked.error, error_type="Denied")
        return found

    async def again(self, call: ToolCall, purpose: Purpose, why: str, unless: Callable[[], bool]) -> Consented:
        """Ask about a call once more for the reason `why`, even if the policy allows it."""
        ruling = self.ruling(call, purpose)
        if ruling.verdict == "deny":
            return denied(ruling)
        ruling = ruling.model_copy(update={"verdict": "ask", "rule": f"{why} ({ruling.rule})"})
        if refusals := await self.refused_by_checks([RuledCall(0, call, ruling)], purpose):
            return refusals[0]
        return (await self.ask_all([[RuledCall(0, call, ruling)]], purpose, None, unless))[0]

    async def afford(self, batch: Sequence[ToolCall]) -> None:
        """Return when the budget allows these calls; raises BudgetExceeded."""
        state, names = self.context.state, [call.tool.name for call in batch]
        await self.context.afford(lambda: calls_refused(state.budget, state.usage, names))

    def ruling(
        self,
        call: ToolCall,
        purpose: Purpose = Purpose.CALL,
        *,
        more: tuple[AcceptedLine, ...] = (),
        labels: bool = True,
    ) -> Ruling:
        """Return what the run's policy says of a call, and the lines that people accepted; `more` lines are tried.

        Without `labels`, as if nothing had been labelled private.
        """
        tool, state = call.tool, self.context.state
        lines = (*state.lines_at(workflow.now().timestamp()), *more)
        section: RuledAs = "undo" if purpose is Purpose.UNDO else "call"
        policy = state.opened.policy
        if section == "undo" and not self.undoes_by_itself:
            policy = policy.operators
        ruling = ruling_of(policy, call, section, lines)
        private = state.private if labels and section == "call" else ()
        if (labelled := rule_on_labels(private, tool, call.arguments, call.sources)) is not None:
            ruling = stricter(labelled, ruling)
        if not tool.changed or ruling.verdict == "deny" or (tool.name, tool.definition) in self.accepted:
            return ruling
        return rule_on_change(ruling, tool.name)

    def with_default(self, item: RuledCall, purpose: Purpose) -> RuledCall:
        """Return a call that is asked about with whether only the policy's default asks."""
        return replace(item, by_default=self._by_default(item, purpose))

    def _by_default(self, item: RuledCall, purpose: Purpose) -> bool:
        """Return whether a line about the call would be enough for it."""
        if purpose is Purpose.UNDO:
            return False
        found = self.ruling(item.call, purpose, more=(_line(item.call, "allow"),))
        if item.repeats:
            found = rule_on_repeat(self.context.state.opened.policy, found, item.repeats)
        return found.verdict == "allow"

    def record_line(self, ruling: Ruling) -> None:
        """Say once by which accepted line a call was permitted."""
        if ruling.line and ruling.line not in self.obeyed:
            self.obeyed.add(ruling.line)
            self.context.record("policy.obeyed", ruling.rule, line=ruling.line)

    def with_repeats(self, ruled: list[RuledCall], beside: str = "call {} beside it") -> list[RuledCall]:
        """Return the calls with rulings of repeated writes of the run and of these calls, which are named `beside`."""
        state = self.context.state
        found: list[RuledCall] = []
        seen: dict[str, int] = {}
        for item in ruled:
            key, ruling = write_key(item.call), item.ruling
            if item.call.effectful and ruling.verdict != "deny":
                here = seen.setdefault(key, item.index)
                write = state.same_write(key)
                earlier = write.told() if write else f"{beside.format(here)} is the same"
                if write or here != item.index:
                    repeated = rule_on_repeat(state.opened.policy, ruling, earlier)
                    found.append(replace(item, ruling=repeated, repeats=earlier))
                    continue
            found.append(item)
        return found

    async def ask_all(
        self,
        groups: list[list[RuledCall]],
        purpose: Purpose,
        kind: RequestKind | None,
        unless: Callable[[], bool],
        more: Foretelling = lambda request: request,
    ) -> Answered:
        """Open the requests of all groups at once, so that no approver has to wait for another group."""
        if not groups:
            return {}

        asking = [asyncio.ensure_future(self._ask(group, purpose, kind, unless, more)) for group in groups]
        try:
            with self.context.doing(State.WAITING):
                answers = await asyncio.gather(*asking)
        except (Exception, asyncio.CancelledError):
            # If an answer ends the run, the other requests are withdrawn.
            for request in asking:
                request.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            raise
        return {index: answer for group in answers for index, answer in group.items()}

    async def _ask(  # called in one place, by what they are
        self,
        group: list[RuledCall],
        purpose: Purpose,
        kind: RequestKind | None,
        unless: Callable[[], bool],
        more: Foretelling,
    ) -> Answered:
        """Ask until nothing is changed any more: a call is made as somebody saw it who approved it."""
        answered: Answered = {}
        while True:
            decided = await self._decided(group, purpose, kind, unless, more)
            if decided.verdict is None and decided.on_expiry == "fail":
                raise errors.Expired(
                    f"nobody decided about {question_of(group, kind_of(group, kind), purpose)} in time"
                )
            if decided.stop:
                raise rejected(decided)
            if not decided.again:
                return answered | {item.index: _outcome(item, decided) for item in group}
            left: list[RuledCall] = []
            for item in group:
                named = decided.calls.get(item.index)
                anew = item if named is None or named.verdict != "reject" else refused(rejected(decided))
                anew = anew if isinstance(anew, ToolResult) else self._ruled_anew(anew, decided, purpose)
                if isinstance(anew, ToolResult):
                    answered[item.index] = anew
                else:
                    left.append(anew)
            if not left:
                return answered
            group = left

    async def _decided(
        self,
        group: list[RuledCall],
        purpose: Purpose,
        kind: RequestKind | None,
        unless: Callable[[], bool],
        more: Foretelling,
    ) -> RequestOutcome:
        most = max(200, min(2000, SHOWN_CHARACTERS // len(group)))
        of_plan = purpose is Purpose.PLAN_STEP and not group[0].whole
        diffs = await self.diffs(group, of_plan=of_plan)
        kind = kind_of(group, kind)
        told = with_undo(group, self.context.state.opened.policy)
        shown = tuple(shown_ruled(item, most, diffs.get(item.index)) for item in told)
        by_index = {item.index: item for item in group}
        request = more(self._request(group, shown, purpose, kind))
        ruling = reduce(stricter, (item.ruling for item in group))

        async def check_changes(named: dict[int, CallVerdict]) -> dict[int, CallVerdict]:
            return {
                index: verdict
                if verdict.verdict != "modify"
                else await self._checked_change(by_index[index], verdict, shown, of_plan=of_plan)
                for index, verdict in named.items()
            }

        key = key_of(group, kind, purpose)
        decided = self.context.agreed_before.pop(key, None) or await self.context.approvals.ask(
            request,
            ruling,
            check_changes,
            unless,
            key=key,
            lines=lambda _, approval: self.lines(group, approval),
            calls={item.index: item.call for item in group} | self._program(purpose, kind),
        )
        if applies(purpose, Stage.RESERVE):
            self.context.state.work.agreed[key] = decided
        return decided

    def _ruled_anew(self, item: RuledCall, decided: RequestOutcome, purpose: Purpose) -> RuledCall | ToolResult:
        """Return a call as it is asked about again: with what a person changed of it, if they did."""
        named, comments = decided.calls.get(item.index), item.comments
        if named is None or named.arguments is None:
            return item
        comments = (*comments, decided.comment) if decided.comment else comments
        people = tuple(dict.fromkeys((*item.changed_by, one_line(decided.by, 200))))
        call = changed(item.call, named.arguments, decided.by)
        (anew,) = self.with_repeats([RuledCall(item.index, call, self.ruling(call, purpose))])
        if anew.ruling.verdict == "deny":
            return denied(anew.ruling)
        if anew.ruling.verdict != "ask":
            # A person who changes a call is shown it again, also where policy would let it go.
            anew = replace(anew, ruling=item.ruling)
        anew = replace(anew, first=item.first or item.call, changed_by=people, comments=comments)
        return self.with_default(anew, purpose)

    async def _checked_change(
        self, item: RuledCall, verdict: CallVerdict, shown: tuple[RequestedCall, ...], *, of_plan: bool
    ) -> CallVerdict:
        seen = next(call for call in shown if call.index == item.index).arguments
        named, anew = await checked_change(
            self.context,
            item.call,
            item.index,
            verdict,
            seen,
            of_plan=of_plan,
            # A plan's references stand for results that do not exist yet.
            resolved=lambda merged: not of_plan or not has_references(merged),
            # Only calls may be changed: a compensation is decided as a whole.
            ruled=lambda call: (
                self.with_repeats([RuledCall(item.index, call, self.ruling(call, Purpose.CALL))])[0].ruling
            ),
        )
        if anew.verdict == "ask" and approvers.constraint(anew) != approvers.constraint(item.ruling):
            raise DecisionRefused(
                f"calls.{item.index}.arguments: the changed call falls under another rule: {anew.rule}"
            )
        return named

    def _request(
        self, group: list[RuledCall], shown: tuple[RequestedCall, ...], purpose: Purpose, kind: RequestKind
    ) -> ApprovalRequest:
        program = self._program(purpose, kind)
        return ApprovalRequest(
            kind=kind,
            question=question_of(group, kind, purpose),
            calls=shown,
            program=next((shown_call(call, at, PROGRAM_SHOWN) for at, call in program.items()), None),
            options=WHOLE_DECISIONS
            if purpose is Purpose.UNDO or kind is RequestKind.PROGRAM or group[0].whole
            else DECISIONS,
            reason="; ".join(dict.fromkeys(item.call.reason for item in group if item.call.reason)),
            args_digest=digest_of(
                group[0].call.arguments if len(group) == 1 else [item.call.arguments for item in group]
            ),
            may_remember=self.may_remember(group),
        )

    def _program(self, purpose: Purpose, kind: RequestKind) -> dict[int, ToolCall]:
        """Return the program that makes the calls of a request, under the index by which it is read."""
        if self.program is None or purpose is not Purpose.PROGRAM or kind is RequestKind.PROGRAM:
            return {}
        return {PROGRAM_INDEX: self.program}

    def may_remember(self, group: list[RuledCall]) -> tuple[Remember, ...]:
        """Return for how long a decision about these calls can be remembered."""
        if not any(item.by_default for item in group):
            return ()
        return ("run", *(("session",) if self.context.state.task.session_id else ()), "always", "never")

    def lines(self, group: Sequence[RuledCall], approval: Approval) -> tuple[AcceptedLine, ...]:
        """Return what a decision is to be remembered by; raises DecisionRefused where that cannot be."""
        found: dict[str, AcceptedLine] = {}
        verdict = "deny" if approval.remember == "never" else "allow"
        for item in group:
            named = (approval.calls or {}).get(item.index)
            said = approval.verdict.value if named is None else named.verdict
            if item.by_default and said == ("reject" if verdict == "deny" else "approve"):
                which = approval.remember_arguments
                _refuse_vague(item.call, which, allows=verdict == "allow")
                line = _line(item.call, verdict, exactly=which == "these")
                if (like := approval.remember_like) is not None:
                    line = _alike_line(line, item.call, like, alone=len(group) == 1)
                line = self._dated(line, approval)
                found[line.id] = line
        if not found:
            raise DecisionRefused("remember: the decision says so of no call that a default asks about; leave it out")
        return tuple(found.values())

    def _dated(self, line: AcceptedLine, approval: Approval) -> AcceptedLine:
        task, now = self.context.state.task, workflow.now()
        update: dict[str, Any] = {
            "user_id": task.user_id,
            "by": one_line(approval.by, 200),
            "at": now.isoformat(timespec="seconds"),
            "request": f"{workflow.info().workflow_id} {approval.request_id}",
        }
        if approval.remember == "run":
            update["scope"] = "run"
        if approval.remember == "session":
            update |= {"scope": "session", "session_id": task.session_id, "expires_at": now.timestamp() + SESSION_S}
        return line.model_copy(update=update).identified()

    async def diffs(self, group: Sequence[RuledCall], *, of_plan: bool = True) -> dict[int, str | None]:
        """Return by index what each call would change, where the provider can preview it.

        `of_plan`: whether they are steps of a plan, which may refer to the results of others.
        """
        previewed = [item for item in group if item.call.tool.previewed]
        if not previewed:
            return {}
        state = self.context.state
        ask = calls.PreviewCalls(
            calls=tuple(PreviewedCall(tool=item.call.tool.name, arguments=item.call.arguments) for item in previewed),
            of_plan=of_plan,
            results=state.step_results if of_plan else {},
        )
        shown = await self.context.activities.execute(calls.preview_calls, ask, summary="see what would change")
        return {item.index: diff for item, diff in zip(previewed, shown.diffs, strict=True)}


def ruling_of(policy: Policy, call: ToolCall, section: RuledAs = "call", lines: Sequence[AcceptedLine] = ()) -> Ruling:
    """Return the ruling of a policy on a call."""
    day = workflow.now().date().isoformat() if policy.has_days else ""
    return rule_on_any(policy, call.tool, call.arguments, purpose=section, sources=call.sources, lines=lines, today=day)


def rejected(decided: RequestOutcome) -> errors.Rejected:
    """Return what a person's rejection means: an answer for the model or, with `stop`, the end of the run."""
    said = f": {one_line(decided.comment, 500)}" if decided.comment else ""
    return errors.Rejected(f"rejected by {decided.by}{said}", by=decided.by)


def refused(error: errors.BackstayError) -> ToolResult:
    """Return the result that tells the model why a call was not made."""
    by = str(error.facts.get("by", ""))
    return ToolResult(success=False, error=str(error), error_type=type(error).__name__, rejected_by=by)


def _line(call: ToolCall, verdict: Literal["allow", "deny"], *, exactly: bool = True) -> AcceptedLine:
    """Return a line about a call; nobody has said it yet."""
    line = AcceptedLine(verdict=verdict, scope="always", tool=call.tool.name, definition=call.tool.definition)
    if not exactly:
        return line
    shown = arguments_shown(call.arguments)
    return line.model_copy(update={"args_digest": digest_of(call.arguments), "arguments": shown})


def _alike_line(line: AcceptedLine, call: ToolCall, like: Like, *, alone: bool) -> AcceptedLine:
    """Return a line about the calls that a person was shown to be like one, which must be among them."""
    if not alone:
        raise DecisionRefused("remember_arguments: alike is about one call, and several are asked about")
    found = line.model_copy(update={"when": like.when, "only": like.only})
    if why := found.misfit(call.tool, call.arguments, call.sources):
        name = one_line(call.tool.name, 200)
        raise DecisionRefused(
            f"remember_like: the call of {name} that is decided is not like that ({why}); remember these"
        )
    return found


def _refuse_vague(call: ToolCall, which: str, *, allows: bool) -> None:
    name = one_line(call.tool.name, 200)
    if which != "any" and holds_notation(call.arguments):
        raise DecisionRefused(
            f"remember_arguments: those of {name} hold ${{, which refers to a result in a plan and is plain text in a "
            "call; remember any, or leave it out"
        )
    if which != "these" and allows and reaches_out(call.tool):
        raise DecisionRefused(f"remember_arguments: {name} reaches out; remember these arguments, or leave it out")


def denied(ruling: Ruling) -> ToolResult:
    """Return the result that says which rule denies a call."""
    return refused(errors.Denied(f"denied by the policy: {ruling.rule}"))


def _outcome(item: RuledCall, decided: RequestOutcome) -> Consented:
    if decided.verdict is None:
        return refused(errors.Expired(f"nobody decided about {item.call.tool.name} in time"))
    named = decided.calls.get(item.index)
    verdict = named.verdict if named is not None else decided.verdict.value
    if verdict == "reject":
        return refused(rejected(decided))
    call = item.call if named is None or named.arguments is None else changed(item.call, named.arguments)
    return said_of(call, item.first or item.call, item.comments, decided)
