"""Have a handle put in place of each secret that a person types, before anything is kept, told or shown of it."""

from collections.abc import Iterable, Mapping
from typing import Any

from backstay import calls, errors
from backstay.approvals.admission import DecisionInvalid
from backstay.approvals.approval import Approval, ApprovalRequest, RequestKind
from workflows.dispatch.activity_calls import ActivityCalls

SHORTEST = 5
"""A shorter text holds no secret that anything would find."""
SHORTEST_IN_NAME = 16
"""A shorter name, or one without a digit, holds none either; most names of people are such."""
NOT_KEPT = "(what was typed here is not kept, because the store could not be reached)"
BESIDE = frozenset({"comment", "reason"})
"""The words beside a decision, which counts without it."""


async def without_secrets(
    activities: ActivityCalls, typed: dict[str, Any], names: Mapping[str, Iterable[str]]
) -> dict[str, Any]:
    """Return what a person typed, by field, without its secrets; the store knows what the handles stand for.

    Raises DecisionInvalid for a secret in a name, which is kept and shown as it is, and BackstayError when the store
    cannot be reached and what was typed is more than a word beside a decision.
    """
    wanted = {field: value for field, value in typed.items() if _may_hold_one(value)}
    doubtful = {field: [name for name in given if _doubtful(name)] for field, given in names.items()}
    doubtful = {field: given for field, given in doubtful.items() if given}
    if not wanted and not doubtful:
        return typed
    ask = calls.HideSecrets(typed=wanted, names=doubtful)
    try:
        hidden = await activities.execute_in_handler(calls.hide_secrets, ask, summary="hide secrets")
    except errors.Transient:
        if doubtful or not wanted.keys() <= BESIDE:
            raise
        return typed | dict.fromkeys(wanted, NOT_KEPT)
    if hidden.refused:
        raise DecisionInvalid(f"{hidden.refused}: a secret is in it, and a name is shown as it is; take it out")
    return typed | hidden.typed


async def decision_without_secrets(
    activities: ActivityCalls, approval: Approval, request: ApprovalRequest | None
) -> Approval:
    """Return a decision without the secrets in its comment and its answer; changed arguments are checked apart."""
    typed: dict[str, Any] = {"comment": approval.comment}
    names = [approval.by]
    if request is not None and request.kind is not RequestKind.BUDGET:
        # Limits are numbers under names of their own.
        typed["answer"] = approval.answer
    return approval.model_copy(update=await without_secrets(activities, typed, {"by": names}))


async def words_without_secrets(
    activities: ActivityCalls, by: str, reason: str, more: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return the reason of an update, and what else it says, without the secrets in them."""
    quotas = more.get("quotas")
    names = {"by": [by], "quotas": [*map(str, quotas)] if isinstance(quotas, dict) else []}
    typed = {"reason": reason} | {field: value for field, value in more.items() if isinstance(value, str)}
    hidden = await without_secrets(activities, typed, names)
    return str(hidden.pop("reason")), more | hidden


def _may_hold_one(value: Any) -> bool:
    match value:
        case str():
            return len(value) >= SHORTEST
        case dict() | list():
            return bool(value)
        case int():
            return value >= 10**SHORTEST
        case _:
            return False


def _doubtful(name: str) -> bool:
    return len(name) >= SHORTEST_IN_NAME and any(map(str.isdigit, name))
