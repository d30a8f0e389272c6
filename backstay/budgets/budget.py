"""The limits on what a run may spend, and the ledger that reserves before it spends."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from backstay.bounds import MOST, Quotas
from backstay.budgets.usage import Usage
from backstay.errors import BudgetExceeded, TaskInvalid
from backstay.frozen import Frozen, PublicInput
from backstay.quoting import named
from backstay.shown import one_line

MICRO = 1_000_000
"""Money is kept in whole millionths of a US dollar, rounded up, so that sums are exact and never too low."""


class Limit(StrEnum):
    """Name a limit of a budget."""

    STEPS = "max_steps"
    TOOL_CALLS = "max_tool_calls"
    CODE_RUNS = "max_code_runs"
    COST = "max_llm_cost_usd"
    WALL = "max_wall_seconds"
    TOKENS = "max_tokens"
    QUOTA = "quotas"
    PROGRAM_CALLS = "max_calls_per_program"


class Budget(PublicInput):
    """Limit what a run may spend; None means no limit."""

    max_steps: int = Field(default=10, ge=1, le=100_000)
    """Decisions of the model, at most 100,000."""
    max_tool_calls: int = Field(default=30, ge=0, le=100_000)
    """Tool calls, including those of plan steps."""
    max_code_runs: int = Field(default=3, ge=0, le=MOST)
    """Programs that the model may run."""
    max_llm_cost_usd: float | None = Field(default=0.50, ge=0, le=1_000_000, allow_inf_nan=False)
    """Cost of all model calls in US dollars."""
    max_wall_seconds: float | None = Field(default=None, gt=0, le=MOST, allow_inf_nan=False)
    """Running time in seconds; only waiting for a person does not count."""
    max_tokens: int | None = Field(default=None, ge=1, le=MOST)
    """Tokens of all model calls, input and output; a call that may need more than is left is not sent."""
    max_calls_per_program: int | None = Field(default=None, ge=1, le=MOST)
    """Tool calls of one program; each further call raises an error in it."""
    quotas: Annotated[dict[str, Annotated[int, Field(ge=0, le=MOST)]], Quotas] = Field(
        default_factory=dict, max_length=1000
    )
    """Calls of one tool, by `provider.tool`."""
    on_exhausted: Literal["finalize", "ask", "fail"] = "finalize"
    """What happens at a limit: write a closing summary, ask a person for more, or fail."""

    def raised(self, more: dict[str, Any], *, opened: bool = True) -> "Budget":
        """Return the budget with limits added, as `top_up` asks; every amount must be positive.

        Until the run is `opened` a quota may be added to that nobody knows yet, since the profile may set it.
        Raises TaskInvalid for an unknown limit, a tool without a quota, a non-positive amount, or one out of range.
        """
        from_top_up = TopUp.admit(more).model_dump(exclude_none=True)
        quotas = dict(self.quotas)
        for tool, amount in from_top_up.pop("quotas", {}).items():
            if opened and tool not in quotas:
                # A quota of what is to be added would refuse what nothing refuses now.
                told = one_line(named(tool), 80)
                raise TaskInvalid(f"quotas.{told}: the run has no quota for this tool to add to; remove it")
            quotas[tool] = quotas.get(tool, 0) + amount
        added = {
            name: None if getattr(self, name) is None else getattr(self, name) + amount
            for name, amount in from_top_up.items()
        }
        return Budget.admit({**self.model_dump(), **added, "quotas": quotas})

    def room_for(self, more: dict[str, Any]) -> dict[str, Any]:
        """Return how much of what was added elsewhere this budget can take, as `raised` takes it; empty for nothing.

        A limit holds no more than its greatest value, which is how people write that there is no limit.
        """
        limits = {name: _GREATEST[name] - (getattr(self, name) or 0) for name in more if name in _GREATEST}
        added = {name: min(more[name], room) for name, room in limits.items()}
        quotas = {
            tool: min(amount, MOST - self.quotas[tool])
            for tool, amount in more.get("quotas", {}).items()
            if tool in self.quotas
        }
        fitting = {name: amount for name, amount in added.items() if amount > 0}
        raised = {tool: amount for tool, amount in quotas.items() if amount > 0}
        return fitting | ({"quotas": raised} if raised else {})

    def added_since(self, before: "Budget") -> dict[str, Any]:
        """Return what was added to the limits of an earlier state of this budget, as `raised` takes it."""
        names = (name for name in TopUp.model_fields if getattr(self, name) != getattr(before, name))
        added = {name: getattr(self, name) - getattr(before, name) for name in names if name != "quotas"}
        quotas = {tool: most - before.quotas.get(tool, 0) for tool, most in self.quotas.items()}
        raised = {tool: more for tool, more in quotas.items() if more}
        return added | ({"quotas": raised} if raised else {})


_GREATEST = {
    name: bound.le for name, field in Budget.model_fields.items() for bound in field.metadata if hasattr(bound, "le")
}


class TopUp(PublicInput):
    """Amounts to add to the limits of a budget."""

    max_steps: int | None = Field(default=None, gt=0)
    """Decisions of the model to add."""
    max_tool_calls: int | None = Field(default=None, gt=0)
    """Tool calls to add."""
    max_code_runs: int | None = Field(default=None, gt=0)
    """Programs to add."""
    max_llm_cost_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """US dollars for model calls to add."""
    max_wall_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds of running time to add."""
    max_tokens: int | None = Field(default=None, gt=0)
    """Tokens to add."""
    max_calls_per_program: int | None = Field(default=None, gt=0)
    """Tool calls of each program to add."""
    quotas: Annotated[dict[str, Annotated[int, Field(strict=True, gt=0, le=MOST)]], Quotas] = Field(
        default_factory=dict, max_length=1000
    )
    """Calls of one tool to add, by `provider.tool`; the budget has a quota for it already."""


class Reservation(Frozen):
    """Hold money for one try of a model call until its bill is known."""

    id: int
    micro: int


class Ledger(Frozen):
    """Account for model money so that spent + reserved never exceeds the ceiling.

    A reservation is settled with what was billed, charged whole when nobody knows, or released where it is proven
    that nothing was billed.
    """

    ceiling: int | None
    """Micro-dollars; None is not a ceiling."""
    finalize: int = 0
    """Micro-dollars kept back for one closing summary."""
    spent: int = 0
    open: tuple[Reservation, ...] = ()
    next_id: int = 1

    @property
    def reserved(self) -> int:
        """Return what is held by open reservations."""
        return sum(held.micro for held in self.open)

    def left(self, *, closing: bool = False) -> int | None:
        """Return what may still be reserved; a closing summary may use what was kept back for it."""
        if self.ceiling is None:
            return None
        kept = 0 if closing else min(self.finalize, self.ceiling)
        return max(0, self.ceiling - kept - self.spent - self.reserved)

    def reserve(self, micro: int, *, closing: bool = False) -> tuple["Ledger", Reservation]:
        """Hold an amount; raises BudgetExceeded when it does not fit."""
        left = self.left(closing=closing)
        if left is not None and micro > left:
            raise BudgetExceeded(exceeded(Limit.COST, self.spent / MICRO, (self.ceiling or 0) / MICRO))
        held = Reservation(id=self.next_id, micro=micro)
        return self.model_copy(update={"open": (*self.open, held), "next_id": self.next_id + 1}), held

    def settle(self, held: Reservation, billed: int) -> "Ledger":
        """Replace a reservation by what was billed; a bill above it is kept whole, so that nothing is hidden."""
        if all(other.id != held.id for other in self.open):
            return self
        rest = tuple(other for other in self.open if other.id != held.id)
        return self.model_copy(update={"open": rest, "spent": self.spent + billed})

    def charge(self, held: Reservation) -> "Ledger":
        """Count a reservation as spent, because its bill may exist and cannot be seen."""
        return self.settle(held, held.micro)

    def release(self, held: Reservation) -> "Ledger":
        """Release a reservation when it is proven that nothing was billed."""
        return self.settle(held, 0)


def cost_exceeded(spent: int, ceiling: int, needed: int, why: str = "") -> str:
    """Return the message for a model call that does not fit into what is left; the amounts are micro-dollars.

    `why` says why the call may cost more than it should.
    """
    message = exceeded(Limit.COST, spent / MICRO, ceiling / MICRO)
    message = f"{message}; the next model call may cost {needed / MICRO:.6f} USD" if needed else message
    return f"{message}: {why}" if why else message


def tokens_exceeded(used: int, allowed: int, asks: int, answer: int) -> str:
    """Return the message for a model call whose request and shortest answer do not fit into the tokens left."""
    message = exceeded(Limit.TOKENS, used, allowed)
    if not asks:
        return message
    return f"{message}; the next model call needs about {asks + answer}: {asks} to ask, and {answer} for an answer"


def exceeded(limit: Limit, used: float, allowed: float, of: str = "") -> str:
    """Return the message for a limit that was hit; every client shows the same one."""
    name = f"{limit.value}[{of}]" if of else limit.value
    return f"budget exceeded: {name} (used {used:g}, allowed {allowed:g})"


def first_limit_hit(budget: Budget, usage: Usage, wall_seconds: float, *, decisions: bool = True) -> str | None:
    """Return the message for the first limit that stops the next step, or None.

    A step is one decision of the model: the steps of an explicit plan are bounded by the plan itself.
    """
    bounds: tuple[tuple[Limit, float, float | None], ...] = (
        (Limit.STEPS, usage.steps_taken, budget.max_steps if decisions else None),
        (Limit.TOKENS, usage.tokens, budget.max_tokens),
        (Limit.WALL, wall_seconds, budget.max_wall_seconds),
    )
    for limit, used, allowed in bounds:
        if allowed is not None and used >= allowed:
            return exceeded(limit, used, allowed)
    return None


def code_runs_refused(budget: Budget, usage: Usage) -> str | None:
    """Return why no further program may be started, or None."""
    if usage.code_runs >= budget.max_code_runs:
        return exceeded(Limit.CODE_RUNS, usage.code_runs, budget.max_code_runs)
    return None


def program_calls_refused(budget: Budget, made: int) -> str | None:
    """Return why a program that has made this many calls may make no further one, or None."""
    allowed = budget.max_calls_per_program
    return None if allowed is None or made < allowed else exceeded(Limit.PROGRAM_CALLS, made, allowed)


def calls_refused(budget: Budget, usage: Usage, tools: list[str]) -> str | None:
    """Return why a batch of dispatches does not fit, or None when all of it fits."""
    if usage.tool_calls + len(tools) > budget.max_tool_calls:
        return exceeded(Limit.TOOL_CALLS, usage.tool_calls, budget.max_tool_calls)
    for tool in sorted(set(tools)):
        allowed = budget.quotas.get(tool)
        used = usage.calls_by_tool.get(tool, 0)
        if allowed is not None and used + tools.count(tool) > allowed:
            return exceeded(Limit.QUOTA, used, allowed, of=tool)
    return None
