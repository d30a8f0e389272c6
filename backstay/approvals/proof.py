"""Prove who decided: what a gateway signs and what the worker checks."""

import hashlib
import hmac
from typing import Any

from backstay.approvals.approval import ApprovalRequest
from backstay.authority import with_principals
from backstay.canonical import canonical
from backstay.frozen import Frozen

LONGEST_LIFE = 24 * 3600
"""Seconds a proof may be valid for at most, so that a stolen one is soon worth nothing."""
START = "start"
"""The update name in the proof of who starts a run."""
UNDO_RUN = "UndoRun"
"""The update name in the proof of who has an ended run undone."""
KEEP = "keep"
"""The update name in the proof of who adds a schedule or a trigger."""
REVEAL = "reveal"
"""The update name in the proof of who is shown a secret; no update of a run, since history must not hold the answer."""

_FORMAT = "2"
_MOST_DIGITS = 12
_NONCE_DIGITS = 32
_HEX = frozenset("0123456789abcdef")


class ShownRequest(Frozen):
    """Name a request as it was shown to a person; a decision holds for nothing else."""

    run_id: str = ""
    """The run id of the first execution."""
    digest: str = ""
    """The digest of the request."""
    args_digest: str = ""

    @classmethod
    def of(cls, request: ApprovalRequest) -> "ShownRequest":
        """Return the name of a request that is being shown."""
        return cls(run_id=request.run_id, digest=request.digest, args_digest=request.args_digest)


class Binding(Frozen):
    """Name the one thing that a proof is good for."""

    namespace: str
    workflow_id: str
    run_id: str
    """The run id of the first execution; empty for the start of a run."""
    update: str
    request_id: str = ""
    """Empty where no request is decided."""
    digest: str = ""
    """The digest of the request as it was shown; empty where there is none."""


def message(binding: Binding, expires: int, nonce: str, payload_without_proof: dict[str, Any]) -> bytes:
    """Return the bytes that are signed: a canonical JSON list of the binding's fields, expiry, nonce and payload.

    The list is `[namespace, workflow_id, run_id, update, request_id, digest, expires, nonce, payload]`. Raises
    ValueError when the payload is no JSON.
    """
    said = [*(value for _, value in binding), expires, nonce, payload_without_proof]
    return canonical(said).encode("utf-8", "surrogatepass")


def sign(key: bytes, binding: Binding, expires: int, payload: dict[str, Any], nonce: str) -> str:
    """Return the proof `2.<unix expiry>.<nonce>.<hex HMAC-SHA256>` for a payload; its `proof` field is left out.

    `by` is signed in its canonical form. `nonce`: 32 random hexadecimal digits, new for every proof.
    """
    return f"{_FORMAT}.{expires}.{nonce}.{_mac(key, binding, expires, nonce, with_principals(payload))}"


def verify(key: bytes, proof: str | None, binding: Binding, payload: dict[str, Any], now: float) -> str | None:
    """Return None when the proof holds, else why not: malformed, expired, lifetime over 24 h, or wrong.

    It holds for the payload as it was sent, and for the same one with `by` in its canonical form.
    """
    parts = (proof or "").split(".")
    if len(parts) != 4 or parts[0] != _FORMAT or not _is_number(parts[1]):
        return "malformed"
    _, expiry, nonce, mac = parts
    if not _is_hex(nonce, _NONCE_DIGITS) or not _is_hex(mac, hashlib.sha256().digest_size * 2):
        return "malformed"
    expires = int(expiry)
    if expires <= now:
        return "expired"
    if expires - now > LONGEST_LIFE:
        return "lifetime over 24 h"
    try:
        signed = (payload, with_principals(payload))
        expected = [_mac(key, binding, expires, nonce, given) for given in signed]
    except (ValueError, TypeError, RecursionError):
        return "malformed"
    return None if any(hmac.compare_digest(made, mac) for made in expected) else "wrong"


def nonce_of(proof: str) -> tuple[str, int]:
    """Return the nonce of a proof that holds, and when it expires in unix seconds."""
    _, expiry, nonce, _ = proof.split(".")
    return nonce, int(expiry)


def _mac(key: bytes, binding: Binding, expires: int, nonce: str, payload: dict[str, Any]) -> str:
    if not key:
        raise ValueError("the approver key is empty; set BACKSTAY_APPROVER_KEY")
    unproven = {name: value for name, value in payload.items() if name != "proof"}
    return hmac.new(key, message(binding, expires, nonce, unproven), hashlib.sha256).hexdigest()


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


def _is_hex(text: str, digits: int) -> bool:
    return len(text) == digits and _HEX.issuperset(text)
