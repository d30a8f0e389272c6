"""Prove who decided: what a gateway signs and what the worker checks."""

import hashlib
import hmac
from typing import Any

from backstay.canonical import canonical

LONGEST_LIFE = 24 * 3600
"""Seconds a proof may be valid for at most, so that a stolen one is soon worth nothing."""

_MOST_DIGITS = 12
_HEX = frozenset("0123456789abcdef")


def message(workflow_id: str, update: str, expires: int, payload_without_proof: dict[str, Any]) -> bytes:
    """Return the bytes that are signed: the canonical JSON of `[workflow_id, update, expires, payload]`.

    Raises ValueError when the payload is no JSON.
    """
    return canonical([workflow_id, update, expires, payload_without_proof]).encode("utf-8", "surrogatepass")


def sign(key: bytes, workflow_id: str, update: str, expires: int, payload: dict[str, Any]) -> str:
    """Return the proof `<unix expiry>.<hex HMAC-SHA256>` for a payload; its own `proof` field is left out."""
    return f"{expires}.{_mac(key, workflow_id, update, expires, payload)}"


def verify(  # noqa: PLR0917 - the order of `sign`, with what is to be judged first
    key: bytes, proof: str | None, workflow_id: str, update: str, payload: dict[str, Any], now: float
) -> str | None:
    """Return None when the proof holds, else why not: malformed, expired, lifetime over 24 h, or wrong."""
    expiry, dot, mac = (proof or "").partition(".")
    if not dot or not expiry.isascii() or not expiry.isdecimal() or len(expiry) > _MOST_DIGITS:
        return "malformed"
    if len(mac) != hashlib.sha256().digest_size * 2 or not _HEX.issuperset(mac):
        return "malformed"
    expires = int(expiry)
    if expires <= now:
        return "expired"
    if expires - now > LONGEST_LIFE:
        return "lifetime over 24 h"
    try:
        expected = _mac(key, workflow_id, update, expires, payload)
    except (ValueError, TypeError, RecursionError):
        return "malformed"
    return None if hmac.compare_digest(expected, mac) else "wrong"


def _mac(key: bytes, workflow_id: str, update: str, expires: int, payload: dict[str, Any]) -> str:
    if not key:
        raise ValueError("the approver key is empty; set BACKSTAY_APPROVER_KEY")
    unproven = {name: value for name, value in payload.items() if name != "proof"}
    return hmac.new(key, message(workflow_id, update, expires, unproven), hashlib.sha256).hexdigest()
