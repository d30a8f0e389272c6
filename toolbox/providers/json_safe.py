"""Turn values from outside into values that canonical JSON can hold."""

import math
from typing import Any


def json_safe(value: Any) -> Any:
    """Return the value with infinities and NaN as text, and lone surrogates replaced."""
    match value:
        case dict():
            return {json_safe(key): json_safe(item) for key, item in value.items()}
        case list():
            return [json_safe(item) for item in value]
        case float() if not math.isfinite(value):
            return str(value)
        case str() if not value.isascii():
            return value.encode("utf-8", "replace").decode("utf-8")
        case _:
            return value


def as_written(value: Any) -> Any:
    """Return a number, or true or false, as the text that is written for it; any other value as it is."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case _:
            return value
