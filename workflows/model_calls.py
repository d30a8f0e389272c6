"""Ask the model for the next decision, and reserve money for each try before it is spent."""

from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls
from backstay.budgets.budget import MICRO, Limit, Reservation, cost_exceeded, exceeded
from backstay.errors import BudgetExceeded
from backstay.task.context import answers_first
from backstay.task.decision import Decision, Finish
from backstay.task.status import State
from workflows.activity_calls import BUG, BUGS_WAIT, LOST, error_of
from workflows.lifelines import progress_line
from workflows.run_context import RunContext

TRIES = 3
WAITS = 10
"""How many times in a row an endpoint may ask the run to wait before a person is asked."""
LONGEST_WAIT_S = 3600
OVERSHOT = "overshot"
"""The patch id; since this change a bill above its reservation is an event, and the run stops as its budget says."""
WAIT_FROM_FAILURE = "patience-counts-from-the-first-failure"
TRIED_AGAIN = frozenset({"ModelUnavailable", LOST, BUG})
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

    async def decide(self) -> Decision:
        """Return the next decision and count it as a step; raises BudgetExceeded."""
        state = self.context.state
        await self.context.count_step()
        self.tried = False
        try:
            with self.context.doing(State.DECIDING):
                decision = await self._asked(closing=False)
        except BudgetExceeded:
            if not self.tried:
                self.context.uncount_step()
            raise
        # What was added while the model answered is sent with the next step.
        state.context, state.append = decision.context, state.append[self.sent :]
        state.work.counted = False
        if self.overshot and not all(isinstance(action, Finish) for action in decision.actions):
            await self.context.afford(self._overspent)
        return decision

    async def closing_summary(self) -> str | None:
        """Return a summary of what was done, paid from the reserve for it, or None."""
        if not self.context.state.opened.store:
            return None
        try:
            decision = await self._asked(closing=True)
        except (ApplicationError, BudgetExceeded):
            return None
        self.context.state.count_free_call()
        self.context.record("summary.created", "a closing summary was written")
        return decision.reason or None

    async def _asked(self, *, closing: bool) -> Decision:
        tries, since = 0, workflow.now()
        failed: datetime | None = None
        needed: int | None = None
        while True:
            held = await self._reserved(needed, closing=closing)
            ask = self._ask(held, closing)
            try:
                decision = await self.context.activities.execute_once(
                    calls.ask_model, ask, summary=self._summary(tries)
                )
            except ApplicationError as error:
                facts = _facts(error)
                if error.type == "ReservationTooSmall" and needed is None:
                    # Nothing was sent, so this does not count as a try; the amount that is needed is now known.
                    self._settle_failed(held, {"unbilled": True})
                    needed = int(facts.get("needed", 0))
                    continue
                needed, self.tried = None, True
                self._settle_failed(held, facts)
                tries += 1
                if closing and (tries >= TRIES or error.type not in TRIED_AGAIN or facts.get("retry_after")):
                    raise
                failed = failed or workflow.now()
                if await self._after(error, facts, tries, failed if _counts_from_failure(error) else since):
                    tries, since, failed = 0, workflow.now(), None
                continue
            except BaseException:
                # Cancelled: the request may have been billed.
                self._settle_failed(held, {})
                raise
            if not closing:
                self.context.record_drafts(ask.happened(decision), kept_as=ask.draft)
            self._settle(held, decision)
            return decision

    async def _reserved(self, needed: int | None, *, closing: bool) -> Reservation | None:
        state = self.context.state
        if state.ledger.ceiling is None:
            return None

        def refusal() -> str | None:
            left = state.ledger.left(closing=closing)
            short = left is not None and (left <= 0 or (needed is not None and needed > left))
            expected = needed or state.worst_micro or state.opened.reserve_micro
            return cost_exceeded(state.ledger.spent, state.ledger.ceiling or 0, expected) if short else None

        if closing:
            if (message := refusal()) is not None:
                raise BudgetExceeded(message)
        else:
            await self.context.afford(refusal)
        left = state.ledger.left(closing=closing) or 0
        figure = 2 * state.worst_micro or state.opened.reserve_micro
        state.ledger, held = state.ledger.reserve(needed or min(left, figure or left), closing=closing)
        return held

    def _ask(self, held: Reservation | None, closing: bool) -> calls.AskModel:  # noqa: FBT001  # carried through
        state = self.context.state
        more: dict[str, Any] = {}
        if held is not None:
            more["micro"] = held.micro
        if closing:
            more["closing"] = True
        else:
            more["draft"] = state.take_draft_number()
            profile = state.opened.profile
            if state.opened.sandbox_queue:
                more["programs"] = True
                more |= {} if profile.image is None else {"image": profile.image}
            given = {"markers": profile.markers, "progress": progress_line(state.progress), "planning": state.planning}
            more |= {name: value for name, value in given.items() if value}
            if state.opened.output_schema:
                more["output_schema"] = state.opened.output_schema
            if state.opened.policy.wants_sources:
                more["sources"] = True
        self.sent = len(state.append)
        if state.append:
            more["append"] = answers_first(state.append)
        if state.budget.max_tokens is not None:
            more["max_completion_tokens"] = max(1, state.budget.max_tokens - state.usage.tokens)
        return calls.AskModel(
            user_id=state.task.user_id,
            model=state.opened.model,
            context=state.context,
            step=state.usage.step,
            budget=self._left(),
            **more,
        )

    async def _after(self, error: ApplicationError, facts: dict[str, Any], tries: int, since: datetime) -> bool:
        """Wait before the next try, or ask a person after the last one; return whether to count tries from zero."""
        kind = error.type or ""
        self.context.record("model.failed", f"try {tries}: {error.message}", type=kind)
        if kind not in ASKS or (kind == BUG and not workflow.patched(BUGS_WAIT)):
            raise error_of(error)
        wait = facts.get("retry_after")
        if isinstance(wait, int | float) and wait > 0 and tries < WAITS:
            seconds = min(float(wait), LONGEST_WAIT_S)
            with self.context.doing(State.WAITING):
                await workflow.sleep(timedelta(seconds=seconds), summary=f"the model asked to wait {seconds:g} s")
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

    def _settle(self, held: Reservation | None, decision: Decision) -> None:
        state = self.context.state
        billed = decision.usage.cost_micro
        state.usage = state.usage.asked(state.opened.model, decision.usage)
        state.worst_micro = decision.worst_case_micro
        if held is not None:
            state.ledger = state.ledger.settle(held, billed)
        else:
            state.ledger = state.ledger.model_copy(update={"spent": state.ledger.spent + billed})
        reserved = decision.worst_case_micro if held is None else held.micro
        self.overshot = billed > reserved and workflow.patched(OVERSHOT)
        if self.overshot:
            text = f"billed {billed / MICRO:g} USD for a call that may cost {reserved / MICRO:g} USD at most"
            usd: dict[str, Any] = {"billed_usd": billed / MICRO, "reserved_usd": reserved / MICRO}
            self.context.record("budget.overshot", f"{state.opened.model} {text}", **usd)
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

    def _summary(self, tries: int) -> str:
        state = self.context.state
        return f"step {state.usage.step}: ask {state.opened.model}" + (f", try {tries + 1}" if tries else "")

    def _left(self) -> str:
        state = self.context.state
        steps = state.budget.max_steps - state.usage.steps_taken
        left = f"{steps} steps, {state.budget.max_tool_calls - state.usage.tool_calls} calls"
        if state.opened.sandbox_queue:
            left += f", {max(0, state.budget.max_code_runs - state.usage.code_runs)} programs"
        if state.budget.max_tokens is not None:
            left += f", {max(0, state.budget.max_tokens - state.usage.tokens)} tokens"
        if state.work.repeats:
            lifelines = state.opened.profile.lifelines - state.work.repeats
            left += f", {lifelines} more {'try' if lifelines == 1 else 'tries'} of this step, which failed"
        money = state.ledger.left()
        return left if money is None else f"{left}, {money / MICRO:.4f} USD"


def _counts_from_failure(error: ApplicationError) -> bool:
    """Return whether patience begins with the first failure, not when the model call was handed to a worker."""
    return error.type == "WorkerMisfit" or (error.type == "StoreMismatch" and workflow.patched(WAIT_FROM_FAILURE))


def _facts(error: ApplicationError) -> dict[str, Any]:
    first = error.details[0] if error.details else None
    return first if isinstance(first, dict) else {}
