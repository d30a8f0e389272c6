"""Prove what is sent to a run, and send it again in an outage, or while the run continues as a new execution."""

import asyncio
import secrets
import time
import uuid
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, TypeVar

from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError
from temporalio.service import RPCError, RPCStatusCode

from backstay.approvals import proof
from backstay.canonical import digest_of
from backstay.client.executions import ANSWERED_WITHIN
from backstay.client.failures import TRANSIENT_STATUSES, error_from_rpc
from backstay.errors import RunContinuing, SettingsInvalid, Unreachable

Answer = TypeVar("Answer")
POLL_S = 0.3
CONTINUING_S = 30.0
"""How long an update or a query is sent again while the run continues as a new execution."""
OUTAGE_S = 60.0
"""How long an outage of Temporal may last before a client gives up; the run itself does not."""
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


async def update_id(run: WorkflowHandle[Any, Any], name: str, payload: dict[str, Any]) -> str:
    """Return the id of an update: the same one for the very same of one event, until that has failed.

    Temporal answers an id that it knows with the first outcome, whatever was sent with it, and by whom; but the cause
    of a failure may be gone. Waits for the outcome of one that is under way; raises RPCError.
    """
    if not payload.get("event_id"):
        return str(uuid.uuid4())
    named = digest_of([name, {field: value for field, value in payload.items() if field != "proof"}])
    failures = count(1)
    found = named
    while await _has_failed(run, found):
        found = f"{named}-{next(failures)}"
    return found


async def _has_failed(run: WorkflowHandle[Any, Any], known: str) -> bool:
    try:
        await run.get_update_handle(known).result(rpc_timeout=ANSWERED_WITHIN)
    except WorkflowUpdateFailedError:
        return True
    except RPCError as error:
        # An update that its validator refused is not known either.
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
    return False


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


async def through_outages(workflow_id: str, ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Ask again during an outage; raises Unreachable when it lasts too long."""
    failing_since: float | None = None
    while True:
        began = time.monotonic()
        try:
            return await ask()
        except RPCError as error:
            failure = error_from_rpc(error, workflow_id)
            if error.status not in TRANSIENT_STATUSES:
                raise failure from None
        except Unreachable as error:
            failure = error
        # A request that waited long before it failed shows that an earlier outage was over.
        if failing_since is None or time.monotonic() - began > OUTAGE_S:
            failing_since = time.monotonic()
        if time.monotonic() - failing_since > OUTAGE_S:
            raise failure
        await asyncio.sleep(POLL_S)
