"""Prove what is sent to a run, and send it again while the run continues as a new execution."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from backstay.approvals import proof
from backstay.errors import RunContinuing, SettingsInvalid

Answer = TypeVar("Answer")
POLL_S = 0.3
CONTINUING_S = 30.0
"""How long an update or a query is sent again while the run continues as a new execution."""
PROOF_S = 300
"""How long a signed decision is valid."""


def signed(
    key: bytes | None, binding: proof.Binding, payload: dict[str, Any], *, life_s: float = PROOF_S
) -> dict[str, Any]:
    """Return a payload with a proof for one thing, valid from now on for the given seconds.

    Raises SettingsInvalid without a key.
    """
    if key is None:
        raise SettingsInvalid("BACKSTAY_APPROVER_KEY: required to sign; set it to the key of the workers")
    made = proof.sign(key, binding, int(time.time() + life_s), payload, secrets.token_hex(16))
    return {**payload, "proof": made}


async def repeated_while_continuing(send: Callable[[], Awaitable[Answer]]) -> Answer:
    """Send an update or a query again while the run continues as a new execution."""
    until = time.monotonic() + CONTINUING_S
    while True:
        try:
            return await send()
        except RunContinuing:
            if time.monotonic() > until:
                raise
        await asyncio.sleep(POLL_S)
