"""Have requests decided by the room that knows how: what a person entered at the terminal is read there."""

from typing import Any

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.proof import ShownRequest
from backstay.canonical import read_json
from backstay.client import Run
from backstay.rooms import room


def form_of(request: ApprovalRequest | None) -> Any:
    """Return what a person can enter about a request."""
    return room("people.requests.form").DecisionForm.of(request)


async def decided(run: Run, request: ApprovalRequest, by: str, choice: str, **entered: Any) -> dict[str, Any]:
    """Decide a request with what a person entered who was shown it; raises DecisionRefused or NotVerified.

    `entered` are fields of `Entered`, which says what each of them is.
    """
    return await _sent(run, request.id, request, by, _said(request, choice, entered))


async def decided_by_name(
    run: Run, request_id: str, by: str, args_digest: str | None, choice: str, **entered: Any
) -> dict[str, Any]:
    """Decide a request that a person names, as `decided` does; `args_digest` says which arguments they have seen."""
    request = next((request for request in await run.pending() if request.id == request_id), None)
    said = {**_said(request, choice, entered), "args_digest": args_digest}
    return await _sent(run, request_id, request, by, said)


def _said(request: ApprovalRequest | None, choice: str, entered: dict[str, Any]) -> dict[str, Any]:
    said = room("people.requests.entered").Entered(choice, **entered)
    return room("people.requests.form").decision_of(form_of(request), said)


async def _sent(
    run: Run, request_id: str, request: ApprovalRequest | None, by: str, said: dict[str, Any]
) -> dict[str, Any]:
    known = room("people.decide.looking").KnownRequest(run.id, request_id, None, request)
    return await room("people.decide.deciding").decide(run, known, said, by=by, shown=ShownRequest())


def json_or_text(typed: str) -> Any:
    """Return the value of valid JSON, and anything else as text."""
    try:
        return read_json(typed)
    except ValueError:
        return typed
