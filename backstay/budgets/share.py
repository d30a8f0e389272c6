"""The share of a run's budget that a sub-run may spend: whole numbers, rounded down, so that sums are exact."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from pydantic import Field

from backstay.bounds import MOST
from backstay.budgets.budget import MICRO, Budget, Ledger
from backstay.budgets.usage import ModelUsage, Usage
from backstay.errors import ArgumentsInvalid, TaskInvalid
from backstay.frozen import Frozen, PublicInput

MILLI = 1_000
UNTOLD = "unknown"
"""The model to which tokens are counted of which nobody knows who used them."""


class AskedSums(PublicInput):
    """Name sums of single limits, as a model asks for them."""

    max_steps: int | None = Field(default=None, ge=1, le=100_000)
    max_tool_calls: int | None = Field(default=None, ge=0, le=100_000)
    max_code_runs: int | None = Field(default=None, ge=0, le=MOST)
    max_llm_cost_usd: float | None = Field(default=None, gt=0, le=1_000_000, allow_inf_nan=False)
    max_wall_seconds: float | None = Field(default=None, gt=0, le=MOST, allow_inf_nan=False)
    max_tokens: int | None = Field(default=None, ge=1, le=MOST)


Asked = float | AskedSums | None
"""A part of what is left, sums of single limits, or an equal part."""


def asked_share(given: Any) -> Asked:
    """Return what a model asks for; raises ArgumentsInvalid naming field and fix."""
    match given:
        case None:
            return None
        case bool():
            raise ArgumentsInvalid("share: a boolean; give a number above 0 and up to 1, or an object of limits")
        case int() | float():
            if not 0 < given <= 1:
                raise ArgumentsInvalid(f"share: {given} is not above 0 and up to 1; give the part of what is left")
            return float(given)
        case dict():
            try:
                return AskedSums.admit(given)
            except TaskInvalid as error:
                raise ArgumentsInvalid(f"share: {error}") from None
        case _:
            raise ArgumentsInvalid("share: give a number above 0 and up to 1, or an object such as {max_steps: 4}")


class Share(Frozen):
    """Hold how much of each limit is set apart; None is not a limit."""

    max_steps: int
    max_tool_calls: int
    max_code_runs: int
    micro: int | None = None
    """Millionths of a US dollar."""
    max_tokens: int | None = None
    wall_ms: int | None = None
    quotas: dict[str, int] = Field(default_factory=dict)

    @property
    def limits(self) -> dict[str, int | None]:
        """Return the sums by the names of limits, each as a whole number."""
        named = ("max_steps", "max_tool_calls", "max_code_runs", "micro", "max_tokens", "wall_ms")
        quotas = {f"quotas.{tool}": most for tool, most in self.quotas.items()}
        return {_NAMES.get(name, name): getattr(self, name) for name in named} | quotas

    @property
    def fields(self) -> dict[str, Any]:
        """Return the sums as fields of a budget; an amount without a limit is null."""
        return {
            "max_steps": self.max_steps,
            "max_tool_calls": self.max_tool_calls,
            "max_code_runs": self.max_code_runs,
            "max_llm_cost_usd": None if self.micro is None else self.micro / MICRO,
            "max_tokens": self.max_tokens,
            "max_wall_seconds": None if self.wall_ms is None else self.wall_ms / MILLI,
            "quotas": self.quotas,
        }

    @property
    def shown(self) -> dict[str, Any]:
        """Return the sums as people are asked about them, without what has no limit."""
        return {name: most for name, most in self.fields.items() if most is not None and most != {}}

    @property
    def whole(self) -> "Spent":
        """Return all of it as spent, which counts where nobody knows what was."""
        tokens = {UNTOLD: ModelUsage(input_new_tokens=self.max_tokens)} if self.max_tokens else {}
        usage = Usage(
            steps=self.max_steps,
            tool_calls=self.max_tool_calls,
            code_runs=self.max_code_runs,
            calls_by_tool=self.quotas,
            models=tokens,
        )
        return Spent(usage=usage, micro=self.micro or 0, wall_ms=self.wall_ms or 0)

    def whole_of(self, budget: Budget) -> "Spent":
        """Return all that a sub-run with this share could spend whose budget is that by now."""
        others = {name: getattr(budget, name) for name in Budget.model_fields if name not in self.fields}
        added = budget.added_since(Budget.admit({**self.fields, **others}))
        ceiling = budget.max_llm_cost_usd
        ledger = Ledger(ceiling=None if ceiling is None else round(ceiling * MICRO))
        return left_of(budget, Usage(), ledger, 0).whole.model_copy(update={"added": added})


_NAMES = {"micro": "max_llm_cost_usd", "wall_ms": "max_wall_seconds"}
_UNITS = {"max_llm_cost_usd": MICRO, "max_wall_seconds": MILLI}


class Spent(Frozen):
    """Hold what a sub-run has spent, and who has answered it, with those that it has delegated to in turn."""

    usage: Usage = Usage()
    micro: int = 0
    wall_ms: int = 0
    added: dict[str, Any] = Field(default_factory=dict)
    """What people have added to its budget."""
    private: tuple[str, ...] = ()
    """The providers that have answered something which not everybody may read, and its own answer may tell."""


def left_of(budget: Budget, usage: Usage, ledger: Ledger, seconds: float) -> Share:
    """Return what is left of a run's limits; the amount kept for its closing summary is not among it."""
    most, wall = budget.max_tokens, budget.max_wall_seconds
    quotas = {tool: allowed - usage.calls_by_tool.get(tool, 0) for tool, allowed in budget.quotas.items()}
    return Share(
        max_steps=max(0, budget.max_steps - usage.steps_taken),
        max_tool_calls=max(0, budget.max_tool_calls - usage.tool_calls),
        max_code_runs=max(0, budget.max_code_runs - usage.code_runs),
        micro=ledger.left(),
        max_tokens=None if most is None else max(0, most - usage.tokens),
        wall_ms=None if wall is None else max(0, int((wall - seconds) * MILLI)),
        quotas={tool: max(0, left) for tool, left in quotas.items()},
    )


def divided(left: Share, asked: Sequence[Asked]) -> list[Share]:
    """Return the share of each; raises ArgumentsInvalid where they are more than is left, or one could do nothing."""
    every = [_one(left, each, Fraction(1, len(asked) + 1)) for each in asked]
    for name, most in left.limits.items():
        together = sum(share.limits[name] or 0 for share in every)
        if most is not None and together > most:
            raise ArgumentsInvalid(
                f"share: {_told(name, together)} of {name} are given away together, and {_told(name, most)} are left; "
                "give less"
            )
    for share in every:
        for name in ("max_steps", "max_llm_cost_usd", "max_tokens", "max_wall_seconds"):
            if share.limits[name] == 0:
                raise ArgumentsInvalid(
                    f"share: nothing of {name} is in it, since {_told(name, left.limits[name] or 0)} are left; "
                    "give a larger one, or do it without a sub-run"
                )
    return every


def _one(left: Share, asked: Asked, equal: Fraction) -> Share:
    part = Fraction(repr(asked)) if isinstance(asked, float) else equal
    sums: Mapping[str, Any] = asked.model_dump(exclude_none=True) if isinstance(asked, AskedSums) else {}

    def of(name: str) -> int | None:
        most = left.limits[name]
        if name in sums:
            return int(Fraction(repr(sums[name])) * _UNITS.get(name, 1))
        return None if most is None else most * part.numerator // part.denominator

    return Share(
        max_steps=of("max_steps") or 0,
        max_tool_calls=of("max_tool_calls") or 0,
        max_code_runs=of("max_code_runs") or 0,
        micro=of("max_llm_cost_usd"),
        max_tokens=of("max_tokens"),
        wall_ms=of("max_wall_seconds"),
        quotas={tool: of(f"quotas.{tool}") or 0 for tool in left.quotas},
    )


def _told(name: str, amount: int) -> str:
    return f"{amount / _UNITS[name]:g}" if name in _UNITS else str(amount)
