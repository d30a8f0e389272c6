"""Write JSON in exactly one way, so that equal values have equal digests."""

import hashlib
import json
from typing import Any

_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(value: Any) -> str:
    """Return the canonical JSON text: sorted keys, no spaces, real characters, no NaN."""
    return _WRITER.encode(value)


def longer_than(value: Any, characters: int) -> bool:
    """Return whether the canonical JSON text is longer, and write no more of it than that takes."""
    written = 0
    for part in _WRITER.iterencode(value):
        written += len(part)
        if written > characters:
            return True
    return False


def deeper_than(value: Any, levels: int) -> bool:
    """Return whether JSON is nested deeper; nothing can exhaust the stack."""
    level: list[Any] = [value]
    for _ in range(levels):
        level = [
            item
            for value in level
            for item in (value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
        ]
        if not level:
            return False
    return True


def digest_of(value: Any) -> str:
    """Return the sha256 of the canonical JSON as 64 hex digits."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()
