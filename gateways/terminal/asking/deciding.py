"""Have requests decided by the room that knows how: what a person entered at the terminal is read there."""

from collections.abc import Sequence
from typing import Any

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.deciding import DecisionInvalid
from backstay.approvals.proof import ShownRequest
from backstay.canonical import read_json
from backstay.client import Run
from backstay.shown import one_line, shell_words


def form_of(request: ApprovalRequest | None) -> Any:
    """Return what a person can enter about a request."""
    from people.requests.form import DecisionForm

    return DecisionForm.of(request)


async def decided(run: Run, request: ApprovalRequest, by: str, choice: str, **entered: Any) -> dict[str, Any]:
    """Decide a request with what a person entered who was shown it; raises DecisionRefused or NotVerified.

    `entered` are fields of `Entered`, which says what each of them is.
    """
    return await _sent(run, request.id, request, by, _said(request, choice, entered))


async def decided_by_name(
    run: Run, request_id: str, by: str, args_digest: str | None, choice: str, **entered: Any
) -> dict[str, Any]:
    """Decide a request that a person names, as `decided` does; `args_digest` says which arguments they have seen.

    Raises DecisionInvalid for a digest that is none of this request.
    """
    waiting = await run.pending()
    request = next((request for request in waiting if request.id == request_id), None)
    if request is not None and args_digest not in {None, request.args_digest}:
        raise DecisionInvalid(_other_digest(run.id, request, args_digest or "", waiting))
    said = {**_said(request, choice, entered), "args_digest": args_digest}
    return await _sent(run, request_id, request, by, said)


def _other_digest(run: str, request: ApprovalRequest, given: str, waiting: Sequence[ApprovalRequest]) -> str:
    """Say what is wrong with a digest that was printed for something else."""
    look = f"look at it with: backstay show {shell_words(run)} {shell_words(request.id)}"
    if given and request.args_digest.startswith(given):
        return f"--args-digest: it is cut; give all {len(request.args_digest)} characters"
    same = next((other.id for other in waiting if other.args_digest == given), None)
    if same is not None:
        return f"--args-digest: it is that of {same}, and not of {request.id}; {look}"
    what = "asks about no arguments; leave it out, or" if not request.args_digest else "is about other arguments;"
    return f"--args-digest: stale, or of another request or run: {request.id} of {one_line(run, 100)} {what} {look}"


def _said(request: ApprovalRequest | None, choice: str, entered: dict[str, Any]) -> dict[str, Any]:
    from people.requests.entered import Entered
    from people.requests.form import decision_of

    said = Entered(choice, **entered)
    return decision_of(form_of(request), said)


async def _sent(
    run: Run, request_id: str, request: ApprovalRequest | None, by: str, said: dict[str, Any]
) -> dict[str, Any]:
    from people.decide.deciding import decide
    from people.decide.looking import KnownRequest

    known = KnownRequest(run.id, request_id, None, request)
    return await decide(run, known, said, by=by, shown=ShownRequest())


def json_or_text(typed: str) -> Any:
    """Return the value of valid JSON, and anything else as text."""
    try:
        return read_json(typed)
    except ValueError:
        return typed
