"""Plans: steps that run in order without a model, and may refer to the input and to earlier results."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from backstay.bounds import ARGUMENTS, DEEPEST, REFERENCES, STEPS, size_of
from backstay.canonical import deeper_than, digest_of, texts_of, with_texts
from backstay.errors import ArgumentsInvalid
from backstay.frozen import PublicInput
from backstay.shown import one_line
from backstay.stored_texts import escape_stored
from backstay.tools.tool import Safety, WorkspaceLimits


def _signs(text: str) -> Iterator[tuple[int, int]]:
    """Yield where dollar signs begin that stand right before a brace, and how many they are, in linear time."""
    end = 0
    while (at := text.find("${", end)) >= 0:
        signs = at + 1 - end - len(text[end : at + 1].rstrip("$"))
        yield at + 1 - signs, signs
        end = at + 2


class _Part(NamedTuple):
    """Hold a piece of a string as a plan writes it: what a reference names, or text that stands for itself."""

    is_reference: bool
    text: str


def _parts(text: str) -> list[_Part]:
    """Take a string apart in linear time; a string without any reference is one part."""
    return [*_parts_of(text)] or [_Part(False, text)]


def _parts_of(text: str) -> Iterator[_Part]:
    """Yield the parts of a string: `${` begins a reference, and `$${` stands for `${` itself.

    Of the dollar signs right before a brace each pair stands for one, so that `$$${input.x}` is a dollar sign and a
    reference.
    """
    plain, end, last = "", 0, text.rfind("}")
    for begin, signs in _signs(text):
        if begin < end:
            # It stands within the name of a reference.
            continue
        plain += text[end:begin] + "$" * (signs // 2)
        end = begin + signs + 1
        closed = text.find("}", end) if signs % 2 and end <= last else -1
        if closed < 0:
            plain += "${" if signs % 2 else "{"
            continue
        if plain:
            yield _Part(False, plain)
        yield _Part(True, text[end:closed].strip())
        plain, end = "", closed + 1
    if plain := plain + text[end:]:
        yield _Part(False, plain)


def _written(parts: Iterable[_Part]) -> str:
    """Return the text that says exactly these parts."""
    said: list[str] = []
    plain = ""
    for part in parts:
        if part.is_reference:
            said += [_escaped(plain, before_reference=True), f"${{{part.text}}}"]
            plain = ""
        else:
            plain += part.text
    return "".join([*said, _escaped(plain)])


def _escaped(text: str, *, before_reference: bool = False) -> str:
    said: list[str] = []
    end = 0
    for begin, signs in _signs(text):
        said += [text[end:begin], "$" * signs]
        end = begin
    said.append(text[end:])
    return "".join(said) + ("$" * (len(text) - len(text.rstrip("$"))) if before_reference else "")


def as_data(value: Any) -> Any:
    """Return a JSON value as a plan writes it where nothing in it is a reference."""
    return with_texts(value, _escaped)


def references_in(value: Any) -> list[str]:
    """Return every reference in a JSON value, in order, without `${` and `}`."""
    return [*_references(value)]


def has_references(value: Any) -> bool:
    """Return whether a JSON value holds a reference; looks no further than the first one."""
    return next(_references(value), None) is not None


def _references(value: Any) -> Iterator[str]:
    for text in texts_of(value):
        if "${" in text:
            yield from (part.text for part in _parts_of(text) if part.is_reference)


def is_reference(value: Any) -> bool:
    """Return whether a value is a string that is one reference and nothing else."""
    return isinstance(value, str) and "${" in value and _is_reference(_parts(value))


def holds_notation(value: Any) -> bool:
    """Return whether a step with these arguments is sent other ones: they refer, or write `$${` for `${`."""
    return any("${" in text for text in texts_of(value))


def refuse_many_references(value: Any) -> None:
    """Raise ArgumentsInvalid for more references than anybody could look through."""
    # Counting ends there: this runs in workflows, which may not compute for long.
    if next(islice(_references(value), REFERENCES, None), None) is not None:
        raise ArgumentsInvalid(f"there are more than the {REFERENCES:,} references ${{...}} allowed; use fewer")


Missing = Callable[[str], Any]
"""Returns what stands for a path that leads nowhere, or None where nothing does."""


def resolve(value: Any, scope: dict[str, Any], missing: Missing = lambda _: None) -> Any:
    """Return what a plan's arguments say: references are replaced by what they name in `scope`, `$${` by `${`.

    The values that they name are data, in which nothing is read as a reference. A string that is exactly one reference
    becomes the value itself. Raises ArgumentsInvalid when a path leads nowhere, and nothing stands for what is
    `missing` there, and when the result would be larger or deeper than arguments may be.
    """
    refuse_many_references(value)
    return _Filling(scope, missing).filled(value)


def fill_in(value: Any, given: dict[str, Any]) -> Any:
    """Return a plan's arguments, still as a plan writes them, with what they name of the input in place.

    References to other things stay. Raises as `resolve`.
    """
    refuse_many_references(value)
    return _Filling({"input": given}, lambda _: None, partly=True).filled(value)


def refuse_large_steps(arguments: Sequence[dict[str, Any]], given: dict[str, Any]) -> None:
    """Raise ArgumentsInvalid for the arguments of steps that would be too large with what they name of the input.

    Nothing is joined for that. References that lead nowhere count nothing: they are refused where they are filled in.
    """
    try:
        refuse_many_references(list(arguments))
    except ArgumentsInvalid as error:
        raise ArgumentsInvalid(f"steps: {error}") from None
    filling, left = _Filling({"input": given}, lambda _: ""), STEPS
    for index, held in enumerate(arguments):
        if not has_references(held):
            continue
        try:
            left -= filling.size(held)
        except ArgumentsInvalid as error:
            raise ArgumentsInvalid(f"steps.{index}.{error}") from None
        if left < 0:
            raise ArgumentsInvalid(
                f"steps.{index}.arguments: larger than {STEPS:,} bytes with what the steps up to this one name of the "
                "input; refer to less, or let tools read it from a file"
            )


class _Filling:
    """Look up what references name, and measure it before anything is joined; each is measured once."""

    def __init__(self, scope: dict[str, Any], missing: Missing, *, partly: bool = False) -> None:
        self._scope, self._missing, self._partly = scope, missing, partly
        self._known: dict[str, Any] = {}
        self._sizes: dict[tuple[str, bool], int] = {}

    def size(self, value: Any) -> int:
        """Return the bytes that a value has with what it names; raises ArgumentsInvalid where they are too many."""
        size = size_of(value)
        for text in texts_of(value):
            parts = _parts(text) if "${" in text else []
            whole = _is_reference(parts)
            for path in (part.text for part in parts if part.is_reference):
                size += self._size_of(path, whole=whole)
                if size > ARGUMENTS:
                    raise ArgumentsInvalid(
                        f"arguments: larger than {ARGUMENTS:,} bytes with what ${{{one_line(path, 80)}}} names; "
                        "refer to less, or let tools read it from a file"
                    )
        return size

    def filled(self, value: Any) -> Any:
        """Return a value with what it names."""
        self.size(value)
        filled = with_texts(value, self._resolved)
        if deeper_than(filled, DEEPEST):
            raise ArgumentsInvalid(f"arguments: nested deeper than {DEEPEST} levels with what they name; flatten it")
        return filled

    def _resolved(self, text: str) -> Any:
        if "${" not in text:
            return text
        parts = _parts(text)
        if _is_reference(parts) and self._knows(parts[0].text):
            named = self._named(parts[0].text)
            return escape_stored(as_data(named)) if self._partly else named
        if not self._partly:
            return "".join(str(self._named(part.text)) if part.is_reference else part.text for part in parts)
        known = (part if not part.is_reference or not self._knows(part.text) else self._as_text(part) for part in parts)
        return _written(known)

    def _knows(self, path: str) -> bool:
        return path.partition(".")[0] in self._scope

    def _as_text(self, part: _Part) -> _Part:
        return _Part(False, str(self._named(part.text)))

    def _named(self, path: str) -> Any:
        if path not in self._known:
            self._known[path] = _look_up(path, self._scope, self._missing)
        return self._known[path]

    def _size_of(self, path: str, *, whole: bool) -> int:
        if (path, whole) not in self._sizes:
            named = self._named(path)
            # Within a string stands what Python writes, which may be longer than JSON.
            self._sizes[path, whole] = size_of(named if whole else str(named))
        return self._sizes[path, whole]


def _is_reference(parts: Sequence[_Part]) -> bool:
    return len(parts) == 1 and parts[0].is_reference


def _look_up(path: str, scope: dict[str, Any], missing: Missing) -> Any:
    keys = path.split(".")
    if keys[0] not in scope:
        return "${" + path + "}"
    found: Any = scope
    for key in keys:
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and len(key) < 10 and int(key) < len(found):
            found = found[int(key)]
        elif (instead := missing(path)) is not None:
            return instead
        else:
            raise ArgumentsInvalid(f"${{{path}}} leads nowhere at {key!r}; check the earlier result or the input")
    return found


USUAL_STEP_S = 30
"""How many seconds the call of a step may take where neither plan nor operator says anything else."""


class PlanStep(PublicInput):
    """One call of a plan."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Strings may hold `${input.x}` and `${steps.0.result.id}`; a lone reference keeps the value's type.

    `$${` stands for `${` itself; the value of a reference is data, in which nothing is read as a reference.
    """
    summary: str = ""
    safety: Safety | None = None
    """May only raise the tool's own safety."""
    transactional: bool | Annotated[str, Field(min_length=1, max_length=100)] = False
    """Refuse the plan when the tool declares no compensation. Steps of a group, which is named, are undone together."""
    timeout_s: float | None = Field(default=None, gt=0, le=600)
    """How long its call may take; what a plan leaves out, the engine fills in as the operator says."""
    retries: int = Field(default=0, ge=0, le=10)
    """How often a read, or a write of a tool that is declared idempotent, is made again after it failed."""
    continue_on_failure: bool = False
    limits: WorkspaceLimits | None = Field(default=None, exclude_if=lambda limits: limits is None)
    """What a call in the workspace may use of its jail, when that is less than usual."""

    @property
    def seconds(self) -> float:
        """Return how long its call may take."""
        return USUAL_STEP_S if self.timeout_s is None else self.timeout_s

    @property
    def group(self) -> str:
        """Return the name of the group that is undone together; empty when it belongs to none."""
        return self.transactional if isinstance(self.transactional, str) else ""

    @property
    def undoable(self) -> bool:
        """Return whether the plan is refused when this step cannot be undone."""
        return bool(self.transactional)


MOST_STEPS = 1000


class Plan(PublicInput):
    """Steps that run in order without a model."""

    id: str = Field(default="plan", min_length=1, max_length=100)
    title: str = ""
    author: str = ""
    summary: str = ""
    created_at: datetime | None = None
    dry_run: bool = False
    steps: tuple[PlanStep, ...] = Field(min_length=1, max_length=MOST_STEPS)
    """The operator's setting `max_steps_per_plan` allows fewer."""
    continue_on_failure: bool = False
    """Whether a step that fails ends nothing but itself and what needs its result."""
    allowed_side_effects: tuple[str, ...] = ()
    """Globs of the tools whose writes go on after a failure, where the plan as a whole goes on; reads always do."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    parent: str | None = None
    version: int = 1
    hash: str = ""
    """Set by the engine: what approvals bind to."""
    state: str = ""
    """Set by the engine where it shows a plan."""

    @property
    def digest(self) -> str:
        """Return the sha256 over everything that an approval binds to."""
        return digest_of(self.model_dump(mode="json", exclude={"hash", "state", "created_at"}))

    @property
    def untimed(self) -> tuple[int, ...]:
        """Return the steps that say nothing of how long they may take."""
        return tuple(index for index, step in enumerate(self.steps) if step.timeout_s is None)

    @property
    def words(self) -> dict[str, Any]:
        """Return its words for people, apart from what it does."""
        said = {"title": self.title, "summary": self.summary, "author": self.author, "metadata": self.metadata}
        return said | {"steps": [step.summary for step in self.steps]}

    def in_words(self, words: dict[str, Any]) -> "Plan":
        """Return the plan with these words in place of its own."""
        pairs = zip(self.steps, words["steps"], strict=True)
        steps = tuple(step.model_copy(update={"summary": said}) for step, said in pairs)
        return self.model_copy(update=words | {"steps": steps})

    def with_usual(self, timeout_s: float) -> "Plan":
        """Return the plan with this time at each step that has none."""
        steps = (s if s.timeout_s is not None else s.model_copy(update={"timeout_s": timeout_s}) for s in self.steps)
        return self.model_copy(update={"steps": tuple(steps)})

    def may_fail(self, index: int) -> bool:
        """Return whether the plan goes on when that step fails."""
        return self.continue_on_failure or self.steps[index].continue_on_failure


def step_named(index: int, path: str) -> int:
    """Return the step that a reference in step `index` names; raises ArgumentsInvalid unless it is an earlier one."""
    parts = path.split(".")
    if (
        parts[0] != "steps"
        or len(parts) < 3
        or parts[2] != "result"
        or not (parts[1].isdecimal() and len(parts[1]) < 10)
    ):
        raise ArgumentsInvalid(
            f"plan.steps.{index}: ${{{one_line(path, 80)}}} is not a reference; write ${{input.x}} or "
            "${steps.0.result.x}, and $${ for the text ${ itself"
        )
    if int(parts[1]) >= index:
        raise ArgumentsInvalid(f"plan.steps.{index}: ${{{path}}} refers to a step that has not run by then")
    return int(parts[1])


def steps_named(index: int, *arguments: dict[str, Any]) -> tuple[int, ...]:
    """Return the numbers of the steps whose results the arguments of step `index` refer to, in order."""
    named = (path for given in arguments for path in references_in(given) if not path.startswith("input."))
    return tuple(sorted({step_named(index, path) for path in named}))
