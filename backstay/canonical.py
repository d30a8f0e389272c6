"""Write JSON in exactly one way, so that equal values have equal digests."""

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """Return the canonical JSON text: sorted keys, no spaces, real characters, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_of(value: Any) -> str:
    """Return the sha256 of the canonical JSON as 64 hex digits."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()
