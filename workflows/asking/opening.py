"""Open a request: say what it is about, until when it waits, and what a proof of a decision must name."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from temporalio import workflow

from backstay.approvals.approval import ApprovalRequest, Links
from backstay.canonical import digest_of
from backstay.policies.ruling import Ruling
from backstay.shown import one_line
from workflows.state.state import RunState

BESIDE_THE_DIGEST = {
    *("may_remember", "task", "above", "user_id", "session_id", "step", "links", "sequence"),
    *("escalated", "escalated_to"),
}
"""What the digest of a request leaves out: it follows from the rule, or from the run, which a proof names too."""


def opened_request(state: RunState, request: ApprovalRequest, ruling: Ruling | None) -> ApprovalRequest:
    """Return a request under a number of its own, as it is opened now; the state keeps its digest."""
    now = workflow.now()
    number = state.next_request
    state.next_request += 1
    info = workflow.info()
    update: dict[str, Any] = {
        "id": f"r{number}",
        "namespace": info.namespace,
        "run_id": info.first_execution_run_id,
        "created_at": now.isoformat(timespec="seconds"),
        "cost_so_far": round(state.ledger.spent / 1e6, 6),
        "reason": one_line(request.reason, 500),
        **_of_run(state, f"r{number}"),
    }
    if len(request.calls) == 1 and not request.args_digest:
        update["args_digest"] = request.calls[0].args_digest
    if ruling is not None:
        update |= _of_ruling(ruling, now)
    if state.opened.store:
        update["sequence"] = state.next_notice
    request = request.model_copy(update=update)
    digest = digest_of_request(request)
    state.keep_digest(request.id, digest)
    return request.model_copy(update={"digest": digest})


def digest_of_request(request: ApprovalRequest) -> str:
    """Return what a proof of a decision names; leaving it out where there is none keeps it across versions."""
    beside = BESIDE_THE_DIGEST | {name for name in ("proposal", "forecast") if not getattr(request, name)}
    return digest_of(request.model_dump(mode="json", by_alias=True, exclude=beside))


def left_of(request: ApprovalRequest, whole: timedelta) -> timedelta:
    """Return how long a request still waits; `whole` for one that was just opened."""
    now = workflow.now()
    if request.expires_at is None or request.created_at == now.isoformat(timespec="seconds"):
        return whole
    return max(datetime.fromisoformat(request.expires_at) - now, timedelta(milliseconds=1))


def _of_ruling(ruling: Ruling, now: datetime) -> dict[str, Any]:
    update: dict[str, Any] = {
        "rule": ruling.rule,
        "approvers": tuple(ruling.approvers),
        "quorum": ruling.quorum,
        "no_self_approval": ruling.no_self_approval,
        "verified": ruling.verified,
        "on_expiry": ruling.on_expiry,
    }
    if ruling.timeout_s is not None:
        update["expires_at"] = (now + timedelta(seconds=ruling.timeout_s)).isoformat(timespec="seconds")
    return update


def _of_run(state: RunState, request_id: str) -> dict[str, Any]:
    """Return what a request says of its run."""
    info, task, opened = workflow.info(), state.task, state.opened
    namespace, name = quote(info.namespace, safe=""), quote(info.workflow_id, safe="")
    web_ui = f"{opened.web_ui}/namespaces/{namespace}/workflows/{name}/{quote(info.run_id, safe='')}"
    return {
        "task": opened.task_line,
        **({"above": tuple(run.task_line for run in opened.above)} if opened.above else {}),
        "user_id": one_line(task.user_id, 200),
        "session_id": None if task.session_id is None else one_line(task.session_id, 200),
        "step": state.usage.step,
        "links": Links(
            page=f"{opened.page}/requests/{name}/{request_id}" if opened.page else None,
            web_ui=web_ui if opened.web_ui else None,
        ),
    }
