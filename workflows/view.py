"""What operators see: current details in Markdown, and search attributes."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

from backstay.approvals.approval import ApprovalRequest, RequestedCall
from backstay.approvals.fields import form_lines
from backstay.approvals.layout import argument_lines
from backstay.approvals.proposal import Proposal, ProposedStep
from backstay.approvals.proposal_words import more_words, part_lines, step_marks, summary_words, toggle_lines
from backstay.budgets.budget import MICRO
from backstay.shown import (
    MASKED,
    clipped_words,
    kept_bytes,
    markdown_code,
    markdown_line,
    markdown_link,
    shell_words,
    unseen_words,
)
from backstay.task.status import State
from workflows.state import RunState

STATE = SearchAttributeKey.for_keyword("BackstayState")
USER = SearchAttributeKey.for_keyword("BackstayUser")
PENDING = SearchAttributeKey.for_int("BackstayPending")
COST = SearchAttributeKey.for_float("BackstayCostUsd")
TASK = SearchAttributeKey.for_keyword("BackstayTask")
CLIP_BYTES = 200
PAGE_CHARACTERS = 24_000
"""How much of all arguments the details show; they are the answer of a query, which must stay under 128 KiB."""
QUESTION_CHARACTERS = 4000
_LINE_CHARACTERS = 16
"""What a further line of an argument takes besides its text."""
_SPACE = "\u00a0"
_LONGEST_SIGN = len("<U+10FFFF>")


def details(state: RunState, pending: Sequence[ApprovalRequest]) -> str:
    """Return the run in Markdown: state, limits, pending requests with the command that decides each, undo stack."""
    workflow_id = workflow.info().workflow_id
    parts = [f"**{state.state.value}**, step {state.usage.step}{_page_of_run(state, workflow_id)}"]
    if state.paused is not None:
        resume = markdown_code(f"backstay resume {shell_words(workflow_id)}")
        parts.append(f"Paused: {markdown_line(state.paused)}. Resume: {resume}")
    parts.append(_limits(state))
    page = _Page(workflow_id)
    parts.extend(page.request(request, pending) for request in pending)
    parts.append(_undo(workflow_id, state))
    return "\n\n".join(part for part in parts if part)


def _page_of_run(state: RunState, workflow_id: str) -> str:
    """Return a link to the page of the run; an undo after the end stands on the page of the run it takes back."""
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
    rows.append(("USD", f"{state.ledger.spent / MICRO:.4f}", "no limit" if ceiling is None else f"{ceiling:g}"))
    if budget.max_tokens is not None:
        rows.append(("tokens", str(usage.tokens), str(budget.max_tokens)))
    rows.extend(
        (f"calls of {tool}", str(usage.calls_by_tool.get(tool, 0)), str(most)) for tool, most in budget.quotas.items()
    )
    lines = [f"| {markdown_line(name)} | {used} | {allowed} |" for name, used, allowed in rows]
    return "\n".join(["| limit | used | allowed |", "|---|---|---|", *lines])


def _steps(state: RunState) -> tuple[str, str, str]:
    """Return how many steps were made: decisions of the model or, in a run that is given its plan, steps of that."""
    if state.task.plan is None:
        return "steps", str(state.usage.steps_taken), str(state.budget.max_steps)
    return "steps of the plan", str(state.usage.plan_steps), str(len(state.task.plan.steps))


class _Page:
    """Show requests within the room of one page, and count what does not fit."""

    def __init__(self, workflow_id: str) -> None:
        self.workflow_id = workflow_id
        self.left = PAGE_CHARACTERS

    def request(self, request: ApprovalRequest, pending: Sequence[ApprovalRequest]) -> str:
        lines = [f"### {request.id}: {markdown_line(request.question, QUESTION_CHARACTERS)}", ""]
        if request.links.page is not None:
            lines += [markdown_link("Look at it and decide", request.links.page), ""]
        lines += ["```", *commands(self.workflow_id, request), "```", "", f"Rule: {markdown_line(request.rule)}", ""]
        lines += self._calls(request) if request.proposal is None else self._plan(request, request.proposal, pending)
        if request.answer_schema is not None:
            lines += ["", f"The answer's form:{self._form(request)}"]
        if request.masked:
            lines += ["", markdown_line(MASKED)]
        who, said = request.unchecked
        if said:
            lines += ["", f"{who.capitalize()} says: {markdown_line(said)}"]
        return "\n".join(lines)

    def _calls(self, request: ApprovalRequest) -> list[str]:
        lines: list[str] = []
        for at, call in enumerate(request.calls):
            if self.left < 0:
                return [*lines, self._rest(request.calls[at:])]
            lines += self._call(call, request.id)
        return lines

    def _plan(self, request: ApprovalRequest, proposal: Proposal, pending: Sequence[ApprovalRequest]) -> list[str]:
        """Return a plan whole: its steps in order, what it changes, who decides which part, and what else there is."""
        title = markdown_line(proposal.title or "untitled", 200)
        lines = [f"Plan: **{title}** (id {markdown_line(proposal.plan_id)}, version {proposal.version})", ""]
        asked = {call.index: call for call in request.calls}
        for at, step in enumerate(proposal.steps):
            if self.left < 0:
                lines.append(f"- **{len(proposal.steps) - at} more steps not shown**{self._elsewhere}")
                break
            lines += self._step(step, asked.get(step.idx), request.id, several=len(proposal.parts) > 1)
        if proposal.more:
            whole = markdown_code(f"backstay plan show {shell_words(self.workflow_id)}")
            lines.append(f"- **{more_words(proposal)}**; all of them: {whole}")
        changed = ", ".join(markdown_line(effect, 200) for effect in proposal.estimated_side_effects)
        said = [*part_lines(proposal), *toggle_lines(proposal)]
        rows = [f"Changes: {changed}" if changed else "", *(markdown_line(line, QUESTION_CHARACTERS) for line in said)]
        rows += self._alternatives(proposal, pending)
        return [*lines, *(f"\n{row}" for row in rows if row)]

    def _step(self, step: ProposedStep, call: RequestedCall | None, request_id: str, *, several: bool) -> list[str]:
        marks = markdown_line("; ".join(step_marks(step, several=several)))
        says = summary_words(step.summary)
        summary = [f"    - {_whole(says)}"] if says and self._fits(says) else []
        if call is not None:
            head, *rest = self._call(call, request_id)
            return [f"- step {step.idx}: {head.removeprefix('- ')}, {marks}", *summary, *rest]
        head = f"- step {step.idx}: **{markdown_line(step.action)}**, {marks}"
        given = [argument_lines(name, value) for name, value in step.arguments.items()]
        shown = [lines for lines in given if self._fits(*lines)]
        said = (
            [f"    - {len(given) - len(shown)} arguments not shown{self._elsewhere}"] if len(shown) < len(given) else []
        )
        diff = [f"    - {_whole(line)}" for line in (step.diff_preview or "").splitlines() if self._fits(line)]
        return [head, *summary, *(f"    - {_whole(first)}{_lines(rest)}" for first, *rest in shown), *diff, *said]

    def _alternatives(self, proposal: Proposal, pending: Sequence[ApprovalRequest]) -> list[str]:
        """Return the plans that can be chosen in place of this one, each with the command that does."""
        found = {other.proposal.plan_id: other for other in pending if other.proposal is not None}
        choosing = {name: commands(self.workflow_id, found[name])[0] for name in proposal.alternatives if name in found}
        return [f"Instead of it: plan {markdown_line(name)}: {markdown_code(how)}" for name, how in choosing.items()]

    def _call(self, call: RequestedCall, request_id: str) -> list[str]:
        how = f"undo: {markdown_line(call.undo_how)}" if call.undo_how else "cannot be undone"
        lines = [f"- **{markdown_line(call.tool)}** ({how})"]
        lines += [f"    - **Repeated: {markdown_line(call.repeats)}**"] if call.repeats else []
        hidden, clipped = call.left_out, call.clipped
        for name, value in call.arguments.items():
            head, *rest = argument_lines(name, value)
            if self._fits(head, *rest):
                where = call.told(name).text
                lines.append(f"    - {_whole(head)}{f' ({markdown_line(where)})' if where else ''}{_lines(rest)}")
            else:
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                hidden, clipped = hidden + 1, clipped + len(name) + len(text)
        diff = (call.diff or "").splitlines()
        shown = [line for line in diff if self._fits(line)]
        lines += [f"    - {_whole(line)}" for line in shown]
        said = unseen_words(hidden, call.count, clipped, kept_bytes(call.arguments), len(diff) - len(shown))
        return [*lines, f"    - **{said}**; all of it: {self._all_of(request_id)}"] if said else lines

    def _rest(self, calls: Sequence[RequestedCall]) -> str:
        """Count calls of which nothing is shown."""
        tools = Counter(call.tool for call in calls)
        named = ", ".join(f"{count} of {markdown_line(tool)}" for tool, count in tools.most_common(5))
        hidden = sum(call.count for call in calls)
        texts = sum(len(json.dumps(call.arguments, ensure_ascii=False)) + call.clipped for call in calls)
        lines = sum(len((call.diff or "").splitlines()) for call in calls)
        more = f" and {len(tools) - 5} more tools" if len(tools) > 5 else ""
        said = unseen_words(hidden, hidden, texts, sum(kept_bytes(call.arguments) for call in calls), lines)
        return f"- **{len(calls)} more calls not shown**: {named}{more}; {said}{self._elsewhere}"

    def _form(self, request: ApprovalRequest) -> str:
        schema = request.answer_schema or {}
        if self._fits(*(rows := list(form_lines(schema)))):
            return "\n" + "".join(f"\n- {_whole(row)}" for row in rows)
        size = len(json.dumps(schema, ensure_ascii=False))
        return f" not shown, {clipped_words(size)}; all of it: {self._all_of(request.id)}"

    def _all_of(self, request_id: str) -> str:
        """Return the command that shows a request with nothing left out."""
        return markdown_code(f"backstay show {shell_words(self.workflow_id, request_id)}")

    def _fits(self, *texts: str) -> bool:
        """Take room for these texts; once something did not fit nothing does, so that there are no gaps."""
        self.left -= sum(len(text) + 1 for text in texts) + _LINE_CHARACTERS * (len(texts) - 1)
        return self.left >= 0

    @property
    def _elsewhere(self) -> str:
        """Say where more is shown than on this page, if anywhere."""
        return "" if self.left >= 0 else f"; more: {markdown_code(f'backstay show {shell_words(self.workflow_id)}')}"


def _whole(text: str) -> str:
    """Return a text, which is limited already, as one line of Markdown that leaves nothing out."""
    return markdown_line(text, _LONGEST_SIGN * len(text))


def _lines(rest: Sequence[str]) -> str:
    """Return further lines of an item of a list, each on a line of its own and with its spaces."""
    return "".join(f"  \n      {_whole(line).replace('  ', f' {_SPACE}')}" for line in rest)


def commands(workflow_id: str, request: ApprovalRequest) -> list[str]:
    """Return the literal commands that decide a request as it is shown; a shell takes the ids literally."""
    every = {
        "approve": "approve",
        "reject": "reject",
        "happened": "answer --verdict happened",
        "did_not_happen": "answer --verdict did_not_happen",
        "retry": "answer --verdict retry",
        "answer": "answer --answer JSON",
    }
    flags = f"--by YOU --args-digest {request.args_digest}" if request.args_digest else "--by YOU"
    named = shell_words(workflow_id, request.id)
    # What ends the flags must stand behind them.
    rest = f"{flags} {named}" if named.startswith("-") else f"{named} {flags}"
    if request.proposal is not None and len(request.calls) > 1:
        every["modify"] = "approve --reject-step STEP"
    return [f"backstay {every[option]} {rest}" for option in request.options if option in every]


def _undo(workflow_id: str, state: RunState) -> str:
    slots = state.undo.to_undo()
    if not state.undo.count:
        return ""
    undo = markdown_code(f"backstay undo {shell_words(workflow_id)}")
    lines = [f"Undo stack, last first ({undo} takes all of it back):", ""]
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
            updates += [TASK.value_set(clipped(state.opened.task_line))] if state.opened.task_searchable else []
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
