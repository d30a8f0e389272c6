"""The command `show`: the state of one run."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from backstay.approvals.decided_words import decided_words
from backstay.approvals.view import commands
from backstay.approvals.whole import with_all
from backstay.settings import Settings
from backstay.shown import counted, for_user, one_line, shell_words
from backstay.task.result import Result
from backstay.tools.recipients import call_line
from gateways.terminal.flags import Output, Workflow
from gateways.terminal.listing import minute
from gateways.terminal.render import (
    budget_rows,
    ending_lines,
    preview_lines,
    request_lines,
    result_text,
    state_words,
)
from gateways.terminal.session import account_name, open_request, session_of, sources_of
from gateways.terminal.terminal import Terminal
from people.runs.words import undone_line

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
        from people.runs.wire import wire_of

        seen = await look(sources, found, account_name(), whole=True)
    if fault := fault_of(seen):
        terminal.say(fault, "yellow")
    data = wire_of(seen)
    terminal.results(output, data, lines_of(terminal, seen, data))


def fault_of(seen: "RunView") -> str:
    """Return why a run is shown as the store knows it; empty where it is not."""
    fault = seen.fault or ("Temporal no longer knows the run" if seen.found.execution is None else "")
    return f"{fault}; shown from the store" if fault else ""


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


def lines_of(terminal: Terminal, seen: "RunView", data: dict[str, Any]) -> Iterator[str]:
    """Yield what a person reads of a run."""
    from people.runs.plans import plans_of

    workflow = seen.found.workflow_id
    if invalid := data.get("invalid"):
        yield f"{workflow}: invalid"
        yield f"invalid: {invalid}"
        return
    yield f"{workflow}: {'open' if data['open'] else 'ended'}"
    yield from _head_lines(seen)
    if (status := seen.status) is not None:
        yield f"state {state_words(status)}"
        yield "  ".join(f"{name} {text}" for name, _, _, text in budget_rows(seen.budget["budget"], status.usage))
    yield from _family_lines(seen)
    for plan in plans_of(seen)[::-1]:
        done = f"{plan['done']} of {counted(len(plan['steps']), 'step')} done"
        yield f"plan {plan['id']} ({plan['state']}, {done}): {one_line(plan['title'], 200)}"
    for request in seen.pending:
        for line, _ in request_lines(workflow, request, seen.pending):
            yield from terminal.wrapped(line)
        yield from (f"    {command}" for command in commands(workflow, request))
    for decision in data.get("decisions", []):
        yield from _decision_lines(decision)
    yield from _ending_lines(seen, data["undo"])
    if error := data.get("error"):
        yield error


def _head_lines(seen: "RunView") -> Iterator[str]:
    """Yield what the run is about, for whom and when, and what has become of all of it."""
    found, row = seen.found, seen.found.row
    yield from [one_line(found.text, 200)] if found.text else []
    opened = {} if row is None else row.opened
    about = [for_user(found.user_id)]
    about += [f"session {one_line(found.session_id, 60)}"] if found.session_id else []
    about += [f"started by {one_line(opened['started_by'], 80)}"] if opened.get("started_by") else []
    about += [f"from {minute(found.started_at)}"] if found.started_at else []
    about += [f"to {minute(found.ended_at)}"] if found.ended_at else []
    about += [f"run ID {found.run_id}"]
    yield ", ".join(filter(None, about))
    if found.is_older:
        yield "this is an earlier run of this workflow ID"
    if seen.undoing:
        yield "an undo of it is under way"
    if row is not None and row.pruned_at is not None:
        yield f"pruned {minute(row.pruned_at)}: its records were removed, and it can no longer be undone"


def _family_lines(seen: "RunView") -> Iterator[str]:
    """Yield which runs this one goes on from and go on from it, who has delegated it, and what it has delegated."""
    for word, rows in (("follows", seen.before[-1:]), ("followed by", seen.after)):
        yield from (f"{word} {other.workflow_id}: {one_line(other.text, 200)}" for other in rows)
    for above in seen.above:
        yield f"part of {above.workflow_id}: {one_line(above.task_line, 200)}"
    for child in seen.subruns:
        state = str((child.result or {}).get("outcome", child.state))
        yield f"sub-run {child.workflow_id} ({state}): {one_line(child.text, 200)}"


def _ending_lines(seen: "RunView", undo: dict[str, Any]) -> Iterator[str]:
    """Yield what an undo would do, what was undone, and how the run ended."""
    result = None if seen.result is None else Result.model_validate(seen.result)
    back = {effect["effect"] for effect in undo["undone"]}
    left = [] if result is None else [u for u in result.undone if u.by_hand and u.effect not in back]
    # The Result says better why an undo has failed.
    said = {undone.effect: {"parked": False} for undone in left}
    if effects := undo["effects"]:
        yield f"can be undone, newest first (backstay undo {shell_words(seen.found.workflow_id)}):"
        told = (effect | said.get(effect["effect"], {}) for effect in effects)
        yield from (f"  {line}" for effect in told for line in preview_lines(effect))
    for effect in undo["undone"]:
        yield f"undone: {effect['effect']}. {call_line(effect['tool'], effect['arguments'])}"
    if result is not None:
        (end, _), *error = list(ending_lines(result.model_copy(update={"undone": (), "effects": ()})))
        yield f"outcome {end}"
        yield from (line for line, _ in error)
        yield from (f"undo of {undone_line(undone)}" for undone in left)
        yield result_text(result)
