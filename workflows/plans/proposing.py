"""Propose a plan: rule on its steps, show it to the people whom the rules name, and wait for their word."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

from backstay import calls, errors
from backstay.approvals.admission import parts_to_decide
from backstay.approvals.approval import Approval, ApprovalRequest, CallVerdict, RequestedCall, RequestKind, Verdict
from backstay.approvals.edits import touched
from backstay.approvals.forecast import ForecastEntry, shown_forecast
from backstay.approvals.proposal import Proposal
from backstay.errors import DecisionRefused
from backstay.plans.plan_run import AskedSteps, PlanRun
from backstay.policies.accepted import AcceptedLine
from backstay.policies.planning import goes_without_people, rule_on_plan
from backstay.policies.ruling import Ruling, stricter
from backstay.shown import one_line
from backstay.task.plan import has_references, steps_named
from backstay.tools.stages import Purpose
from backstay.tools.tool import ToolCall, ToolResult
from workflows.consent.asked_calls import SHOWN_CHARACTERS, RuledCall, tools_of, with_undo
from workflows.consent.changing import checked_change, edits_of
from workflows.consent.consent import DECISIONS, Answered, Consent, denied, refused
from workflows.context.run_context import RunContext
from workflows.plans.checking import fallen_steps, needs_of, written
from workflows.plans.showing import ShownPlan, parts_of, shown_plan, size_of
from workflows.state.work import RequestOutcome

Rehearse = Callable[[Answered, frozenset[int]], Awaitable[PlanRun]]
"""Rehearses the calls of a plan that may be made, where that is wanted; some of them a rule asks about."""


@dataclass(frozen=True)
class PlanReply:
    """Hold what people said of a plan."""

    decided: RequestOutcome | None
    """None when no rule asked."""
    answered: Answered
    left_out: Mapping[int, ToolResult]
    """Why steps may not be made of which people say so; others are denied before anybody is asked."""


class WholePlanQuestion(NamedTuple):
    """Say by what people are asked about a plan as a whole."""

    ruling: Ruling
    by_rule: bool
    """Whether a rule says so, which may name who must approve beside those of the steps."""


@dataclass(frozen=True)
class PlanQuestion:
    """Hold what people are asked about a plan."""

    steps: list[RuledCall]
    """Each step that they may leave out or change, once."""
    whole: list[RuledCall]
    """All steps that may be made, where the plan as a whole is asked about."""
    own: frozenset[int] = frozenset()
    """The steps that are asked about by rules of their own."""

    @property
    def each(self) -> list[RuledCall]:
        """Return each ruling that asks; of one step there may be two."""
        return [*(item for item in self.steps if item.index in self.own), *self.whole]


class Proposing:
    """Ask about plans as a whole, each in one request."""

    def __init__(self, context: RunContext, consent: Consent) -> None:
        """Use the run's rulings."""
        self.context = context
        self.consent = consent

    async def agree(
        self,
        run: PlanRun,
        batch: Sequence[ToolCall],
        opened: Callable[[], None],
        unless: Callable[[], bool],
        rehearse: Rehearse,
    ) -> PlanReply:
        """Return what may be done of a plan; `opened` is called when it is proposed, after it was rehearsed.

        It is withdrawn when `unless` becomes true. Raises Denied naming the step, Expired, Rejected and BudgetExceeded.
        """
        ruled = self._every_ruled(run, batch)
        whole = self._whole(run, batch)
        answered = await self._allowed(run, ruled)
        falls = fallen_steps(run, self.context.state.task.plan, answered)
        going = [item for item in ruled if isinstance(answered[item.index], ToolCall) and item.index not in falls]
        if whole is not None and not going:
            raise errors.Denied("denied by the policy: none of the calls may be made, so nothing is left to approve")
        await self.consent.afford([item.call for item in going])
        asks = [item for item in going if item.ruling.verdict == "ask"]
        run = self._keep_asked(run, asks)
        if whole is None or not run.plan.dry_run:
            run = await rehearse(answered, self._simulated(ruled, asks))
        if run.rehearsal is not None and not run.plan.dry_run:
            # The reads of the rehearsal have counted, and they are made once more.
            await self.consent.afford([item.call for item in going])
            asks = [item.foretold for item in going if item in asks or _writes(item)]
        asked = _asked(going, asks, whole, dry_run=run.plan.dry_run)
        plan = await self._shown(run, ruled, asked)
        opened()
        if not asked.steps or (run.plan.dry_run and whole is None):
            self._record_lines(ruled, answered)
            return PlanReply(None, answered, {})
        decided = await self._decided(plan, run, asked, ruled, unless)
        left_out = self._said(asked.steps, going, decided)
        said = answered | left_out
        if decided.verdict is Verdict.APPROVE:
            self._record_lines(ruled, said)
        return PlanReply(decided, said, left_out)

    def _keep_asked(self, run: PlanRun, asks: Sequence[RuledCall]) -> PlanRun:
        """Keep by which rulings people are asked, also about what they change."""
        steps: dict[Ruling, list[int]] = {}
        for item in asks:
            steps.setdefault(item.ruling, []).append(item.index)
        asked = tuple(AskedSteps(ruling=ruling, steps=tuple(indices)) for ruling, indices in steps.items())
        state = self.context.state
        state.keep_plan_run(run := state.plan_run(run.id).model_copy(update={"asked": asked}))
        return run

    def _record_lines(self, ruled: Sequence[RuledCall], answered: Answered) -> None:
        """Say by which accepted lines calls are permitted that may be made."""
        for item in ruled:
            if item.ruling.verdict == "allow" and isinstance(answered[item.index], ToolCall):
                self.consent.record_line(item.ruling)

    def _whole(self, run: PlanRun, batch: Sequence[ToolCall]) -> WholePlanQuestion | None:
        """Return by what people are asked about the plan as a whole, or None; raises Denied.

        Nobody but a person chooses among plans, or lets a run that plans first do more than plan.
        """
        if run.of_task:
            return None
        policy = self.context.state.opened.policy
        said = rule_on_plan(policy, [call.tool.name for call in batch])
        if said.verdict == "deny":
            raise errors.Denied(f"denied by the policy: {said.rule}")
        if said.verdict == "ask":
            return WholePlanQuestion(said, by_rule=True)
        if run.alternatives:
            return self._of_run("engine: people choose among the plans that are proposed together")
        if self.context.state.planning and not goes_without_people(policy):
            return self._of_run("engine: the run does nothing before a person has approved a plan")
        return None

    def _of_run(self, why: str) -> WholePlanQuestion:
        """Ask the people who decide about the run."""
        return WholePlanQuestion(
            Ruling(verdict="ask", rule=why, **dict(self.context.approvals.authority)), by_rule=False
        )

    def _simulated(self, ruled: Sequence[RuledCall], asks: Sequence[RuledCall]) -> frozenset[int]:
        """Return the steps whose calls a rehearsal may not make; a run that plans first makes none before approval."""
        policy = self.context.state.opened.policy
        first = self.context.state.planning and not goes_without_people(policy)
        return frozenset(item.index for item in (ruled if first else asks))

    def _every_ruled(self, run: PlanRun, batch: Sequence[ToolCall]) -> list[RuledCall]:
        """Return the ruling on each step."""
        every = [self._ruled(run, index, call) for index, call in enumerate(batch)]
        asked = run.asked_by
        return [_as_asked(item, asked) for item in self.consent.with_repeats(every, "step {} of the plan")]

    def _ruled(self, run: PlanRun, index: int, call: ToolCall) -> RuledCall:
        """Return the ruling on a step, with how it was before people changed it in the plan before this one."""
        before = list(self._before(run, index))
        given: dict[str, str] = {}
        now = call.arguments
        for arguments, by in before:
            given = edits_of(touched(arguments, now), by) | given
            now = arguments
        if given and call.sources is not None:
            call = call.model_copy(update={"sources": call.sources.given_by(given)})
        ruled = RuledCall(index, call, self.consent.ruling(call, Purpose.PLAN_STEP))
        if not before or before[0][0] == call.arguments:
            return ruled
        first, by = before[0]
        return replace(ruled, first=call.model_copy(update={"arguments": first}), changed_by=(by,))

    def _before(self, run: PlanRun, index: int) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the arguments of a step in the plans that people changed into this one, with who did; latest first."""
        plans = {plan.id: plan for plan in self.context.state.plans}
        while run.changed_by and (parent := plans.get(run.plan.parent or "")) is not None:
            yield parent.plan.steps[index].arguments, run.changed_by
            run = parent

    async def _allowed(self, run: PlanRun, ruled: Sequence[RuledCall]) -> Answered:
        """Return the calls, and why the policy or the operator's own checks deny some.

        Raises StepFailed where the plan cannot do without one of these.
        """
        answered: Answered = {item.index: item.call for item in ruled}
        answered |= {item.index: denied(item.ruling) for item in ruled if item.ruling.verdict == "deny"}
        going = [item for item in ruled if item.ruling.verdict != "deny"]
        answered |= await self.consent.refused_by_checks(going, Purpose.PLAN_STEP)
        for index, answer in answered.items():
            if isinstance(answer, ToolResult) and not run.plan.may_fail(index):
                tool = ruled[index].call.tool.name
                raise errors.StepFailed(f"step {index} ({tool}) failed: {answer.error_type}: {answer.error}")
        return answered

    async def _shown(self, run: PlanRun, ruled: Sequence[RuledCall], asked: PlanQuestion) -> ShownPlan:
        """Return what people are shown of a plan, after all of it was stored for later."""
        diffs = await self.consent.diffs(ruled)
        forecast = _forecast(run)
        taken = size_of([entry.plain() for entry in forecast]) if forecast else 0
        state = self.context.state
        needs, jail = needs_of(run, state.task.plan), state.opened.jail
        ruled = with_undo(ruled, state.opened.policy)
        plan = shown_plan(run, ruled, asked.steps, parts_of(asked.each), needs, jail, diffs, taken)
        ask = calls.KeepPlan(plan=run.plan, proposal=plan.whole)
        await self.context.activities.execute(calls.keep_plan, ask, summary=f"keep {run.name}")
        return plan

    async def _decided(
        self, plan: ShownPlan, run: PlanRun, asked: PlanQuestion, ruled: Sequence[RuledCall], unless: Callable[[], bool]
    ) -> RequestOutcome:
        proposal, asks = plan.proposal, asked.steps
        people = tuple(sorted({person for part in proposal.parts for person in part.approvers}))
        # A request about only the plan as a whole needs no line that later calls obey.
        by_default = [self.consent.with_default(i, Purpose.PLAN_STEP) if i.index in asked.own else i for i in asks]
        by_index = {item.index: item for item in asks}

        async def check_changes(named: dict[int, CallVerdict]) -> dict[int, CallVerdict]:
            return {
                index: verdict
                if verdict.verdict != "modify"
                else await self._changed(run, by_index[index], verdict, plan.calls)
                for index, verdict in named.items()
            }

        key = f"plan {run.id} {run.plan.hash}"
        decided = self.context.agreed_before.pop(key, None) or await self.context.approvals.ask(
            self._request(plan, run, by_default),
            _people_of(asked.each, proposal, people),
            check_changes,
            unless,
            key=key,
            lines=lambda request, approval: self._lines(by_default, ruled, run, request, approval),
            # A person who approves a plan approves all of it, so each of its steps can be read whole.
            calls={item.index: item.call for item in ruled if item.ruling.verdict != "deny"},
        )
        if decided.verdict is None and decided.on_expiry == "fail":
            raise errors.Expired(f"nobody decided about {run.name} in time")
        return decided

    def _lines(
        self,
        asks: Sequence[RuledCall],
        ruled: Sequence[RuledCall],
        run: PlanRun,
        request: ApprovalRequest,
        approval: Approval,
    ) -> tuple[AcceptedLine, ...]:
        """Return what a decision is to be remembered by: an approval by the steps that it lets the plan make, only."""
        proposal = request.proposal
        if proposal is None or approval.verdict is not Verdict.APPROVE:
            return self.consent.lines(asks, approval)
        mine = parts_to_decide(request, approval, self.context.approvals.starters)
        decided = {index for part in proposal.parts if part.part in mine for index in part.steps}
        no_processes = proposal.toggles.narrowed(approval.toggles).external_processes is False
        left_out = {index for index, said in (approval.calls or {}).items() if said.verdict == "reject"}
        left_out |= proposal.left_out
        left_out |= {item.index for item in ruled if no_processes and item.call.tool.starts_process}
        left_out |= needs_of(run, self.context.state.task.plan).without(left_out).keys()
        made = frozenset[int]() if proposal.dry_run else decided - left_out
        said = [item if item.index in made else replace(item, by_default=False) for item in asks]
        return self.consent.lines(said, approval)

    def _request(self, plan: ShownPlan, run: PlanRun, asks: list[RuledCall]) -> ApprovalRequest:
        return ApprovalRequest(
            kind=RequestKind.PLAN,
            question=f"May the run make the plan's calls of {tools_of(asks)}?",
            calls=plan.calls,
            options=DECISIONS,
            reason=one_line(run.plan.summary or run.plan.title, 500),
            args_digest=run.plan.hash if run.rehearsal is None else run.rehearsal.digest_with(run.plan.hash),
            proposal=plan.proposal,
            forecast=_forecast(run),
            may_remember=self.consent.may_remember(asks),
        )

    async def _changed(
        self, run: PlanRun, item: RuledCall, verdict: CallVerdict, shown: Sequence[RequestedCall]
    ) -> CallVerdict:
        """Return a change as the amended plan will hold it; raises DecisionRefused for one that cannot be made."""
        seen = next((call.arguments for call in shown if call.index == item.index), item.call.arguments)

        author_wrote = written(run, self.context.state.task.plan).steps[item.index].arguments

        def resolved(merged: dict[str, object]) -> bool:
            changes = touched(item.call.arguments, merged)
            kept = {name: given for name, given in author_wrote.items() if name not in changes}
            try:
                needed = steps_named(item.index, merged, kept)
            except errors.ArgumentsInvalid as error:
                raise DecisionRefused(f"calls.{item.index}.arguments: {error}") from None
            return not needed and not has_references(merged)

        named, _ = await checked_change(
            self.context,
            item.call,
            item.index,
            verdict,
            seen,
            of_plan=True,
            resolved=resolved,
            ruled=lambda call: self.consent.ruling(call, Purpose.PLAN_STEP),
        )
        return named

    def _said(
        self, asks: Sequence[RuledCall], going: Sequence[RuledCall], decided: RequestOutcome
    ) -> dict[int, ToolResult]:
        """Return why steps may not be made that people left out, or whose processes they did not allow."""
        left_out: dict[int, ToolResult] = {}
        no_processes = decided.toggles is not None and decided.toggles.external_processes is False
        for item in asks:
            named = decided.calls.get(item.index)
            if decided.verdict is None:
                left_out[item.index] = refused(errors.Expired(f"nobody decided about {item.call.tool.name} in time"))
            elif decided.verdict is Verdict.REJECT or (named is not None and named.verdict == "reject"):
                # Of several people, it is not always the last one who left it out.
                by, comment = decided.left_out_by.get(item.index, (decided.by, one_line(decided.comment, 500)))
                why = f"rejected by {by}{f': {comment}' if comment else ''}"
                left_out[item.index] = refused(errors.Rejected(why, by=by))
        by = decided.no_processes_by or decided.by
        for item in going:
            if no_processes and item.call.tool.starts_process:
                left_out[item.index] = refused(errors.Rejected(f"{by} lets the plan start no processes", by=by))
        return left_out


def _asked(
    ruled: Sequence[RuledCall], asks: Sequence[RuledCall], whole: WholePlanQuestion | None, *, dry_run: bool
) -> PlanQuestion:
    """Return what people are asked about a plan, of which some steps are asked about by rules of their own."""
    own = frozenset(item.index for item in asks)
    # Where a person decides about a step, a person decides about the plan, unless a rule names who that must be.
    if whole is None or (own and not whole.by_rule and not dry_run):
        return PlanQuestion(list(asks), [], own)
    every = [replace(item, ruling=whole.ruling) for item in ruled if item.ruling.verdict != "deny"]
    steps = {item.index: item for item in (*every, *asks)}
    return PlanQuestion([steps[index] for index in sorted(steps)], every, own)


def _as_asked(item: RuledCall, asked: Mapping[int, Ruling]) -> RuledCall:
    """Return a step that no rule asks about any more by the ruling that asked before a person changed the plan.

    Arguments that people change are shown to them again, also where the policy would let the call go.
    """
    before = asked.get(item.index)
    return item if before is None or item.ruling.verdict != "allow" else replace(item, ruling=before)


def _writes(item: RuledCall) -> bool:
    return item.call.effectful and item.ruling.verdict == "allow"


def _people_of(asks: Sequence[RuledCall], proposal: Proposal, people: tuple[str, ...]) -> Ruling:
    """Return what the request says of who decides and until when; only the parts count."""
    together = reduce(stricter, (item.ruling.model_copy(update={"approvers": ()}) for item in asks))
    later = tuple(sorted({person for part in proposal.parts for person in part.escalate_to}))
    together = together.model_copy(update={"approvers": people, "escalate_to": later})
    if len(proposal.parts) == 1:
        return together
    return together.model_copy(update={"quorum": 1, "no_self_approval": False, "verified": False})


def _forecast(run: PlanRun) -> tuple[ForecastEntry, ...]:
    return () if run.rehearsal is None else shown_forecast(run.rehearsal.forecast, SHOWN_CHARACTERS // 2)
