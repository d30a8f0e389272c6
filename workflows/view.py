"""What operators see: current details in Markdown, and search attributes."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.layout import argument_lines
from backstay.approvals.proposal import Proposal
from backstay.approvals.proposal_words import summary_words, toggle_lines
from backstay.approvals.view import CallView, RequestView, commands
from backstay.budgets.budget import MICRO
from backstay.shown import (
    clipped_words,
    markdown_code,
    markdown_line,
    markdown_link,
    shell_words,
    unseen_words,
)
from backstay.task.status import State
from workflows.state.state import RunState

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


def details(state: RunState, pending: Sequence[ApprovalRequest], working: Iterable[str] = ()) -> str:
    """Return the run in Markdown: state, limits, pending requests with the command that decides each, undo stack."""
    workflow_id = workflow.info().workflow_id
    parts = [f"**{state.state.value}**, step {state.usage.step}{_page_of_run(state, workflow_id)}"]
    if state.paused is not None:
        resume = markdown_code(f"backstay resume {shell_words(workflow_id)}")
        parts.append(f"Paused: {markdown_line(state.paused)}. Resume: {resume}")
    parts.extend(f"Under way: {markdown_line(text)}" for text in working)
    parts.append(_limits(state))
    page = _Page(workflow_id)
    parts.extend(page.request(request, pending) for request in pending)
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
    rows.append(("USD", f"{state.ledger.spent / MICRO:.4f}", "" if ceiling is None else f"{ceiling:g}"))
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


class _Page:
    """Show requests within the room of one page, and count what does not fit."""

    def __init__(self, workflow_id: str) -> None:
        self.workflow_id = workflow_id
        self.left = PAGE_CHARACTERS

    def request(self, request: ApprovalRequest, pending: Sequence[ApprovalRequest]) -> str:
        view = RequestView.of(request)
        lines = [f"### {request.id}: {markdown_line(request.question, QUESTION_CHARACTERS)}", ""]
        if request.links.page is not None:
            lines += [markdown_link("Look at it and decide", request.links.page), ""]
        lines += ["```", *commands(self.workflow_id, request), "```", "", f"Rule: {markdown_line(request.rule)}", ""]
        lines += [part for line in request.above for part in (f"Part of: {markdown_line(line)}", "")]
        lines += self._calls(view) if request.proposal is None else self._plan(view, request.proposal, pending)
        if request.answer_schema is not None:
            lines += ["", f"The answer's form:{self._form(request, view.form)}"]
        if view.masked:
            lines += ["", markdown_line(view.masked)]
        who, said = request.unchecked
        if said:
            lines += ["", f"{who.capitalize()} says: {markdown_line(said)}"]
        return "\n".join(lines)

    def _calls(self, view: RequestView) -> list[str]:
        lines: list[str] = []
        for at, call in enumerate(view.calls):
            if self.left < 0:
                return [*lines, self._rest(view.calls[at:])]
            lines += self._call("", call, view.request.id)
        return lines

    def _plan(self, view: RequestView, proposal: Proposal, pending: Sequence[ApprovalRequest]) -> list[str]:
        """Return a plan whole: its steps in order, what it changes, who decides which part, and what else there is."""
        title = markdown_line(proposal.title or "untitled", 200)
        lines = [f"Plan: **{title}** (id {markdown_line(proposal.plan_id)}, version {proposal.version})", ""]
        for at, step in enumerate(view.calls):
            if self.left < 0:
                lines.append(f"- **{len(view.calls) - at} more steps not shown**{self._elsewhere}")
                break
            lines += self._call(f"step {step.number}: ", step, view.request.id)
        if view.more:
            whole = markdown_code(f"backstay plan show {shell_words(self.workflow_id)}")
            lines.append(f"- **{view.more}**; all of them: {whole}")
        changed = ", ".join(markdown_line(effect, 200) for effect in proposal.estimated_side_effects)
        said = [*view.parts, *toggle_lines(proposal)]
        rows = [f"Changes: {changed}" if changed else "", *(markdown_line(line, QUESTION_CHARACTERS) for line in said)]
        rows += self._alternatives(proposal, pending)
        return [*lines, *(f"\n{row}" for row in rows if row)]

    def _alternatives(self, proposal: Proposal, pending: Sequence[ApprovalRequest]) -> list[str]:
        """Return the plans that can be chosen in place of this one, each with the command that does."""
        found = {other.proposal.plan_id: other for other in pending if other.proposal is not None}
        choosing = {name: commands(self.workflow_id, found[name])[0] for name in proposal.alternatives if name in found}
        return [f"Instead of it: plan {markdown_line(name)}: {markdown_code(how)}" for name, how in choosing.items()]

    def _call(self, named: str, call: CallView, request_id: str) -> list[str]:
        undo = f"undo: {markdown_line(call.undo_how)}" if call.undo_how else "can be undone"
        how = undo if call.undoable else "cannot be undone"
        marks = f", {markdown_line(call.marks)}" if call.marks else ""
        lines = [f"- {named}**{markdown_line(call.tool)}**{f' ({how})' if call.writes else ''}{marks}"]
        says = summary_words(call.summary)
        lines += [f"    - {_whole(says)}"] if says and self._fits(says) else []
        lines += [f"    - **Repeated: {markdown_line(call.repeats)}**"] if call.repeats else []
        hidden, of, clipped, kept = call.hidden
        for name, value, told in call.arguments:
            head, *rest = argument_lines(name, value)
            if self._fits(head, *rest):
                where = f" ({markdown_line(told.text)})" if told.text else ""
                lines.append(f"    - {_whole(head)}{where}{_lines(rest)}")
            else:
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                hidden, clipped = hidden + 1, clipped + len(name) + len(text)
        shown = [line.text for line in call.diff if self._fits(line.text)]
        lines += [f"    - {_whole(line)}" for line in shown]
        said = unseen_words(hidden, of, clipped, kept, len(call.diff) - len(shown))
        return [*lines, f"    - **{said}**; all of it: {self._all_of(request_id)}"] if said else lines

    def _rest(self, calls: Sequence[CallView]) -> str:
        """Count calls of which nothing is shown."""
        tools = Counter(call.tool for call in calls)
        named = ", ".join(f"{count} of {markdown_line(tool)}" for tool, count in tools.most_common(5))
        hidden, kept = sum(call.hidden.of for call in calls), sum(call.hidden.kept for call in calls)
        shown = ({each.name: each.value for each in call.arguments} for call in calls)
        texts = sum(len(json.dumps(each, ensure_ascii=False)) for each in shown)
        texts += sum(call.hidden.characters for call in calls)
        more = f" and {len(tools) - 5} more tools" if len(tools) > 5 else ""
        said = unseen_words(hidden, hidden, texts, kept, sum(len(call.diff) for call in calls))
        return f"- **{len(calls)} more calls not shown**: {named}{more}; {said}{self._elsewhere}"

    def _form(self, request: ApprovalRequest, rows: Sequence[str]) -> str:
        if self._fits(*rows):
            return "\n" + "".join(f"\n- {_whole(row)}" for row in rows)
        size = len(json.dumps(request.answer_schema, ensure_ascii=False))
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
    """Return a string, which is limited already, as one line of Markdown that leaves nothing out."""
    return markdown_line(text, _LONGEST_SIGN * len(text))


def _lines(rest: Sequence[str]) -> str:
    """Return further lines of an item of a list, each on a line of its own and with its spaces."""
    return "".join(f"  \n      {_whole(line).replace('  ', f' {_SPACE}')}" for line in rest)


def _undo(workflow_id: str, state: RunState) -> str:
    slots = state.undo.to_undo()
    if not state.undo.count:
        return ""
    undo = markdown_code(f"backstay undo {shell_words(workflow_id)}")
    lines = [f"Undo stack, last first ({undo} undoes all of it):", ""]
    for slot in slots[:20]:
        how = markdown_line(slot.shown) if slot.shown else "cannot be undone"
        doubt = ", outcome unknown" if slot.unknown else ""
        lines.append(f"{slot.effect}. {markdown_line(slot.tool)} (step {slot.step}{doubt}): {how}")
    if (more := state.undo.count - len(slots[:20])) > 0:
        lines.append(f"and {more} more")
    return "\n".join(lines)


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
