"""Ask the model for the next decision, and reserve money for each try before it is spent."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls
from backstay.approvals.notice import NoticeKind
from backstay.budgets.budget import MICRO, Limit, Reservation, cost_exceeded, exceeded, tokens_exceeded
from backstay.budgets.usage import Usage
from backstay.errors import BudgetExceeded
from backstay.plans.review import PlanWork
from backstay.responses import ModelChoice
from backstay.shown import money, one_line
from backstay.task.context import answers_first
from backstay.task.decision import Decision, Finish, Perception
from backstay.task.status import State
from workflows.calls.lifelines import progress_line
from workflows.calls.questions import Ahead, Asking, Purpose
from workflows.context.run_context import RunContext
from workflows.dispatch.activity_calls import BUG, LOST, Interrupted, TooLarge, error_of

TRIES = 3
WAITS = 10
"""How many times in a row an endpoint may ask the run to wait before a person is asked."""
LONGEST_WAIT_S = 3600
MODEL_S = 290
"""How long the model may take where it is asked after calls: as long as by itself."""
LONGEST_PATIENCE_S = 30
"""How long an endpoint may ask the run to wait before another model is asked instead, where there is one."""
TRIED_AGAIN = frozenset({"ModelUnavailable", LOST, BUG})
OF_ENDPOINTS = frozenset({"ModelUnavailable", "ModelRefused"})
"""Faults that another model may not have."""
OF_ONE_WORKER = frozenset({"StoreMismatch", "WorkerMisfit"})
"""Faults of which another worker may be free."""
ASKS = TRIED_AGAIN | OF_ONE_WORKER | {"ModelRefused", "StoreUnavailable"}
"""Faults about which a person is asked; by then the run has already waited for a locked store."""


class ModelCalls:
    """Get the model's next decision within the budget."""

    def __init__(self, context: RunContext) -> None:
        """Use the run's context."""
        self.context = context
        self.sent = 0
        self.tried = False
        """Whether something was sent for the step under way."""
        self.overshot = False
        """Whether the last answer was billed more than was reserved for it."""
        self._ahead: Ahead | None = None
        """The question that went with the last calls, where the model answered it or failed to."""

    async def decide(self) -> Decision:
        """Return the next decision and count it as a step, before its bill is affordable; raises BudgetExceeded."""
        state = self.context.state
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.decision is not None:
            decision = self._decided_ahead(ahead, ahead.decision)
        else:
            decision = await self._decided(ahead)
        state.take_context(decision, self.sent)
        state.work.counted = False
        state.work.unpaid = self.overshot and not all(isinstance(action, Finish) for action in decision.actions)
        return decision

    async def pay(self) -> None:
        """Go on with a decision only when its bill, where it overshot, is affordable; raises BudgetExceeded."""
        if self.context.state.work.unpaid:
            await self.context.afford(self._overspent)
            self.context.state.work.unpaid = False

    @property
    def has_decided(self) -> bool:
        """Return whether the model has made the next decision already; a cancelled run makes no use of it."""
        return not self.context.activities.stopping and self._ahead is not None and self._ahead.decision is not None

    def _decided_ahead(self, ahead: Ahead, decision: Decision) -> Decision:
        self.context.state.usage, self.sent = self.context.state.usage.decided(), ahead.sent
        self.context.record_drafts(ahead.ask.happened(decision), kept_as=ahead.ask.draft)
        return decision

    async def _decided(self, failed: Ahead | None) -> Decision:
        await self.context.count_step()
        self.tried = False
        try:
            with self.context.doing(State.DECIDING):
                return await self._asked("step", failed)
        except BudgetExceeded:
            if not self.tried:
                self.context.uncount_step()
            raise

    def reserve_ahead(self) -> Ahead | None:
        """Reserve what the next decision may cost; None where people, or the answers of calls, matter before."""
        context, state = self.context, self.context.state
        if context.held_up or context.continues() or context.activities.takes_news or context.step_refused():
            return None
        if state.opened.profile.markers:
            return None
        asking = Asking("step", self._choices("step"))
        if self._lacks_tokens(asking) or self._lacks_money(asking):
            return None
        held = self._hold(asking)
        return Ahead(asking, held, self._ask(held, asking, ahead=True), self.sent)

    async def ask_after(
        self, ahead: Ahead, ask: calls.ActAndAsk, *, summary: str, deadline_s: float
    ) -> calls.StepOutcome | None:
        """Make calls and ask the model after them; None where each call is to be made by itself."""
        context, most = self.context, self.context.state.budget.max_wall_seconds
        left = None if most is None else max(0.0, most - context.stopwatch.seconds)
        ask = ask.model_copy(update={"news": context.activities.news, "within_s": left})
        told = f"{summary}; then step {ahead.ask.step}: ask {ahead.ask.model}"
        options: dict[str, Any] = {"deadline_s": deadline_s + MODEL_S, "interruptible": True, "summary": told}
        context.activities.ahead = ahead.ask.step
        try:
            acted = await context.activities.execute_once(calls.act_and_ask, ask, **options)
        except (ApplicationError, Interrupted) as error:
            self._settle_failed(ahead.held, {"unbilled": isinstance(error, TooLarge)})
            if isinstance(error, ApplicationError) and not isinstance(error, TooLarge):
                await context.activities.ask_whether_again(calls.act_and_ask, error)
            return None
        except BaseException:
            self._settle_failed(ahead.held, {})
            raise
        self._take(ahead, acted)
        return acted

    def _take(self, ahead: Ahead, acted: calls.StepOutcome) -> None:
        """Pay for the question, and keep what came of it."""
        if (decision := acted.decision) is not None:
            ahead.decision = decision
            self._settle(ahead.held, decision, ahead.asking)
        elif (fault := acted.fault) is not None:
            ahead.fault = ApplicationError(fault.message, fault.facts, type=fault.type)
            ahead.learned = self._settle_fault(ahead.held, ahead.asking, ahead.fault)
        else:
            self._settle_failed(ahead.held, {"unbilled": not acted.asked})
            return
        self._ahead = ahead

    async def closing_summary(self) -> str | None:
        """Return a summary of what was done, paid from the reserve for it, or None."""
        if not self.context.state.opened.store:
            return None
        try:
            decision = await self._asked("closing")
        except (ApplicationError, BudgetExceeded):
            return None
        self.context.state.count_free_call()
        self.context.record("summary.created", "a closing summary was written")
        return decision.reason or None

    async def perceive(self) -> Perception | None:
        """Return what a model makes of the task before the first search; None where nobody is asked, or in vain."""
        state = self.context.state
        if not state.opened.perception:
            return None
        try:
            with self.context.doing(State.DECIDING):
                decision = await self._asked("perception")
        except (ApplicationError, BudgetExceeded) as error:
            self.context.record("perception.skipped", f"the first search is not narrowed: {error}")
            return None
        found, by = decision.perception, decision.usage
        spent: dict[str, Any] = {"input_cached_tokens": by.input_cached_tokens, "input_new_tokens": by.input_new_tokens}
        spent |= {"output_tokens": by.output_tokens, "cost_usd": by.cost_micro / MICRO}
        if found is None:
            text = f"the first search is not narrowed: the answer cannot be read: {decision.reason}"
            self.context.record("perception.skipped", text, **spent)
            return None
        text = one_line(
            f"the task is about: {found.intent}; servers: {', '.join(found.selected_servers) or 'any'}", 300
        )
        self.context.record("perception.made", text, **found.plain(), **spent)
        return found

    async def verdict_on(self, work: PlanWork) -> Decision:
        """Return what another profile's model says of the work of a plan; raises where it cannot be asked."""
        return await self._asked("review", work=work)

    def _choices(self, purpose: Purpose) -> list[ModelChoice]:
        """Return who is asked in turn; a step goes on with the fallback that the last one has ended with."""
        state = self.context.state
        opened = state.opened
        if purpose in {"perception", "review"}:
            return list(opened.perception if purpose == "perception" else opened.reviewer)
        if purpose == "closing" and opened.closing:
            return list(opened.closing)
        first = ModelChoice(name=opened.model, reserve_micro=opened.reserve_micro, listed=opened.listed)
        every = [first, *opened.fallbacks]
        place = next((place for place, choice in enumerate(every) if choice.name == state.model), 0)
        return [*every[place:], *every[:place]]

    async def _asked(self, purpose: Purpose, failed: Ahead | None = None, *, work: PlanWork | None = None) -> Decision:
        """Ask until there is a decision; `failed` is a question whose fault is paid for already."""
        asking = Asking(purpose, self._choices(purpose), work=work)
        if failed is not None and failed.fault is not None:
            asking = failed.asking
            await self._react(asking, failed.fault, learned=failed.learned)
        while True:
            held = await self._reserved(asking)
            ask = self._ask(held, asking)
            try:
                decision = await self.context.activities.execute_once(
                    calls.ask_model, ask, summary=self._summary(asking)
                )
            except ApplicationError as error:
                learned = self._settle_fault(held, asking, error)
                await self._react(asking, error, learned=learned)
                continue
            except BaseException:
                # Cancelled: the request may have been billed.
                self._settle_failed(held, {})
                raise
            if purpose == "step":
                self.context.record_drafts(ask.happened(decision), kept_as=ask.draft)
            self._settle(held, decision, asking)
            return decision

    def _settle_fault(self, held: Reservation | None, asking: Asking, error: ApplicationError) -> bool:
        """Settle what was reserved; return whether nothing was sent because that was too little."""
        facts = _facts(error)
        learned = error.type == "ReservationTooSmall" and asking.learns(facts)
        self._settle_failed(held, {"unbilled": True} if learned else facts)
        return learned

    async def _react(self, asking: Asking, error: ApplicationError, *, learned: bool) -> None:
        """Prepare for the next try; one for which too little was reserved does not count."""
        if learned:
            return
        asking.forget_needs()
        facts = _facts(error)
        self.tried = self.tried or not facts.get("held")
        await self._failed(asking, error, facts)

    async def _failed(self, asking: Asking, error: ApplicationError, facts: dict[str, Any]) -> None:
        """Wait, or turn to another model, before the next try; raises what there is no next try for."""
        held_before, asking.held = asking.held, bool(facts.get("held"))
        asking.tries += not asking.held
        if self._falls_back(asking, error, facts):
            return
        hurried = asking.purpose != "step"
        if hurried and (asking.tries >= TRIES or error.type not in TRIED_AGAIN or facts.get("retry_after")):
            raise error
        if asking.held:
            if not held_before:
                self.context.record("model.held", one_line(error.message, 300))
            await self._held(float(facts.get("retry_after") or 1))
            return
        asking.failed = asking.failed or workflow.now()
        # Patience with a worker begins with the first failure, not when the call was handed to it.
        since = asking.failed if error.type in OF_ONE_WORKER else asking.since
        if await self._after(error, facts, asking.tries, since):
            self._use("")
            asking.begin_again(self._choices(asking.purpose))

    async def _held(self, seconds: float) -> None:
        """Wait with others for an endpoint that has asked one of them to; it counts as time, and not as a try."""
        most = self.context.state.budget.max_wall_seconds
        left = LONGEST_WAIT_S if most is None else max(0.0, most - self.context.stopwatch.seconds)
        await self._waited(min(seconds, left))
        await self.context.afford(self._out_of_time)

    def _out_of_time(self) -> str | None:
        most, used = self.context.state.budget.max_wall_seconds, self.context.stopwatch.seconds
        return None if most is None or used < most else exceeded(Limit.WALL, used, most)

    async def _waited(self, seconds: float) -> None:
        seconds = min(seconds, LONGEST_WAIT_S)
        with self.context.doing(State.WAITING):
            await workflow.sleep(timedelta(seconds=seconds), summary=f"the model asked to wait {seconds:g} s")

    def _falls_back(self, asking: Asking, error: ApplicationError, facts: dict[str, Any]) -> bool:
        """Turn to the next model when this one refuses, or has had its tries; return whether there is one."""
        if len(asking.choices) < 2 or error.type not in OF_ENDPOINTS:
            return False
        patience = LONGEST_PATIENCE_S if asking.purpose == "step" else 0
        waits = (facts.get("retry_after") or 0) > patience
        if error.type == "ModelUnavailable" and asking.tries < TRIES and not waits:
            return False
        failed, *others = asking.choices
        if not facts.get("held"):
            self.context.record("model.failed", f"try {asking.tries}: {error.message}", type=error.type)
        data = {"from": failed.name, "to": others[0].name, "why": error.message}
        text = f"{failed.name} failed, so {others[0].name} is asked: {error.message}"
        self.context.record("model.fallback", one_line(text, 300), **data)
        if asking.purpose == "step":
            self._use(others[0].name)
        asking.begin_again(others)
        return True

    def _use(self, model: str) -> None:
        """Ask this model from now on; the possible cost of the last call of another one says nothing of it."""
        state = self.context.state
        if state.model != model:
            state.model, state.worst_micro = model, 0

    def _figure(self, asking: Asking) -> int:
        """Return what the next call is expected to cost at most; 0 when nobody knows."""
        state = self.context.state
        own = asking.purpose in {"perception", "review"} or (asking.closing and state.opened.closing)
        return asking.choices[0].reserve_micro if own else 2 * state.worst_micro or asking.choices[0].reserve_micro

    async def _afford(self, asking: Asking, refusal: Callable[[], str | None]) -> None:
        """Go on only when nothing is refused; only for a step is a person asked for more. Raises BudgetExceeded."""
        if asking.purpose == "step":
            await self.context.afford(refusal)
        elif (message := refusal()) is not None:
            raise BudgetExceeded(message)

    def _lacks_tokens(self, asking: Asking) -> str | None:
        """Return why the tokens that are left do not hold the call, or None."""
        budget, used = self.context.state.budget, self.context.state.usage.tokens
        needed = max(1, asking.asks_tokens + asking.answer_tokens)
        if budget.max_tokens is None or used + needed <= budget.max_tokens:
            return None
        return tokens_exceeded(used, budget.max_tokens, asking.asks_tokens, asking.answer_tokens)

    async def _reserved(self, asking: Asking) -> Reservation | None:
        await self._afford(asking, lambda: self._lacks_tokens(asking))
        await self._afford(asking, lambda: self._lacks_money(asking))
        return self._hold(asking)

    def _lacks_money(self, asking: Asking) -> str | None:
        """Return why the money that is left does not hold the call, or None."""
        state, needed = self.context.state, asking.needed
        left = state.ledger.left(closing=asking.closing)
        if left is None or (left > 0 and (needed is None or needed <= left)):
            return None
        expected = needed or state.worst_micro or self._figure(asking)
        return cost_exceeded(state.ledger.spent, state.ledger.ceiling or 0, expected, asking.why)

    def _hold(self, asking: Asking) -> Reservation | None:
        state, needed, closing = self.context.state, asking.needed, asking.closing
        if state.ledger.ceiling is None:
            return None
        figure, left = self._figure(asking), state.ledger.left(closing=closing) or 0
        state.ledger, held = state.ledger.reserve(needed or min(left, figure or left), closing=closing)
        return held

    def _ask(self, held: Reservation | None, asking: Asking, *, ahead: bool = False) -> calls.AskModel:
        """Return what the model is asked, for the step under way, or `ahead` for the one after calls that succeed."""
        state, choice, purpose = self.context.state, asking.choices[0], asking.purpose
        most = state.budget.max_tokens
        usage, repeats = (state.usage.decided(), 0) if ahead else (state.usage, state.work.repeats)
        self.sent = len(state.append)
        ask = calls.AskModel(
            model=choice.name,
            context=state.context,
            append=answers_first(state.append),
            micro=None if held is None else held.micro,
            listed=choice.listed,
            closing=purpose == "closing",
            perception=purpose == "perception",
            work=asking.work,
            step=usage.step,
            tokens_left=None if most is None else max(0, most - state.usage.tokens),
            budget=self._left(usage, repeats),
        )
        return ask.model_copy(update=self._of_step()) if purpose == "step" else ask

    def _of_step(self) -> dict[str, Any]:
        """Return what the model is told only where it is asked what to do next."""
        state, opened = self.context.state, self.context.state.opened
        profile, programs = opened.profile, bool(opened.sandbox_queue)
        return {
            "draft": state.take_draft_number(),
            "programs": programs,
            "image": (profile.image or "") if programs else "",
            "markers": profile.markers,
            **state.offers,
            # The model sees its calls anyway, and what is told at each step stays in history.
            "progress": progress_line(state.progress) if profile.markers else "",
            "sources": opened.policy.wants_sources,
            "output_schema": opened.output_schema,
        }

    async def _after(self, error: ApplicationError, facts: dict[str, Any], tries: int, since: datetime) -> bool:
        """Wait before the next try, or ask a person after the last one; return whether to count tries from zero."""
        kind = error.type or ""
        self.context.record("model.failed", f"try {tries}: {error.message}", type=kind)
        if kind not in ASKS:
            raise error_of(error)
        wait = facts.get("retry_after")
        if isinstance(wait, int | float) and wait > 0 and tries < WAITS:
            await self._waited(float(wait))
            return False
        pause = timedelta(seconds=2 ** min(tries - 1, 3))
        if self._may_retry(kind, tries, since, pause):
            await workflow.sleep(pause, summary=f"before try {tries + 1} of the model")
            return False
        if not await self.context.activities.ask_about_fault(f"ask_model: {error.message}"):
            raise error_of(error)
        return True

    def _may_retry(self, kind: str, tries: int, since: datetime, pause: timedelta) -> bool:
        """Return whether another try may help; a worker that does not fit may hand over to one that does."""
        if kind in OF_ONE_WORKER:
            return workflow.now() + pause < since + timedelta(seconds=self.context.state.opened.transient_s)
        return kind in TRIED_AGAIN and tries < TRIES

    def _settle(self, held: Reservation | None, decision: Decision, asking: Asking) -> None:
        state, model = self.context.state, asking.choices[0].name
        billed = decision.usage.cost_micro
        state.usage = state.usage.asked(model, decision.usage)
        if asking.purpose not in {"perception", "review"}:
            state.worst_micro = decision.worst_case_micro
        if held is not None:
            state.ledger = state.ledger.settle(held, billed)
        else:
            state.ledger = state.ledger.model_copy(update={"spent": state.ledger.spent + billed})
        reserved = decision.worst_case_micro if held is None else held.micro
        self.overshot = billed > reserved
        if self.overshot:
            text = f"billed {billed / MICRO:g} USD for a call that may cost {reserved / MICRO:g} USD at most"
            usd: dict[str, Any] = {"billed_usd": billed / MICRO, "reserved_usd": reserved / MICRO}
            self.context.record("budget.overshot", f"{model} {text}", **usd)
            self.context.approvals.notices.add(NoticeKind.BUDGET_OVERSHOT, data={"model": one_line(model, 200), **usd})
        self.context.changed()

    def _overspent(self) -> str | None:
        ledger = self.context.state.ledger
        if ledger.ceiling is None or ledger.spent <= ledger.ceiling:
            return None
        return exceeded(Limit.COST, ledger.spent / MICRO, ledger.ceiling / MICRO)

    def _settle_failed(self, held: Reservation | None, facts: dict[str, Any]) -> None:
        if held is None:
            return
        ledger = self.context.state.ledger
        self.context.state.ledger = ledger.release(held) if facts.get("unbilled") is True else ledger.charge(held)

    def _summary(self, asking: Asking) -> str:
        asked = f"step {self.context.state.usage.step}: ask {asking.choices[0].name}"
        if asking.purpose == "perception":
            asked = f"ask {asking.choices[0].name} what the task is about"
        if asking.work is not None:
            asked = f"ask {asking.choices[0].name} for a verdict on {asking.work.name}"
        return asked + (f", try {asking.tries + 1}" if asking.tries else "")

    def _left(self, usage: Usage, repeats: int) -> str:
        state = self.context.state
        steps = state.budget.max_steps - usage.steps_taken
        left = f"{steps} steps, {state.budget.max_tool_calls - usage.tool_calls} calls"
        if state.opened.sandbox_queue:
            left += f", {max(0, state.budget.max_code_runs - usage.code_runs)} programs"
        if state.budget.max_tokens is not None:
            left += f", {max(0, state.budget.max_tokens - usage.tokens)} tokens"
        if repeats:
            lifelines = state.opened.profile.lifelines - repeats
            left += f", {lifelines} more {'try' if lifelines == 1 else 'tries'} of this step, which failed"
        micro = state.ledger.left()
        return left if micro is None else f"{left}, {money(micro / MICRO)} USD"


def _facts(error: ApplicationError) -> dict[str, Any]:
    first = error.details[0] if error.details else None
    return first if isinstance(first, dict) else {}
