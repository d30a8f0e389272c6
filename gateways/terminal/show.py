"""The command `show`: the state of one run."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from backstay.approvals.decided_words import decided_words
from backstay.approvals.view import commands
from backstay.approvals.whole import with_all
from backstay.effects.effect import EffectState
from backstay.errors import TaskInvalid
from backstay.settings import Settings
from backstay.shown import call_line, one_line, shell_words
from backstay.task.result import Result
from gateways.terminal.flags import Output, Workflow
from gateways.terminal.listing import minute
from gateways.terminal.render import (
    budget_rows,
    preview_lines,
    request_lines,
    result_text,
    state_words,
    undone_line,
)
from gateways.terminal.session import account_name, open_request, session_of, sources_of
from gateways.terminal.terminal import Terminal

if TYPE_CHECKING:
    from people.runs.looking import RunView

Whole = Annotated[str | None, Parameter(help="ID of an open request, such as r1, to show whole.")]


async def show(workflow: Workflow, request: Whole = None, *, output: Output = "text") -> None:
    """Show a run: its state, budget and open requests with the commands that decide them, and what undo would do.

    With the id of an open request, show that request with nothing clipped.
    """
    settings, terminal = Settings.load(), Terminal()
    if request is not None:
        await _show_request(settings, terminal, workflow, request, output)
        return
    async with sources_of(workflow, settings) as (sources, found):
        from people.runs.looking import look

        seen = await look(sources, found, account_name(), whole=True)
    if seen.fault or found.execution is None:
        terminal.say(f"{seen.fault or 'Temporal no longer knows the run'}; shown from the store", "yellow")
    data = _data(seen)
    terminal.results(output, data, _lines(terminal, seen, data))


def _data(seen: "RunView") -> dict[str, Any]:
    """Return what is known of a run for programs."""
    row = seen.found.row
    data: dict[str, Any] = {"open": seen.found.is_open}
    if seen.status is not None:
        data |= {"status": seen.status.plain(), "budget": seen.budget}
    if row is not None:
        data["decisions"] = [decision.plain() for decision in seen.decisions]
    if row is not None and row.pruned_at is not None:
        data["pruned"] = minute(row.pruned_at)
    if seen.result is not None:
        data["result"] = seen.result
    if isinstance(seen.failure, TaskInvalid):
        data["invalid"] = str(seen.failure)
    elif seen.failure is not None:
        data["error"] = f"{type(seen.failure).__name__}: {seen.failure}"
    if seen.above:
        data["part_of"] = [above.workflow_id for above in seen.above]
    if seen.subruns:
        data["sub_runs"] = [child.workflow_id for child in seen.subruns]
    return data | {"undo": _undo(seen)}


def _undo(seen: "RunView") -> dict[str, Any]:
    """Return what an undo would do now, and what was taken back by now."""
    standing = [
        effect | ({"parked": True} if effect["effect"] in seen.parked else {})
        for effect in seen.undo.get("effects", [])
    ]
    gone = [row for row in seen.effects if not row.undo and row.state is EffectState.COMPENSATED]
    back = [{"effect": row.n, "tool": row.tool, "arguments": seen.arguments.get(row.n, {})} for row in gone]
    return seen.undo | {"effects": standing, "taken_back": back}


async def _show_request(settings: Settings, terminal: Terminal, workflow: str, request_id: str, output: Output) -> None:
    async with session_of(workflow, settings) as run:
        request = await open_request(run, request_id)
        hidden = await run.whole(request)
        whole = {call.index: await run.arguments(request_id, call.index) for call in request.calls}
    data = request.plain()
    for call in data["calls"]:
        call |= {"arguments": whole[call["index"]], "clipped": 0, "left_out": 0}
    lines = request_lines(run.id, with_all(request, hidden))
    terminal.results(output, data, (part for line, _ in lines for part in terminal.wrapped(line)))


def _decision_lines(decision: dict[str, Any]) -> Iterator[str]:
    what = " ".join(str(decision[name]) for name in ("request_id", "verdict", "handle") if decision.get(name))
    sure = "" if decision["verified"] else " (unverified)"
    yield f"{decision['at']}  {decision['update']} {what} by {decision['by']}{sure}"
    if said := decided_words(decision):
        yield f"    {one_line('; '.join(said), 500)}"
    if decision["comment"]:
        yield f"    {one_line(decision['comment'], 500)}"
    for changed in decision.get("changed", ()):
        yield f"    changed call {changed['index']} (digest {changed['args_digest']}):"
        yield from (f"      {line}" for line in changed["lines"])


def _lines(terminal: Terminal, seen: "RunView", data: dict[str, Any]) -> Iterator[str]:
    workflow = seen.found.workflow_id
    if invalid := data.get("invalid"):
        yield f"{workflow}: invalid"
        yield f"invalid: {invalid}"
        return
    yield f"{workflow}: {'open' if data['open'] else 'ended'}"
    if pruned := data.get("pruned"):
        yield f"pruned {pruned}: its records were removed, and it can no longer be undone"
    if (status := seen.status) is not None:
        yield f"state {state_words(status)}"
        yield "  ".join(f"{name} {text}" for name, _, _, text in budget_rows(seen.budget["budget"], status.usage))
    yield from _family_lines(seen)
    for request in seen.pending:
        for line, _ in request_lines(workflow, request, seen.pending):
            yield from terminal.wrapped(line)
        yield from (f"    {command}" for command in commands(workflow, request))
    for decision in data.get("decisions", []):
        yield from _decision_lines(decision)
    yield from _ending_lines(seen, data["undo"])
    if error := data.get("error"):
        yield error


def _family_lines(seen: "RunView") -> Iterator[str]:
    """Yield which runs have delegated to this one, and what it has delegated."""
    for above in seen.above:
        yield f"part of {above.workflow_id}: {one_line(above.task_line, 200)}"
    for child in seen.subruns:
        state = str((child.result or {}).get("outcome", child.state))
        yield f"sub-run {child.workflow_id} ({state}): {one_line(child.text, 200)}"


def _ending_lines(seen: "RunView", undo: dict[str, Any]) -> Iterator[str]:
    """Yield what an undo would do, what was taken back, and how the run ended."""
    result = None if seen.result is None else Result.model_validate(seen.result)
    back = {effect["effect"] for effect in undo["taken_back"]}
    left = [] if result is None else [u for u in result.undone if u.by_hand and u.effect not in back]
    # The Result says better why an undo has failed.
    said = {undone.effect: {"parked": False} for undone in left}
    if effects := undo["effects"]:
        yield f"can be undone, newest first (backstay undo {shell_words(seen.found.workflow_id)}):"
        told = (effect | said.get(effect["effect"], {}) for effect in effects)
        yield from (f"  {line}" for effect in told for line in preview_lines(effect))
    for effect in undo["taken_back"]:
        yield f"taken back: {effect['effect']}. {call_line(effect['tool'], effect['arguments'])}"
    if result is not None:
        yield f"outcome {result.outcome}"
        yield from (f"undo of {undone_line(undone)}" for undone in left)
        yield result_text(result)
