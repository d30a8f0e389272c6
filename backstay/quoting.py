"""Quote what was refused, so far as it can hold no secret: a refusal is kept in history and logs."""

import json
from typing import Any

_LONGEST = 60
_LONGEST_WORD = 11
"""Of letters and digits together; a longer one may be a token or a password."""
_LONGEST_NAME = 80
_TELLING = ("auth", "cookie", "cred", "key", "pass", "pin", "proof", "secret", "token")
"""A name that holds one of these may be that of a secret."""


def quoted(value: Any, name: str = "") -> str:
    """Return the refused value of a field in quotes, or only what kind of value it is."""
    telling = any(word in name.lower() for word in _TELLING)
    match value:
        case bool() | None | int() | float() if len(repr(value)) <= _LONGEST_WORD and not telling:
            return repr(value)
        case str() if len(value) <= _LONGEST and not telling and not _may_hold_a_secret(value):
            return repr(value)
        case str():
            return f"text of {len(value):,} characters"
        case dict():
            return f"an object with {len(value):,} fields"
        case list() | tuple():
            return f"a list with {len(value):,} entries"
        case int() | float():
            return "a number"
        case _:
            text = repr(value)
            safe = len(text) <= _LONGEST and not _may_hold_a_secret(text)
            return text if safe else f"a value of type {type(value).__name__}"


def named(name: Any) -> str:
    """Return the name of a field that does not exist, or that it looks like a secret."""
    text = str(name)
    text = text if text.isprintable() else json.dumps(text)[1:-1]
    if _may_hold_a_secret(text):
        return f"(a name of {len(text):,} characters)"
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 3]}..."


def _may_hold_a_secret(text: str) -> bool:
    words = "".join(sign if sign.isalnum() or sign in "_-+/=" else " " for sign in text).split()
    return any(len(word) > _LONGEST_WORD and any(map(str.isdecimal, word)) for word in words)
