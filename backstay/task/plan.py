"""Plans: steps that run in order without a model, and may refer to the input and to earlier results."""

from datetime import datetime
from typing import Any

from pydantic import Field

from backstay.errors import ArgumentsInvalid
from backstay.frozen import Frozen
from backstay.tools.tool import Safety


def references_in(value: Any) -> list[str]:
    """Return every reference in a JSON value, in order, without `${` and `}`."""
    match value:
        case str():
            return [part for is_reference, part in _split(value) if is_reference]
        case dict():
            return [found for item in value.values() for found in references_in(item)]
        case list():
            return [found for item in value for found in references_in(item)]
        case _:
            return []


def resolve(value: Any, scope: dict[str, Any]) -> Any:
    """Replace references by what they name in `scope`; others are left alone when their root is absent.

    A string that is exactly one reference becomes the value itself. Raises ArgumentsInvalid when a path leads nowhere.
    """
    match value:
        case str():
            parts = _split(value)
            if len(parts) == 1 and parts[0][0]:
                return _look_up(parts[0][1], scope)
            return "".join(str(_look_up(part, scope)) if is_reference else part for is_reference, part in parts)
        case dict():
            return {key: resolve(item, scope) for key, item in value.items()}
        case list():
            return [resolve(item, scope) for item in value]
        case _:
            return value


def _split(text: str) -> list[tuple[bool, str]]:
    parts: list[tuple[bool, str]] = []
    rest = text
    while True:
        before, opened, after = rest.partition("${")
        inner, closed, remainder = after.partition("}")
        if not opened or not closed:
            return [*parts, (False, rest)] if rest or not parts else parts
        if before:
            parts.append((False, before))
        parts.append((True, inner.strip()))
        rest = remainder
        if not rest:
            return parts


def _look_up(path: str, scope: dict[str, Any]) -> Any:
    keys = path.split(".")
    if keys[0] not in scope:
        return "${" + path + "}"
    found: Any = scope
    for key in keys:
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and len(key) < 10 and int(key) < len(found):
            found = found[int(key)]
        else:
            raise ArgumentsInvalid(f"${{{path}}} leads nowhere at {key!r}; check the earlier result or the input")
    return found


class PlanStep(Frozen):
    """One call of a plan."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Strings may hold `${input.x}` and `${steps.0.result.id}`; a lone reference keeps the value's type."""
    summary: str = ""
    safety: Safety | None = None
    """May only raise the tool's own safety."""
    transactional: bool = False
    """Refuse the plan when the tool declares no compensation."""
    timeout_s: float = Field(default=30, gt=0, le=600)
    continue_on_failure: bool = False


class Plan(Frozen):
    """Steps that run in order without a model."""

    id: str = "plan"
    title: str = ""
    author: str = ""
    summary: str = ""
    created_at: datetime | None = None
    dry_run: bool = False
    steps: tuple[PlanStep, ...] = Field(min_length=1, max_length=20)
    metadata: dict[str, Any] = Field(default_factory=dict)
    parent: str | None = None
    version: int = 1
