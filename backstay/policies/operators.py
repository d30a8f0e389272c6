"""What a condition may ask of one value; True, False, or None when the question does not fit the value."""

from collections.abc import Callable
from typing import Any

from backstay.canonical import canonical
from backstay.redaction.handles import MARK

_DEPTH = 8


def parse_operand(path: str, operator: Any, operand: Any) -> Any:
    """Return the operand when the operator is known and the operand fits it; raises ValueError naming the fix."""
    check = _OPERANDS.get(operator) if isinstance(operator, str) else None
    if check is None:
        raise ValueError(f"{path}: unknown operator {operator!r}; use one of {', '.join(_OPERANDS)}")
    wanted, fits = check
    if not fits(operand):
        raise ValueError(f"{path}.{operator}: {_clip(operand)} does not fit; write {wanted}")
    return operand


def compare(operator: str, value: Any, operand: Any, *, widens: bool) -> bool | None:
    """Ask one value; None says that the value is of a type the operator cannot judge."""
    match operator:
        case "equals":
            return _equals(value, operand)
        case "in":
            answers = [_equals(value, choice) for choice in operand]
            return True if True in answers else (False if False in answers else None)
        case "starts_with":
            return _starts_with(value, operand, widens=widens) if isinstance(value, str) else None
        case "ends_with":
            return value.endswith(operand) if isinstance(value, str) else None
        case "contains":
            return _contains(value, operand, widens=widens)
        case "max_items":
            return len(value) <= operand if isinstance(value, list | dict) else None
        case "max_bytes":
            size = _size(value)
            return None if size is None else size <= operand
        case _:
            return _ordered(operator, value, operand) if is_number(value) else None


def is_number(value: Any) -> bool:
    """Say whether the value is a number that can be compared: no boolean, no NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # noqa: PLR0124 - NaN


def is_opaque(value: Any) -> bool:
    """Say whether the value stands for something that is not visible here."""
    match value:
        case str():
            return MARK in value or "}" in value.partition("${")[2]
        case dict():
            return "$ref" in value
        case _:
            return False


def contains_opaque(value: Any) -> bool:
    """Say whether the value, at any depth, stands for something that is not visible here."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if is_opaque(item):
            return True
        match item:
            case dict():
                waiting.extend(item.values())
            case list():
                waiting.extend(item)
            case _:
                pass
    return False


def _ordered(operator: str, value: float, operand: float) -> bool:
    match operator:
        case "lt":
            return value < operand
        case "lte":
            return value <= operand
        case "gt":
            return value > operand
        case _:
            return value >= operand


def _equals(value: Any, operand: Any) -> bool | None:
    if operand is None:
        return value is None
    # "10000" is not 10000, but a tool may take the one for the other: the question does not fit.
    return _same(value, operand) if _kind(value) == _kind(operand) else None


def _same(value: Any, operand: Any) -> bool:
    """Compare as JSON does: 1 equals 1.0, true does not equal 1. Never deeper than the operand."""
    if _kind(value) != _kind(operand):
        return False
    match operand:
        case dict():
            return value.keys() == operand.keys() and all(_same(value[key], operand[key]) for key in operand)
        case list():
            return len(value) == len(operand) and all(map(_same, value, operand))
        case _:
            return bool(value == operand)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number" if value == value else "nan"  # noqa: PLR0124 - NaN
        case str():
            return "string"
        case list():
            return "list"
        case _:
            return "object"


def _contains(value: Any, operand: Any, *, widens: bool) -> bool | None:
    match value:
        case str():
            return operand in value if isinstance(operand, str) else None
        case list():
            if any(_same(element, operand) for element in value):
                return True
            # "everything that mentions evil.example" must also catch it inside a longer element; a licence must not.
            return not widens and isinstance(operand, str) and any(isinstance(e, str) and operand in e for e in value)
        case _:
            return None


def _starts_with(value: str, operand: str, *, widens: bool) -> bool | None:
    climbs = _climbs(value)
    if widens:
        return not climbs and value.startswith(operand)
    if "/" not in operand and "\\" not in operand:
        return value.startswith(operand)
    # A forbidden place can be reached by a detour: "/tmp/../etc", "//etc", "/./etc".
    return None if climbs else value.startswith(operand) or _straight(value).startswith(operand)


def _climbs(value: str) -> bool:
    return any(segment.strip() == ".." for segment in _segments(value))


def _straight(value: str) -> str:
    lead = "/" if value.startswith(("/", "\\")) else ""
    return lead + "/".join(segment for segment in _segments(value) if segment not in ("", "."))


def _segments(value: str) -> list[str]:
    plain = value.lower() if "%" in value else value
    for coded, sign in (("%25", "%"), ("%25", "%"), ("%2e", "."), ("%2f", "/"), ("%5c", "/"), ("\\", "/")):
        plain = plain.replace(coded, sign)
    return plain.split("/")


def _size(value: Any) -> int | None:
    try:
        text = value if isinstance(value, str) else canonical(value)
    except (ValueError, TypeError, RecursionError):
        return None
    return len(text.encode("utf-8", "surrogatepass"))


def _clip(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _is_bound(operand: Any) -> bool:
    return is_number(operand) and abs(operand) != float("inf")


def _is_count(operand: Any) -> bool:
    return isinstance(operand, int) and not isinstance(operand, bool) and operand >= 0


def _is_text(operand: Any) -> bool:
    return isinstance(operand, str) and 0 < len(operand) <= 2000


def _is_scalar(operand: Any) -> bool:
    return isinstance(operand, bool) or _is_bound(operand) or _is_text(operand)


def _is_json(operand: Any, depth: int = _DEPTH) -> bool:
    match operand:
        case None | "":
            return True
        case dict():
            inside = [*operand.values()]
            return (
                depth > 0
                and len(inside) <= 1000
                and all(isinstance(key, str) for key in operand)
                and _all_json(inside, depth)
            )
        case list():
            return depth > 0 and len(operand) <= 1000 and _all_json(operand, depth)
        case _:
            return _is_scalar(operand)


def _all_json(values: list[Any], depth: int) -> bool:
    return all(_is_json(value, depth - 1) for value in values)


def _is_choice(operand: Any) -> bool:
    return isinstance(operand, list) and bool(operand) and _is_json(operand)


_OPERANDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "equals": ("a JSON value", _is_json),
    "in": ("a list of at least one and at most 1000 JSON values", _is_choice),
    "starts_with": ("a text that is not empty", _is_text),
    "ends_with": ("a text that is not empty", _is_text),
    "contains": ("a text that is not empty, a number or a boolean", _is_scalar),
    "lt": ("a number", _is_bound),
    "lte": ("a number", _is_bound),
    "gt": ("a number", _is_bound),
    "gte": ("a number", _is_bound),
    "max_items": ("a whole number of at least 0", _is_count),
    "max_bytes": ("a whole number of at least 0", _is_count),
}
