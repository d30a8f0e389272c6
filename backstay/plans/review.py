"""Reviews: what is checked after a plan was carried out, and how much confidence that gives.

Every check has a score between 0 and 1:

- `lint` loses 0.05 for each finding, and `types` 0.1 for each error, but never falls below 0;
- `import`, `tests`, `artifacts` and `schema` have the share of modules, tests and files that are as they should be;
- `custom` has 1 when its condition, its range and its schema all hold for the answer of its tool, and otherwise 0;
- `reviewer`, the verdict of another profile's model, has the confidence that it gives, and 0 when it does not approve.

The confidence is the weighted mean. A critical check has failed when its score is below 1, and then the confidence
is 0; `reviewer` is critical, has failed when its score is 0, and never lifts the confidence. A check that could not
be made has the score 0, and says why.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo, model_validator

from backstay.frozen import Frozen, PublicInput
from backstay.policies.condition import Conditions, Judgement, judge, parse_conditions
from backstay.shown import one_line
from backstay.task.decision import PlanVerdict
from backstay.tools.tool import Safety

CheckName = Literal["lint", "types", "import", "tests", "artifacts", "schema", "custom"]
REVIEWER = "reviewer"
"""The name of the check that is the verdict of another profile's model."""
RESULT = "result"
"""What conditions call the answer of a custom check's tool, as the declarations of toolbox.json do."""

_LOST = {"lint": 0.05, "types": 0.1}
_FIELDS: Mapping[CheckName, frozenset[str]] = MappingProxyType(
    {
        "lint": frozenset({"paths"}),
        "types": frozenset({"paths"}),
        "import": frozenset({"modules"}),
        "tests": frozenset({"paths"}),
        "artifacts": frozenset({"expected"}),
        "schema": frozenset({"paths", "value_schema"}),
        "custom": frozenset({"tool", "arguments", "condition", "range", "value_schema"}),
    }
)
_OF_SOME = frozenset[str]().union(*_FIELDS.values())


def _plain_path(path: str) -> str:
    parts = path.split("/")
    if not path.isprintable() or path.startswith("/") or ".." in parts:
        raise ValueError("write a path relative to the workspace, without '..'")
    return "/".join(part for part in parts if part not in ("", ".")) or "."


def _dotted(name: str) -> str:
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError("write the dotted name of a module, such as shop.orders")
    return name


RelativePath = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_plain_path)]
ModuleName = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_dotted)]
Conditions_ = Annotated[dict[str, dict[str, Any]], AfterValidator(parse_conditions)]


class ExpectedArtifact(PublicInput):
    """Say what a file in the workspace must be; without hash and size, it must exist."""

    path: RelativePath
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    size: Annotated[int, Field(ge=0)] | None = None


class ValueRange(PublicInput):
    """Bound a number in the answer of a tool."""

    path: str = Field(min_length=1, max_length=200)
    """Where it stands, such as `result.coverage`."""
    min: float | None = Field(default=None, allow_inf_nan=False)
    max: float | None = Field(default=None, allow_inf_nan=False)

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("bounds nothing; give min, max or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min:g} is above max {self.max:g}; swap them")
        parse_conditions(self.conditions)
        return self

    @property
    def conditions(self) -> Conditions:
        """Return it as conditions."""
        bounds = {"gte": self.min, "lte": self.max}
        return {self.path: {name: bound for name, bound in bounds.items() if bound is not None}}


class ReviewCall(NamedTuple):
    """Name the call that a custom check needs; it is ruled on and made like any other."""

    tool: str
    arguments: dict[str, Any]


class CheckRule(PublicInput):
    """Declare one check of a review."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    name: CheckName
    weight: float = Field(default=1, gt=0, le=1000, allow_inf_nan=False)
    critical: bool = False
    """Whether the confidence is 0 unless its score is 1."""
    timeout_s: float = Field(default=120, gt=0, le=600, allow_inf_nan=False)
    """How long it may run; for `custom`, how long its tool may take."""
    paths: tuple[RelativePath, ...] = Field(default=(), max_length=50)
    """What `lint`, `types` and `tests` look at, by default all; the JSON files of `schema`."""
    modules: tuple[ModuleName, ...] = Field(default=(), max_length=200)
    """What `import` imports; by default the modules and packages at the top of the workspace, or of its `src`."""
    expected: tuple[ExpectedArtifact, ...] = Field(default=(), max_length=200)
    """What `artifacts` compares; by default the files that the plan's own steps say they wrote."""
    tool: str = Field(default="", max_length=200)
    """The read-only tool of `custom`, as `provider.tool`."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    condition: Conditions_ | None = None
    """What must hold for the answer, such as `{result.open: {equals: 0}}`."""
    range: ValueRange | None = None
    value_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    """JSON Schema of the files of `schema`, or of the answer of `custom`."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for field in sorted(_OF_SOME - _FIELDS[self.name]):
            if getattr(self, field) != type(self).model_fields[field].get_default(call_default_factory=True):
                raise ValueError(f"{field.removeprefix('value_')}: of no use for {self.name}; remove it")
        if self.name == "schema" and not (self.paths and self.value_schema is not None):
            raise ValueError("a check of files needs paths and schema; give both")
        if self.name == "custom":
            self._require_whole_call()
        return self

    def _require_whole_call(self) -> None:
        provider, dot, rest = self.tool.partition(".")
        if not (provider and dot and rest):
            raise ValueError(f"tool: {self.tool!r} is not a tool; write provider.tool")
        if self.condition is None and self.range is None and self.value_schema is None:
            raise ValueError("a custom check needs condition, range or schema; give at least one of them")
        paths = [*(self.condition or {}), *([self.range.path] if self.range else [])]
        for path in paths:
            if path.partition(".")[0] != RESULT:
                raise ValueError(f"{path}: the answer is called {RESULT}; write {RESULT}.{path}")
        if any("from" in operators for operators in (self.condition or {}).values()):
            raise ValueError("condition: `from` asks where an argument came from, which an answer has not; remove it")

    @property
    def call(self) -> ReviewCall | None:
        """Return the call that is made before the check is judged; None for all but `custom`."""
        return ReviewCall(self.tool, self.arguments) if self.name == "custom" else None


_MOST_CHECKS = 20


def _some(checks: tuple[CheckRule, ...], info: ValidationInfo) -> tuple[CheckRule, ...]:
    least = 0 if info.data.get("reviewer") else 1
    if not least <= len(checks) <= _MOST_CHECKS:
        more = "write at least one, or name a reviewer, and at most"
        raise ValueError(f"{len(checks)} checks; {more} {_MOST_CHECKS}")
    return checks


class CheckResult(Frozen):
    """Tell how one check ended."""

    name: CheckName | Literal["reviewer"]
    weight: float = 1
    score: float = Field(default=0, ge=0, le=1)
    critical: bool = False
    ref: str | None = None
    """The stored report."""
    error: str | None = None
    """Why it could not be made; its score is 0 then."""
    found: str = Field(default="", exclude_if=lambda found: not found)
    """The first of what it found, on one line; the report has all of it."""

    @property
    def words(self) -> str:
        """Return how it ended, as people read it."""
        why = self.error or self.found
        return f"{self.name} {self.score:g}{f' ({one_line(why, 200)})' if why else ''}"

    @property
    def failed(self) -> bool:
        """Return whether it makes the confidence 0 where it is critical."""
        return self.score == 0 if self.name == REVIEWER else self.score < 1


def check_of(verdict: PlanVerdict | None, why: str = "") -> CheckResult:
    """Return a verdict as a check; `why` says why there is none."""
    known: dict[str, Any] = {"name": REVIEWER, "critical": True}
    if verdict is None:
        return CheckResult(**known, error=one_line(why, 500))
    found = one_line("; ".join(verdict.problems), 400)
    if not verdict.approved:
        found = f"it does not approve: {found or 'it names no problem'}"
    return CheckResult(**known, score=verdict.confidence if verdict.approved else 0, found=found)


class ReviewRules(Frozen):
    """Declare what is checked after a plan, and what confidence is enough."""

    threshold: float = Field(default=0.8, gt=0, le=1)
    max_corrections: int = Field(default=2, ge=0, le=10)
    """How many corrective plans may follow before a person is asked."""
    reviewer: str = Field(default="", max_length=80, exclude_if=lambda reviewer: not reviewer)
    """The profile whose model gives a verdict of its own, as one critical check; empty: none."""
    checks: Annotated[tuple[CheckRule, ...], AfterValidator(_some), Field(validate_default=True)] = ()

    @property
    def calls(self) -> dict[int, ReviewCall]:
        """Return the calls that must be made first, by the place of their check."""
        return {place: rule.call for place, rule in enumerate(self.checks) if rule.call is not None}

    def faults(self, safety: Mapping[str, Safety]) -> list[str]:
        """Return what is wrong with the tools of custom checks, whose classes are given by name."""
        faults: list[str] = []
        for place, call in self.calls.items():
            where = f"review.checks.{place}.tool: {call.tool}"
            found = safety.get(call.tool)
            if found is None:
                faults.append(f"{where} is not a tool that the run can call; correct its name")
            elif found is not Safety.READ_ONLY:
                faults.append(f"{where} is {found.value}, and a check only reads; name a read_only tool")
        return faults


class Review(Frozen):
    """Tell how much confidence the checks give."""

    confidence: float = Field(ge=0, le=1)
    threshold: float
    checks: tuple[CheckResult, ...]

    @classmethod
    def of(cls, threshold: float, checks: Sequence[CheckResult]) -> Self:
        """Weigh the results; a critical check that has failed leaves no confidence."""
        # A model's verdict can come from what it has read, so it lowers the confidence and never lifts it.
        others = [check for check in checks if check.name != REVIEWER]
        mean = min(_mean(checks), _mean(others or checks))
        lost = any(check.critical and check.failed for check in checks)
        return cls(confidence=0 if lost else min(1.0, round(mean, 6)), threshold=threshold, checks=tuple(checks))

    @property
    def passed(self) -> bool:
        """Return whether the confidence is enough."""
        return self.confidence >= self.threshold


def _mean(checks: Sequence[CheckResult]) -> float:
    return sum(check.weight * check.score for check in checks) / sum(check.weight for check in checks)


def score_of(name: CheckName, counted: int, failed: int) -> float:
    """Return the score of a check that looked at a number of things and found a number of faults."""
    if name in _LOST:
        return max(0.0, round(1 - _LOST[name] * failed, 6))
    return round(max(0, counted - failed) / counted, 6) if counted else 0.0


def judge_answer(rule: CheckRule, answer: Any) -> tuple[bool, str]:
    """Return whether condition and range hold for the answer, and why not; hidden values do not hold."""
    conditions: list[tuple[str, Conditions]] = []
    if rule.condition is not None:
        conditions.append(("condition", rule.condition))
    if rule.range is not None:
        conditions.append(("range", rule.range.conditions))
    for field, given in conditions:
        judged, hidden = judge(given, {RESULT: answer}, widens=True)
        if hidden:
            return False, f"{field}: {hidden} is a secret or a reference, which cannot be compared"
        if judged is not Judgement.HOLDS:
            return False, f"{field}: it does not apply to the answer"
    return True, ""


class PlanWork(Frozen):
    """Name what a plan has done, for a model that gives a verdict on it."""

    name: str
    steps: tuple[str, ...]
    """What each step was, and how it ended, in a line each."""
    results: dict[int, str] = Field(default_factory=dict)
    """The stored results by step."""
