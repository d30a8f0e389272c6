"""The command `show`: the state of one run."""

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any

from cyclopts import Parameter

from backstay.approvals.decided_words import decided_words
from backstay.approvals.view import commands
from backstay.approvals.whole import with_all
from backstay.client import Run
from backstay.effects.effect import EffectState
from backstay.errors import BackstayError, RunNotFound, StoreUnavailable, TaskInvalid, Unreachable
from backstay.frozen import Frozen
from backstay.settings import Settings
from backstay.shown import one_line, shell_words
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
from gateways.terminal.session import open_request, session_of, stored_run
from gateways.terminal.terminal import Terminal

Whole = Annotated[str | None, Parameter(help="ID of an open request, such as r1, to show whole.")]


async def show(workflow: Workflow, request: Whole = None, *, output: Output = "text") -> None:
    """Show a run: its state, budget and open requests with the commands that decide them, and what undo would do.

    With the id of an open request, show that request with nothing clipped.
    """
    settings, terminal = Settings.load(), Terminal()
    if request is not None:
        await _show_request(settings, terminal, workflow, request, output)
        return
    try:
        async with session_of(workflow, settings) as run:
            workflow, seen = run.id, await _seen(run)
        with contextlib.suppress(StoreUnavailable):
            async with stored_run(settings, workflow) as (store, row):
                if row is not None and row.pruned_at is not None:
                    # What the run itself still shows can no longer be undone.
                    seen = seen | {"undo": {}, "pruned": minute(row.pruned_at)}
                elif row is not None:
                    seen["decisions"] = [decision.plain() for decision in await store.decisions.of_run(row.run)]
                    seen["undo"] = await _as_it_is(seen["undo"], store, row.run)
    except (RunNotFound, Unreachable) as error:
        async with stored_run(settings, workflow) as (store, row):
            if row is None:
                raise error from None
            seen = await _seen_in_store(store, row)
        terminal.say(f"{error}; shown from the store", "yellow")
    plain = {name: value.plain() if isinstance(value, Frozen) else value for name, value in seen.items()}
    terminal.results(output, plain, _lines(terminal, workflow, seen))


async def _seen_in_store(store: Any, row: Any) -> dict[str, Any]:
    """Return what the store knows of a run that cannot be asked."""
    if row.pruned_at is not None:
        return {"open": False, "pruned": minute(row.pruned_at)}
    decisions = [decision.plain() for decision in await store.decisions.of_run(row.run)]
    result = Result.model_validate(row.result) if row.result else None
    return {"open": row.state == "open", "result": result, "decisions": decisions}


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


async def _seen(run: Run) -> dict[str, Any]:
    """Query the run; for an ended one, add its Result or the error that it failed with."""
    seen: dict[str, Any] = {"open": await run.is_open()}
    seen["status"] = await run.status()
    seen["budget"] = await run.budget()
    seen["undo"] = await run.preview()
    if not seen["open"]:
        try:
            seen["result"] = await run.result()
        except TaskInvalid as error:
            seen["invalid"] = str(error)
        except BackstayError as error:
            seen["error"] = f"{type(error).__name__}: {error}"
    return seen


async def _as_it_is(undo: dict[str, Any], store: Any, run: str) -> dict[str, Any]:
    """Return what undo would do today: an undo after the end leaves the run's own answer as it was."""
    rows = await store.effects.of_run(run)
    gone = {e.n: e.tool for e in rows if not e.undo and e.state is EffectState.COMPENSATED}
    parked = await store.parked.of_run(run)
    asked = await store.events.requests(run, sorted(gone))
    back = [{"effect": n, "tool": tool, "arguments": asked.get(n, "")} for n, tool in sorted(gone.items())]
    standing = [
        effect | ({"parked": True} if effect["effect"] in parked else {})
        for effect in undo.get("effects", [])
        if effect["effect"] not in gone
    ]
    return (
        undo
        | {"count": undo.get("count", 0) - len(undo.get("effects", [])) + len(standing)}
        | {
            "effects": standing,
            "taken_back": back,
        }
    )


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


def _lines(terminal: Terminal, workflow: str, seen: dict[str, Any]) -> Iterator[str]:
    if invalid := seen.get("invalid"):
        yield f"{workflow}: invalid"
        yield f"invalid: {invalid}"
        return
    yield f"{workflow}: {'open' if seen['open'] else 'ended'}"
    if pruned := seen.get("pruned"):
        yield f"pruned {pruned}: its records were removed, and it can no longer be undone"
    if status := seen.get("status"):
        yield f"state {state_words(status)}"
        yield "  ".join(f"{name} {text}" for name, _, _, text in budget_rows(seen["budget"]["budget"], status.usage))
        for request in status.pending:
            for line, _ in request_lines(workflow, request, status.pending):
                yield from terminal.wrapped(line)
            yield from (f"    {command}" for command in commands(workflow, request))
    for decision in seen.get("decisions", []):
        yield from _decision_lines(decision)
    undo = seen.get("undo", {})
    if effects := undo.get("effects", []):
        yield f"can be undone, newest first (backstay undo {shell_words(workflow)}):"
        yield from (f"  {line}" for effect in effects for line in preview_lines(effect))
    for effect in undo.get("taken_back", []):
        yield f"taken back: {effect['effect']}. {effect['tool']} {effect['arguments']}".rstrip()
    if result := seen.get("result"):
        yield f"outcome {result.outcome}"
        back = {effect["effect"] for effect in undo.get("taken_back", [])}
        yield from (f"undo of {undone_line(u)}" for u in result.undone if u.by_hand and u.effect not in back)
        yield result_text(result)
    if error := seen.get("error"):
        yield error
