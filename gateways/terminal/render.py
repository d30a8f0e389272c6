"""Draw requests, budgets and results for people."""

import json
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from rich.cells import cell_len
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.forecast import forecast_lines
from backstay.approvals.layout import BAR
from backstay.approvals.proposal import Proposal
from backstay.approvals.proposal_words import toggle_lines
from backstay.approvals.tables import CallTable, groups_of
from backstay.approvals.view import CallView, Kind, Line, RequestView, commands
from backstay.client.executions import UNDO
from backstay.effects.effect import Effect, Touch, told_of_later
from backstay.policies.accepted import HOLDS
from backstay.shown import LINE_BREAK, counted, money, one_line, shell_words
from backstay.task.event import Event
from backstay.task.result import Result
from backstay.task.status import State, Status
from backstay.tools.recipients import call_line
from gateways.terminal.terminal import LINK
from people.runs.words import undone_line

_STYLES = {
    "approval": "yellow",
    "budget": "yellow",
    "effect": "magenta",
    "undo": "magenta",
    "model": "dim",
    "search": "dim",
    "run": "bold",
}
_LOOKS: dict[Kind, tuple[int, str]] = {
    "call": (2, "bold"),
    "alike": (8, "dim"),
    "row": (4, ""),
    "summary": (8, "italic"),
    "argument": (8, ""),
    "source": (10, "dim"),
    "minded": (10, "yellow"),
    "changed by": (8, "bold cyan"),
    "changed": (10, "cyan"),
    "unseen": (8, "red"),
    "changes": (8, "yellow"),
    "added": (8, "green"),
    "removed": (8, "red"),
    "place": (8, "cyan"),
    "same": (8, ""),
    "repeats": (8, "bold red"),
    "undo": (8, "green"),
    "no undo": (8, "bold red"),
}
"""How far in a line of a call stands, and its style."""
_LEAST = 20
"""This many characters of the arguments and of the answer of a call are in a line, however narrow the terminal is."""
_FAILURES = frozenset({"action.failed", "model.failed", "program.diverged", "tools.missing"})


def style_of(event: Event) -> str:
    """Return how an event looks."""
    if event.name in _FAILURES or event.data.get("success") is False:
        return "red"
    return _STYLES.get(event.name.partition(".")[0], "")


def event_line(event: Event, *, width: int | None = None) -> str:
    """Return an event as one line; of a call, also what it was called with.

    With a width, for people who follow a run, a call has no name of its event and is cut to fit; why it failed is not.
    """
    head, text = f"{event.at[11:19]}  step {event.step_index}  ", event.text
    tool, arguments, is_call = event.data.get("tool"), event.data.get("arguments"), event.name.startswith("action.")
    short = width if is_call else None
    if tool and arguments and is_call:
        told = event.said and f"{': ' if event.name == 'action.failed' else ' -> '}{event.said}"
        request = call_line(tool, arguments)
        if short is not None:
            named = cell_len(tool) + 1
            room = max(short - cell_len(head) - named, 2 * _LEAST)
            told = told if event.name == "action.failed" else one_line(told, room // 2)
            request = one_line(request, named + max(room - cell_len(told), _LEAST))
        text = f"{request}{told}"
    return f"{head}{text}" if short is not None else f"{head}{event.name:<17} {text}"


def request_lines(
    workflow_id: str, request: ApprovalRequest, beside: Sequence[ApprovalRequest] = ()
) -> Iterator[tuple[str, str]]:
    """Yield the lines of a request with their styles: the engine's facts first, then what the model says, marked.

    `beside`: the requests that are open, too, among them those of a plan's alternatives.
    """
    view = RequestView.of(request)
    yield from _behind(f"{request.id} ({request.kind}): ", request.question, "bold yellow")
    yield from _context_lines(request)
    if request.proposal is not None:
        yield f"  plan: {view.plan}", "bold"
    # A program may be long, so its calls come after it, beside the prompt.
    if view.program is not None:
        yield "  this program:", "bold"
        yield from _painted(line for line in view.program.lines() if line.kind in {"argument", "unseen"})
        if view.calls:
            yield "  makes:", "bold"
    for group in groups_of(view):
        yield from call_lines(group)
    if request.proposal is not None:
        yield from _plan_lines(workflow_id, view, request.proposal, beside)
    if request.forecast:
        yield "  foretold by a rehearsal:", "bold"
        yield from ((f"  {line}", "") for line in forecast_lines(request.forecast))
    if view.unseen:
        yield f"  all of it: backstay show {shell_words(workflow_id, request.id)}", ""
    if view.masked:
        yield f"  {view.masked}", ""
    if view.form:
        yield "  the answer's form:", ""
        yield from ((f"  {BAR} {line}", "") for line in view.form)
    yield from ((f"  {line}", "") for line in (*view.standing(), *view.votes))
    who, said = request.unchecked
    if said:
        yield from _behind(f"  {who} says (nobody checked this): ", said, "italic")


def _behind(label: str, text: str, style: str) -> Iterator[tuple[str, str]]:
    """Yield text of others, its further lines behind a bar."""
    first, *rest = text.split(LINE_BREAK)
    yield f"{label}{first}", style
    yield from ((f"  {BAR} {line}", style) for line in rest)


def _context_lines(request: ApprovalRequest) -> Iterator[tuple[str, str]]:
    """Yield what the request is part of."""
    yield from ((f"  part of: {line}", "") for line in request.above)
    if request.task:
        yield f"  task: {request.task}", ""
    if request.user_id:
        yield f"  {request.place}", "dim"
    for link in (request.links.page, request.links.web_ui):
        if link:
            yield f"  {link}", LINK


def _plan_lines(
    workflow_id: str, view: RequestView, proposal: Proposal, beside: Sequence[ApprovalRequest]
) -> Iterator[tuple[str, str]]:
    """Yield what a plan changes, who decides which part, what can be narrowed, and what else is proposed."""
    if view.more:
        yield f"  {view.more}; all of them: backstay plan show {shell_words(workflow_id)}", "yellow"
    if proposal.estimated_side_effects:
        yield f"  changes: {', '.join(proposal.estimated_side_effects)}", "yellow"
    if proposal.estimated_cost_usd:
        yield f"  costs at models: {money(proposal.estimated_cost_usd)} USD", ""
    yield from ((f"  {line}", "") for line in (*view.parts, *toggle_lines(proposal)))
    found = {other.proposal.plan_id: other for other in beside if other.proposal is not None}
    for plan_id in proposal.alternatives:
        if (other := found.get(plan_id)) is None or other.proposal is None:
            yield f"  instead of it: plan {plan_id}, in a request of its own", "cyan"
        else:
            yield f"  instead of it: plan {plan_id}: {other.proposal.title or 'untitled'}; choose it with", "cyan"
            yield f"    {commands(workflow_id, other)[0]}", ""


def call_lines(call: CallView | CallTable) -> Iterator[tuple[str, str]]:
    """Yield the lines of one call, or of a table of them, with their styles."""
    yield from _painted(call.lines())


def _painted(lines: Iterable[Line]) -> Iterator[tuple[str, str]]:
    for kind, text in lines:
        indent, style = _LOOKS[kind]
        yield f"{' ' * indent}{text}", style


def remembered_lines(line: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield how far one line of a decision is remembered, and what lets it hold further."""
    yield f"  remembered for {HOLDS.get(line['holds'], line['holds'])}: {line['tool']} (line {line['line']})", "green"
    if line["waits"]:
        yield f"  further it waits: {line['waits']}", "yellow"
        yield f"    backstay policy accept {shell_words(line['line'])}", ""


def budget_rows(budget: dict[str, Any], usage: dict[str, Any]) -> list[tuple[str, float, float | None, str]]:
    """Return name, used, allowed and text of the limits that people watch."""
    steps = usage.get("steps", 0) - usage.get("lifelines", 0) + usage.get("delegated_steps", 0)
    calls = usage.get("tool_calls", 0)
    spent, ceiling = usage.get("llm_cost_usd", 0), budget.get("max_llm_cost_usd")
    allowed = "no limit" if ceiling is None else money(ceiling, exact=True)
    return [
        ("steps", steps, budget.get("max_steps"), f"{steps}/{budget.get('max_steps')}"),
        ("calls", calls, budget.get("max_tool_calls"), f"{calls}/{budget.get('max_tool_calls')}"),
        ("USD", spent, ceiling, f"{money(spent)}/{allowed}"),
    ]


def state_words(status: Status) -> str:
    """Return what a run does and what holds it: one that is paused can wait for people at the same time."""
    why = {
        "paused": f" ({status.paused})" if status.paused else "",
        "waiting": f" for {', '.join(request.id for request in status.pending)}" if status.pending else "",
    }
    return f"{' and '.join(word + why.get(word, '') for word in _states(status))}, step {status.step}"


def _states(status: Status) -> list[str]:
    words = [str(status.state)]
    words += ["paused"] if status.paused is not None and status.state is not State.PAUSED else []
    words += ["waiting"] if status.pending and status.state is not State.WAITING else []
    return words


def live_panel(status: Status | None, budget: dict[str, Any]) -> Table:
    """Return the panel below the events: state and budget bars."""
    table = Table.grid(padding=(0, 1))
    doing = "starting" if status is None else one_line(state_words(status), 160)
    row: list[Any] = [Text(doing, style="bold cyan")]
    if status is not None and budget:
        for name, used, allowed, text in budget_rows(budget, status.usage):
            bar = ProgressBar(total=allowed or 1, completed=min(used, allowed or 1) if allowed else 0, width=12)
            row += [Text(name), bar, Text(text)]
    table.add_row(*row)
    return table


def ending_lines(result: Result, undone_since: Container[int] = ()) -> Iterator[tuple[str, str]]:
    """Yield how a run ended, for people; `undone_since` are the effects that were undone after its end."""
    rows = "  ".join(f"{name} {text}" for name, _, _, text in budget_rows(result.budget.plain(), result.usage))
    undoes = result.workflow_id.startswith(UNDO)
    yield f"{result.outcome}" if undoes else f"{result.outcome}  {rows}", "bold green" if result.success else "bold red"
    if result.error is not None:
        yield f"{result.error.type}: {result.error.message}", "red"
    if result.programs_unavailable and not result.success:
        yield f"no program could run: {one_line(result.programs_unavailable, 300)}", "yellow"
    for undone in result.undone:
        yield f"undo of {undone_line(undone)}", "magenta"
    stood = [effect for effect in result.effects if effect.unknown or effect.state.value in {"applied", "kept"}]
    standing = [effect for effect in stood if effect.n not in undone_since]
    if gone := len(stood) - len(standing):
        yield f"effects that were undone since: {gone}", "magenta"
    if standing and not undoes:
        yield from _standing_lines(standing, shell_words(result.workflow_id))


def _standing_lines(standing: list[Effect], workflow: str) -> Iterator[tuple[str, str]]:
    """Yield which effects can be undone, how, and which cannot."""
    can, cannot = ([effect for effect in standing if bool(effect.undo) is undoable] for undoable in (True, False))
    several = len(standing) > 1
    how = "none of them can be undone" if several else "it cannot be undone"
    if can:
        every = "them" if several else "it"
        what = f"{len(can)} of them" if cannot else every
        how = f"undo {what} with: backstay undo {workflow}"
    yield f"{counted(len(standing), 'change')} made; {how}", ""
    if can and cannot:
        yield f"  can be undone: {_tools_of(can)}", ""
        yield f"  cannot be undone: {_tools_of(cannot)}", "yellow"


def _tools_of(effects: list[Effect]) -> str:
    counts = Counter(effect.tool for effect in effects)
    return one_line(", ".join(f"{tool} ({count} times)" if count > 1 else tool for tool, count in counts.items()), 300)


def preview_lines(effect: dict[str, Any]) -> Iterator[str]:
    """Yield one effect and what an undo of it would call, and which later runs touched the same."""
    what = one_line(call_line(effect["tool"], effect.get("arguments", {})), 300)
    if "step" in effect:
        by = f", by {one_line(effect['made_by'], 200)}" if effect.get("made_by") else ""
        what += f" (step {effect['step']}{by}{', outcome unknown' if effect.get('unknown') else ''})"
    yield f"{effect['effect']}. {what}: {effect['shown'] or 'CANNOT BE UNDONE'}"
    if effect.get("parked"):
        yield "   an undo of it has failed; a person must undo it by hand, or undo the run again"
    if later := told_of_later([Touch.model_validate(touch) for touch in effect.get("later", ())]):
        yield f"   {later}"


def result_text(result: Result) -> str:
    """Return what a run found, for stdout."""
    text = result.final_summary
    if result.raw_outputs:
        text += f"\n{json.dumps(result.raw_outputs, indent=2, ensure_ascii=False)}"
    if result.output is not None:
        text += f"\n{json.dumps(result.output, indent=2, ensure_ascii=False)}"
    return text
