"""The commands that decide requests; operators see them, ready to copy, in the Web UI."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from backstay.approvals.deciding import DecisionInvalid
from backstay.cli.flags import By, Comment, Request, Workflow
from backstay.cli.prompt import json_or_text
from backstay.cli.session import myself, session
from backstay.cli.terminal import Terminal
from backstay.client import Run


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
        The digest that was shown; needed where the arguments are too long to be shown whole.
    calls
        Verdicts by index as JSON, such as '{"1": {"verdict": "reject"}}'; the others are approved.
    """
    more: dict[str, Any] = {"comment": comment}
    more |= {} if args_digest is None else {"args_digest": args_digest}
    if calls is not None:
        more["calls"] = _object(calls)
        if any(isinstance(one, dict) and one.get("verdict") == "modify" for one in more["calls"].values()):
            changed = {"request_id": request, "verdict": "modify", "by": by or myself(), **more}
            return await _decided(workflow, lambda run: run.decide(changed))
    return await _decided(workflow, lambda run: run.approve(request, by=by or myself(), **more))


async def reject(
    workflow: Workflow, request: Request, *, by: By = None, stop: bool = False, comment: Comment = ""
) -> int:
    """Reject a request; the model reads the comment and may go on.

    Parameters
    ----------
    stop
        End the run, and take back what it did.
    """
    return await _decided(workflow, lambda run: run.reject(request, by=by or myself(), stop=stop, comment=comment))


async def answer(
    workflow: Workflow,
    request: Request,
    *,
    answer: str | None = None,
    verdict: Literal["happened", "did_not_happen", "retry"] | None = None,
    by: By = None,
    comment: Comment = "",
) -> int:
    """Answer a question, or say what became of a call.

    Parameters
    ----------
    answer
        Any JSON; what is no JSON is taken as text.
    verdict
        For a call whose outcome nobody knows, or a fault that lasts.
    """
    name = by or myself()
    if verdict is not None and answer is None:
        return await _decided(workflow, lambda run: run.settle(request, verdict, by=name, comment=comment))
    if answer is None or verdict is not None:
        raise DecisionInvalid("--answer, --verdict: give one of the two")
    return await _decided(workflow, lambda run: run.answer(request, json_or_text(answer), by=name, comment=comment))


async def _decided(workflow: str, decide: Callable[[Run], Awaitable[dict[str, Any]]]) -> int:
    async with session() as backstay:
        answered = await decide(backstay.run(workflow))
    Terminal().say(f"{answered.get('state')}: {answered.get('verdict')} {answered.get('request_id')}", "green")
    return 0


def _object(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise DecisionInvalid(f"--calls: no JSON ({error})") from None
    if not isinstance(data, dict):
        raise DecisionInvalid("--calls: not a JSON object; write verdicts by index")
    return data
