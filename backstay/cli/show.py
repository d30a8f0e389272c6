"""The commands `list` and `show`: what runs there are, and the state of one."""

import asyncio
import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import Parameter
from temporalio.client import WorkflowExecution
from temporalio.service import RPCError

from backstay.approvals.decided_words import decided_words
from backstay.approvals.view import commands
from backstay.approvals.whole import with_all
from backstay.cli.flags import Output, Workflow
from backstay.cli.render import (
    budget_rows,
    preview_lines,
    request_lines,
    result_text,
    state_words,
    undone_line,
)
from backstay.cli.session import has_store, open_request, open_store, session, session_of, stored_run
from backstay.cli.terminal import Terminal
from backstay.client import Backstay, Run
from backstay.client.executions import RUNS
from backstay.client.failures import error_from_rpc
from backstay.effects.effect import EffectState
from backstay.errors import BackstayError, RunNotFound, StoreUnavailable, TaskInvalid, Unreachable
from backstay.frozen import Frozen
from backstay.rooms import room
from backstay.settings import Settings
from backstay.shown import one_line, shell_words
from backstay.task.result import Result

Whole = Annotated[str | None, Parameter(help="ID of an open request, such as r1, to show whole.")]
_LOOKED_AT = 100
"""How many open and how many closed runs are looked at, so that the newest are found."""


async def list_runs(*, limit: int = 20, output: Output = "text") -> None:
    """List the newest runs, from Temporal or, when it cannot be reached, from the store.

    Parameters
    ----------
    limit
        The most runs to list.
    """
    settings, terminal = Settings.load(), Terminal()
    try:
        async with session(settings) as backstay:
            rows = await _visible(backstay, limit)
        await _mark_pruned(settings, rows)
    except Unreachable as error:
        if not has_store(settings):
            raise
        terminal.say(f"{error}; shown from the store", "yellow")
        async with open_store(settings) as store:
            rows = [_stored(row) for row in await store.runs.newest(limit)]
    terminal.results(output, rows, map(_line, rows))
    if not rows and output == "text":
        terminal.say("no runs yet; start one with: backstay run TEXT")


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
                    seen = seen | {"undo": {}, "pruned": _minute(row.pruned_at)}
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
        return {"open": False, "pruned": _minute(row.pruned_at)}
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


async def _visible(backstay: Backstay, limit: int) -> list[dict[str, Any]]:
    try:
        # Temporal lists all open runs before the closed ones, which it sorts by their end.
        found = [
            execution
            for which in ("=", "!=")
            async for execution in backstay.client.list_workflows(
                f"({RUNS}) AND ExecutionStatus {which} 'Running'", limit=max(limit, _LOOKED_AT)
            )
        ]
    except RPCError as error:
        raise error_from_rpc(error, "") from None
    found = sorted(found, key=lambda execution: execution.start_time, reverse=True)[:limit]
    return list(await asyncio.gather(*(_row(backstay, execution) for execution in found)))


async def _row(backstay: Backstay, execution: WorkflowExecution) -> dict[str, Any]:
    known = {pair.key.name: pair.value for pair in execution.typed_search_attributes}
    status = execution.status.name.lower() if execution.status else "open"
    text = known.get("BackstayTask")
    if text is None:
        handle = backstay.client.get_workflow_handle(execution.id, run_id=execution.run_id)
        with contextlib.suppress(RPCError, ValueError):  # the list is useful without the text
            text = await (await handle.describe()).static_summary()
    return {
        "id": execution.id,
        "run_id": execution.run_id,
        "state": await _state(backstay, execution, status, known),
        "pending": known.get("BackstayPending", 0) if status == "running" else 0,
        "started": _minute(execution.start_time.timestamp()),
        "text": text or "",
    }


async def _state(backstay: Backstay, execution: WorkflowExecution, status: str, known: dict[str, Any]) -> str:
    """Return where a run stands; to Temporal every run that ended by itself is completed, whatever its outcome."""
    if status == "running":
        return str(known.get("BackstayState", status))
    if status != "completed":
        return status
    handle = backstay.client.get_workflow_handle(execution.id, run_id=execution.run_id)
    with contextlib.suppress(Exception):  # a result that cannot be read takes nothing from the list
        result: Any = await handle.result(follow_runs=False)
        return str(result.get("outcome") or status) if isinstance(result, dict) else status
    return status


def _stored(row: Any) -> dict[str, Any]:
    return {
        "id": row.workflow_id,
        "run_id": row.workflow_run_id,
        "state": "pruned" if row.pruned_at else row.result["outcome"] if row.result else row.state,
        "pending": 0,
        "started": _minute(row.opened_at),
        "text": row.text,
    }


async def _mark_pruned(settings: Settings, rows: list[dict[str, Any]]) -> None:
    """Add what only the store knows; a store that does not answer takes nothing from what Temporal says."""
    if not rows or not has_store(settings):
        return
    if settings.database_url is None:
        runs = {f"{row['id']}/{row['run_id']}": row for row in rows}
        pruned = await asyncio.to_thread(room("store.glance").pruned_among, settings.home / "backstay.db", runs)
        for run in pruned or ():
            runs[run]["state"] = "pruned"
        if pruned is not None:
            return
    with contextlib.suppress(StoreUnavailable):
        async with open_store(settings) as store:
            recorded = [await store.runs.get(row["id"], row["run_id"]) for row in rows]
        for row, known in zip(rows, recorded, strict=True):
            if known is not None and known.pruned_at is not None:
                row["state"] = "pruned"


def _minute(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def _line(row: dict[str, Any]) -> str:
    waits = f"{row['pending']} waiting" if row["pending"] else ""
    return f"{row['started']}  {row['state']:<10} {waits:<10} {row['id']}  {row['text']}"


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
