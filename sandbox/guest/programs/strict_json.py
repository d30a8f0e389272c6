"""JSON as it leaves the jail: strict, and with an error that names what is not JSON."""

from json import JSONEncoder
from typing import Any

_ENCODE = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_NAMES = "str, int, float, bool, None, list or dict"
_MOST_DEPTH = 90


def encode(value: Any, what: str) -> str:
    """Return the JSON text of a value.

    Raises TypeError or ValueError that names what is not JSON and where it stands.
    """
    try:
        text = _ENCODE(value)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        fault = _fault(value, what, 0)
        raise fault or type(error)(f"{what} is not JSON: {error}") from None
    return text


def _fault(value: Any, where: str, depth: int) -> Exception | None:
    """Return what is wrong with the first part that is not JSON."""
    match value:
        case None | bool() | int():
            return None
        case str():
            return _fault_of_text(value, where)
        case float():
            nan = value != value or value in (float("inf"), float("-inf"))  # noqa: PLR0124 - only NaN differs from itself
            return ValueError(f"{where} is {value}, which is not JSON; use None or a number") if nan else None
        case list() | tuple() | dict() if depth > _MOST_DEPTH:
            return ValueError(f"{where} is nested too deeply, or contains itself")
        case list() | tuple():
            parts = ((f"{where}[{place}]", part) for place, part in enumerate(value))
        case dict():
            for key in value:
                if not isinstance(key, str | int | float | bool | None):
                    return TypeError(f"{where} has a key of type {type(key).__name__}, which is not JSON; use a str")
            parts = ((f"{where}[{key!r}]", part) for key, part in value.items())
        case _:
            return TypeError(f"{where} is of type {type(value).__name__}, which is not JSON; make it {_NAMES}")
    return next((fault for name, part in parts if (fault := _fault(part, name, depth + 1))), None)


def _fault_of_text(text: str, where: str) -> Exception | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return ValueError(f"{where} holds lone surrogates, which are not text; remove them")
    return None
