"""Have requests decided by the room that knows how: entries at the terminal are read there."""

from collections.abc import Collection
from typing import Any

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.proof import ShownRequest
from backstay.canonical import read_json
from backstay.client import Run


def form_of(request: ApprovalRequest | None) -> Any:
    """Return what a person can enter about a request."""
    from people.requests.form import DecisionForm

    return DecisionForm.of(request)


async def decided(
    run: Run, request: ApprovalRequest, by: str, choice: str, *, shown_whole: Collection[str] = (), **entered: Any
) -> dict[str, Any]:
    """Decide a request with what a person entered who was shown it; raises DecisionRefused or NotVerified.

    `shown_whole`: the digests of the requests that they were shown whole. `entered` are fields of `FormEntry`, which
    says what each of them is.
    """
    from people.decide.deciding import decide
    from people.decide.looking import KnownRequest, not_shown
    from people.requests.entered import FormEntry

    known, said = KnownRequest(run.id, request.id, None, request), FormEntry(choice, **entered)
    hidden = not_shown(request, shown_whole)
    return await decide(run, known, said, by=by, shown=ShownRequest(), hidden=hidden, instead="press w to see it")


async def decided_by_name(
    run: Run, request_id: str, by: str, args_digest: str | None, choice: str, **entered: Any
) -> dict[str, Any]:
    """Decide a request that a person names, as `decided` does; `args_digest` says which arguments they have seen.

    Raises DecisionInvalid for a digest that is none of this request.
    """
    from people.decide.deciding import decide
    from people.decide.looking import look, require_digest
    from people.requests.entered import FormEntry

    known = await look(run, None, request_id)
    if isinstance(typed := entered.get("answer"), str):
        entered["answer"] = _answer(known.live, typed)
    await require_digest(run, known, args_digest, field="--args-digest")
    shown = ShownRequest(args_digest=args_digest or "")
    return await decide(run, known, FormEntry(choice, **entered), by=by, shown=shown, by_name=True)


def _answer(request: ApprovalRequest | None, typed: str) -> Any:
    """Return an answer that was given whole; where nothing says what fits, 3.10 and true stay as they were typed."""
    value = json_or_text(typed)
    return value if isinstance(value, dict | list | str) or form_of(request).fields else typed


def json_or_text(typed: str) -> Any:
    """Return the value of valid JSON, and anything else as text."""
    try:
        return read_json(typed)
    except ValueError:
        return typed
