"""The commands that decide requests: approve, reject, answer."""

from typing import Any, Literal

from backstay.approvals.deciding import DecisionInvalid
from backstay.cli.flags import By, Comment, Request, Workflow, json_object
from backstay.cli.prompt import json_or_text
from backstay.cli.session import account_name, session
from backstay.cli.terminal import Terminal


async def approve(
    workflow: Workflow,
    request: Request,
    *,
    by: By = None,
    args_digest: str | None = None,
    calls: str | None = None,
    comment: Comment = "",
) -> int:
    """Approve a request.

    Parameters
    ----------
    args_digest
        The digest that was shown; required when the arguments are too long to be shown whole.
    calls
        Verdicts by index as JSON, such as '{"1": {"verdict": "reject"}}'; all other calls are approved.
    """
    more: dict[str, Any] = {} if args_digest is None else {"args_digest": args_digest}
    verdict = "approve"
    if calls is not None:
        more["calls"] = json_object(calls, "--calls", '{"1": {"verdict": "reject"}}')
        if any(isinstance(call, dict) and call.get("verdict") == "modify" for call in more["calls"].values()):
            verdict = "modify"
    return await _decide(workflow, request, verdict, by, comment=comment, **more)


async def reject(
    workflow: Workflow, request: Request, *, by: By = None, stop: bool = False, comment: Comment = ""
) -> int:
    """Reject a request; the model reads the comment and may continue.

    Parameters
    ----------
    stop
        End the run and undo what it did.
    """
    return await _decide(workflow, request, "reject", by, stop=stop, comment=comment)


async def answer(
    workflow: Workflow,
    request: Request,
    *,
    answer: str | None = None,
    verdict: Literal["happened", "did_not_happen", "retry"] | None = None,
    by: By = None,
    comment: Comment = "",
) -> int:
    """Answer a question, or report the outcome of a call.

    Parameters
    ----------
    answer
        Any JSON; anything else is taken as text.
    verdict
        For a call whose outcome is unknown, or for a fault that lasts.
    """
    if (answer is None) == (verdict is None):
        raise DecisionInvalid("--answer, --verdict: give exactly one of them")
    more = {} if answer is None else {"answer": json_or_text(answer)}
    return await _decide(workflow, request, verdict or "answer", by, comment=comment, **more)


async def _decide(workflow: str, request: str, verdict: str, by: str | None, **more: Any) -> int:
    decision = {"request_id": request, "verdict": verdict, "by": by or account_name(), **more}
    async with session() as backstay:
        answered = await backstay.run(workflow).decide(decision)
    Terminal().say(f"{answered.get('state')}: {answered.get('verdict')} {answered.get('request_id')}", "green")
    return 0
