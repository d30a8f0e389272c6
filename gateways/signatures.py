"""The one form in which requests between programs are signed: what we send, and what we are sent."""

import hashlib
import hmac
import time
from collections.abc import Mapping

STAMP = "backstay-timestamp"
SIGNATURE = "backstay-signature"
ID = "backstay-id"
OLDEST_S = 300.0
"""How far the clock of a sender may be from ours, and how long its request may be under way."""


def signature(key: bytes, stamp: str, body: bytes) -> str:
    """Return the hex HMAC-SHA256 of the timestamp, a dot and the body."""
    return hmac.new(key, f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()


def is_signed(key: bytes, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether a request has just been signed with this key."""
    stamp = headers.get(STAMP, "")
    if not stamp.isascii() or not stamp.isdecimal() or abs(time.time() - int(stamp[:15])) > OLDEST_S:
        return False
    given = headers.get(SIGNATURE, "").encode("utf-8", "replace")
    return hmac.compare_digest(signature(key, stamp, body).encode(), given)
