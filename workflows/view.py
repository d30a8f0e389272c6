"""What operators see: current details in Markdown, and search attributes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.view import commands
from backstay.budgets.budget import MICRO
from backstay.shown import (
    markdown_code,
    markdown_line,
    markdown_link,
    money,
    shell_words,
)
from backstay.task.status import State
from workflows.state.state import RunState

STATE = SearchAttributeKey.for_keyword("BackstayState")
USER = SearchAttributeKey.for_keyword("BackstayUser")
PENDING = SearchAttributeKey.for_int("BackstayPending")
COST = SearchAttributeKey.for_float("BackstayCostUsd")
TASK = SearchAttributeKey.for_keyword("BackstayTask")
CLIP_BYTES = 200
QUESTION_CHARACTERS = 4000
MOST_REQUESTS = 8
"""Details are the answer of a query, which must stay under 128 KiB."""
MOST_TOOLS = 5


def details(state: RunState, pending: Sequence[ApprovalRequest], working: Iterable[str] = ()) -> str:
    """Return the run in Markdown: its state, its limits, and of each request the question, counts and commands."""
    workflow_id = workflow.info().workflow_id
    parts = [f"**{state.state.value}**, step {state.usage.step}{_page_of_run(state, workflow_id)}"]
    if state.paused is not None:
        resume = markdown_code(f"backstay resume {shell_words(workflow_id)}")
        parts.append(f"Paused: {markdown_line(state.paused)}. Resume: {resume}")
    parts.extend(f"Under way: {markdown_line(text)}" for text in working)
    parts.append(_limits(state))
    parts.extend(request_details(workflow_id, request) for request in pending[:MOST_REQUESTS])
    if len(pending) > MOST_REQUESTS:
        all_of_them = markdown_code(f"backstay show {shell_words(workflow_id)}")
        parts.append(f"and {len(pending) - MOST_REQUESTS} more requests: {all_of_them}")
    parts.append(_undo(workflow_id, state))
    return "\n\n".join(part for part in parts if part)


def _page_of_run(state: RunState, workflow_id: str) -> str:
    """Return a link to the page of the run; an undo after the end is on the page of the run it undoes."""
    if not state.opened.page:
        return ""
    name = quote(state.run.rpartition("/")[0] or workflow_id, safe="")
    return f" · {markdown_link('the page of this run', f'{state.opened.page}/runs/{name}')}"


def _limits(state: RunState) -> str:
    budget, usage = state.budget, state.usage
    rows = [
        _steps(state),
        ("tool calls", str(usage.tool_calls), str(budget.max_tool_calls)),
    ]
    ceiling = budget.max_llm_cost_usd
    rows.append(("USD", money(state.ledger.spent / MICRO), "" if ceiling is None else f"{ceiling:g}"))
    if budget.max_tokens is not None:
        rows.append(("tokens", str(usage.tokens), str(budget.max_tokens)))
    rows.extend(
        (f"calls of {tool}", str(usage.calls_by_tool.get(tool, 0)), str(most)) for tool, most in budget.quotas.items()
    )
    # The Web UI sets the columns of a table without any space between them.
    return " · ".join(f"{markdown_line(name)} {used}{allowed and f' of {allowed}'}" for name, used, allowed in rows)


def _steps(state: RunState) -> tuple[str, str, str]:
    """Return how many steps were made: decisions of the model or, in a run that is given its plan, steps of that."""
    if state.task.plan is None:
        return "steps", str(state.usage.steps_taken), str(state.budget.max_steps)
    return "steps of the plan", str(state.usage.plan_steps), str(len(state.task.plan.steps))


def request_details(workflow_id: str, request: ApprovalRequest) -> str:
    """Return the question of a request, how many calls it is about, and the commands that show and decide it.

    The Web UI draws no nested lists, so what the calls hold is shown where people decide.
    """
    lines = [f"### {request.id}: {markdown_line(request.question, QUESTION_CHARACTERS)}"]
    if request.links.page is not None:
        lines.append(markdown_link("Look at it and decide", request.links.page))
    lines += [_counts(request)] if request.calls else []
    lines.append(f"All of it: {markdown_code(f'backstay show {shell_words(workflow_id, request.id)}')}")
    lines.append("\n".join(["```", *commands(workflow_id, request), "```"]))
    return "\n\n".join(lines)


def _counts(request: ApprovalRequest) -> str:
    """Return how many calls of which tools a request is about, and how many of them cannot be undone."""
    tools = Counter(call.tool for call in request.calls)
    named = [f"{count} of {markdown_line(tool)}" for tool, count in tools.most_common(MOST_TOOLS)]
    named += [f"{len(tools) - MOST_TOOLS} more tools"] if len(tools) > MOST_TOOLS else []
    for_good = sum(call.safety != "read_only" and not call.undoable for call in request.calls)
    said = f"; {for_good} cannot be undone" if for_good else ""
    plan = "" if request.proposal is None else f"Plan: {markdown_line(request.proposal.title or 'untitled', 200)}. "
    return f"{plan}Calls: {', '.join(named)}{said}"


def _undo(workflow_id: str, state: RunState) -> str:
    if not state.undo.count:
        return ""
    preview = markdown_code(f"backstay undo --preview {shell_words(workflow_id)}")
    return f"Effects that stand: {state.undo.count}. What an undo would do: {preview}"


CENT_MICRO = 10_000


class SearchAttributes:
    """Upsert search attributes only when they tell something new."""

    def __init__(self) -> None:
        """Start with nothing shown."""
        self.shown: tuple[str, int] | None = None
        self.cost = 0

    def show(self, state: RunState, pending: int) -> None:
        """Upsert state and pending count when they changed, cost at the end and, from a cent on, when it doubled.

        Each change costs Temporal as much as an activity, and most runs cost less than a cent when they begin.
        """
        if not state.opened.search_attributes:
            return
        now = (_state_word(state.state, pending), pending)
        updates: list[SearchAttributeUpdate[Any]] = []
        if self.shown is None:
            updates.append(USER.value_set(clipped(state.task.user_id)))
            updates += [TASK.value_set(clipped(state.opened.task_line))] if state.opened.task_searchable else []
        if now != self.shown:
            updates += [STATE.value_set(now[0]), PENDING.value_set(now[1])]
        spent = state.ledger.spent
        if (state.state is State.DONE and spent != self.cost) or spent >= max(2 * self.cost, CENT_MICRO):
            updates.append(COST.value_set(round(spent / MICRO, 6)))
            self.cost = spent
        if updates:
            self.shown = now
            workflow.upsert_search_attributes(updates)


def clipped(text: str) -> str:
    """Return at most 200 bytes of a string, cut between characters."""
    return text.encode("utf-8", "replace")[:CLIP_BYTES].decode("utf-8", "ignore")


def _state_word(state: State, pending: int) -> str:
    match state:
        case State.PAUSED | State.UNDOING | State.DONE:
            return state.value
        case _:
            return "waiting" if pending else "running"
