"""What operators see: current details in Markdown, and search attributes."""

from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

from backstay.approvals.approval import ApprovalRequest
from backstay.budgets.budget import MICRO
from backstay.provenance.source import told_of
from backstay.shown import markdown_line, one_line
from backstay.task.status import State
from workflows.state import RunState

STATE = SearchAttributeKey.for_keyword("BackstayState")
USER = SearchAttributeKey.for_keyword("BackstayUser")
PENDING = SearchAttributeKey.for_int("BackstayPending")
COST = SearchAttributeKey.for_float("BackstayCostUsd")
CLIP_BYTES = 200


def details(state: RunState, pending: Sequence[ApprovalRequest]) -> str:
    """Return the run in Markdown: state, limits, pending requests with the command that decides each, undo stack."""
    workflow_id = workflow.info().workflow_id
    parts = [f"**{state.state.value}**, step {state.usage.steps}"]
    if state.paused is not None:
        parts.append(f"Paused: {markdown_line(state.paused)}. Resume: `backstay resume {workflow_id}`")
    parts.append(_limits(state))
    parts.extend(_request(workflow_id, request) for request in pending)
    parts.append(_undo(workflow_id, state))
    return "\n\n".join(part for part in parts if part)


def _limits(state: RunState) -> str:
    budget, usage = state.budget, state.usage
    rows = [
        ("steps", str(usage.steps), str(budget.max_steps)),
        ("tool calls", str(usage.tool_calls), str(budget.max_tool_calls)),
    ]
    ceiling = budget.max_llm_cost_usd
    rows.append(("USD", f"{state.ledger.spent / MICRO:.4f}", "no limit" if ceiling is None else f"{ceiling:g}"))
    if budget.max_tokens is not None:
        rows.append(("tokens", str(usage.tokens), str(budget.max_tokens)))
    rows.extend(
        (f"calls of {tool}", str(usage.calls_by_tool.get(tool, 0)), str(most)) for tool, most in budget.quotas.items()
    )
    lines = [f"| {markdown_line(name)} | {used} | {allowed} |" for name, used, allowed in rows]
    return "\n".join(["| limit | used | allowed |", "|---|---|---|", *lines])


def _request(workflow_id: str, request: ApprovalRequest) -> str:
    digest = f" --args-digest {request.args_digest}" if any(call.clipped for call in request.calls) else ""
    lines = [f"### {request.id}: {markdown_line(request.question)}", ""]
    lines += ["```", *commands(workflow_id, request, digest), "```", "", f"Rule: {markdown_line(request.rule)}", ""]
    for call in request.calls[:20]:
        how = f"undo: {markdown_line(call.undo_how)}" if call.undo_how else "cannot be undone"
        arguments = ", ".join(f"{key}={one_line(str(value), 120)}" for key, value in call.arguments.items())
        lines.append(f"- **{markdown_line(call.tool)}** {markdown_line(one_line(arguments, 400))} ({how})")
        told = ((name, told_of(call.sources, name)) for name in call.arguments)
        lines += [f"  - {markdown_line(f'{name}: {where}')}" for name, where in told if where]
    if len(request.calls) > 20:
        lines.append(f"- and {len(request.calls) - 20} more")
    if request.reason:
        lines += ["", f"The model says: {markdown_line(request.reason)}"]
    return "\n".join(lines)


def commands(workflow_id: str, request: ApprovalRequest, digest: str = "") -> list[str]:
    """Return the literal commands that decide a request."""
    by = "--by YOU"
    head = f"{workflow_id} {request.id}"
    every = {
        "approve": f"backstay approve {head} {by}{digest}",
        "reject": f"backstay reject {head} {by}",
        "happened": f"backstay answer {head} --verdict happened {by}",
        "did_not_happen": f"backstay answer {head} --verdict did_not_happen {by}",
        "retry": f"backstay answer {head} --verdict retry {by}",
        "answer": f"backstay answer {head} --answer JSON {by}",
    }
    return [every[option] for option in request.options if option in every]


def _undo(workflow_id: str, state: RunState) -> str:
    slots = state.undo.to_undo()
    if not state.undo.count:
        return ""
    lines = [f"Undo stack, last first (`backstay undo {workflow_id}` takes all of it back):", ""]
    for slot in slots[:20]:
        how = markdown_line(slot.shown) if slot.shown else "cannot be undone"
        doubt = ", outcome unknown" if slot.unknown else ""
        lines.append(f"{slot.effect}. {markdown_line(slot.tool)} (step {slot.step}{doubt}): {how}")
    if (more := state.undo.count - len(slots[:20])) > 0:
        lines.append(f"and {more} more")
    return "\n".join(lines)


class SearchAttributes:
    """Upsert search attributes only when they tell something new."""

    def __init__(self) -> None:
        """Start with nothing shown."""
        self.shown: tuple[str, int] | None = None
        self.cost = 0

    def show(self, state: RunState, pending: int) -> None:
        """Upsert state and pending count when they changed, cost when it doubled and at the end."""
        if not state.opened.search_attributes:
            return
        now = (_state_word(state.state, pending), pending)
        updates: list[SearchAttributeUpdate[Any]] = []
        if self.shown is None:
            updates.append(USER.value_set(clipped(state.task.user_id)))
        if now != self.shown:
            updates += [STATE.value_set(now[0]), PENDING.value_set(now[1])]
        spent = state.ledger.spent
        if (state.state is State.DONE and spent != self.cost) or (spent and spent >= 2 * self.cost):
            updates.append(COST.value_set(round(spent / MICRO, 6)))
            self.cost = spent
        if updates:
            self.shown = now
            workflow.upsert_search_attributes(updates)


def clipped(text: str) -> str:
    """Return at most 200 bytes of a text, cut between characters."""
    return text.encode("utf-8", "replace")[:CLIP_BYTES].decode("utf-8", "ignore")


def _state_word(state: State, pending: int) -> str:
    match state:
        case State.PAUSED | State.UNDOING | State.DONE:
            return state.value
        case _:
            return "waiting" if pending else "running"
