"""The commands that look: list and show."""

import asyncio
import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from temporalio.client import WorkflowExecution
from temporalio.service import RPCError

from backstay.cli.flags import Output, Workflow
from backstay.cli.render import budget_rows, commands, request_lines, result_text
from backstay.cli.session import books, has_books, session
from backstay.cli.terminal import Terminal
from backstay.client import Backstay, Run
from backstay.client.failures import of_rpc
from backstay.errors import BackstayError, RunNotFound, StoreUnavailable, Unreachable
from backstay.settings import Settings
from backstay.task.result import Result

_QUERY = "WorkflowType IN ('RunTask', 'UndoRun')"


async def list_runs(*, limit: int = 20, output: Output = "text") -> int:
    """List the runs that began last, from Temporal where it can be reached, else from the store.

    Parameters
    ----------
    limit
        How many at most.
    """
    settings = Settings.load()
    terminal = Terminal()
    try:
        async with session(settings) as backstay:
            rows = await _visible(backstay, limit)
        await _mark_pruned(settings, rows)
    except Unreachable as error:
        if not has_books(settings):
            raise
        terminal.say(f"{error}; this is what the store remembers", "yellow")
        async with books(settings) as store:
            rows = [_kept(row) for row in await store.runs.newest(limit)]
    if output == "json":
        terminal.result_json(rows)
    else:
        for row in rows:
            waits = f"{row['pending']} waiting" if row["pending"] else ""
            terminal.result(f"{row['started']}  {row['state']:<10} {waits:<10} {row['id']}  {row['text']}")
        if not rows:
            terminal.say("no runs yet; start one with: backstay run TEXT")
    return 0


async def show(workflow: Workflow, *, output: Output = "text") -> int:
    """Show one run: state, budget, what waits with the commands that decide it, and what undo would do."""
    settings = Settings.load()
    terminal = Terminal()
    try:
        async with session(settings) as backstay:
            seen = await _seen(backstay.run(workflow))
        if not seen["open"]:
            with contextlib.suppress(StoreUnavailable):
                row = await _recorded(settings, workflow)
                if row is not None and row.pruned_at is not None:
                    # What the run itself still shows can no longer be taken back.
                    seen = seen | {"undo": {}, "pruned": _moment(row.pruned_at)}
    except (RunNotFound, Unreachable) as error:
        seen = await _remembered(settings, workflow)
        if seen is None:
            raise error from None
        terminal.say(f"{error}; this is what the store remembers", "yellow")
    if output == "json":
        terminal.result_json({name: _plain(value) for name, value in seen.items()})
    else:
        for line in _lines(workflow, seen):
            terminal.result(line)
    return 0


async def _visible(backstay: Backstay, limit: int) -> list[dict[str, Any]]:
    try:
        found = [one async for one in backstay.client.list_workflows(_QUERY, limit=limit)]
    except RPCError as error:
        raise of_rpc(error, "") from None
    return list(await asyncio.gather(*(_row(backstay, one) for one in found)))


async def _row(backstay: Backstay, one: WorkflowExecution) -> dict[str, Any]:
    known = {pair.key.name: pair.value for pair in one.typed_search_attributes}
    status = one.status.name.lower() if one.status else "open"
    text: str | None = None
    with contextlib.suppress(RPCError, ValueError):  # the list is useful without the text
        text = await (await backstay.client.get_workflow_handle(one.id, run_id=one.run_id).describe()).static_summary()
    return {
        "id": one.id,
        "run_id": one.run_id,
        "state": known.get("BackstayState", status) if status == "running" else status,
        "pending": known.get("BackstayPending", 0) if status == "running" else 0,
        "started": one.start_time.astimezone(UTC).strftime("%Y-%m-%d %H:%M"),
        "text": text or "",
    }


def _kept(row: Any) -> dict[str, Any]:
    return {
        "id": row.workflow_id,
        "run_id": row.workflow_run_id,
        "state": "pruned" if row.pruned_at else row.result["outcome"] if row.result else row.state,
        "pending": 0,
        "started": _moment(row.opened_at),
        "text": row.text,
    }


async def _seen(run: Run) -> dict[str, Any]:
    """Ask the run; when it failed or no worker answers, say what Temporal itself knows."""
    seen: dict[str, Any] = {"open": await run.is_open()}
    seen["status"] = await run.status()
    seen["budget"] = await run.budget()
    seen["undo"] = await run.preview()
    if not seen["open"]:
        try:
            seen["result"] = await run.result()
        except BackstayError as error:
            seen["error"] = f"{type(error).__name__}: {error}"
    return seen


async def _remembered(settings: Settings, workflow: str) -> dict[str, Any] | None:
    row = await _recorded(settings, workflow)
    if row is None:
        return None
    if row.pruned_at is not None:
        return {"open": False, "pruned": _moment(row.pruned_at)}
    return {"open": row.state == "open", "result": Result.model_validate(row.result) if row.result else None}


async def _recorded(settings: Settings, workflow: str) -> Any | None:
    if not has_books(settings):
        return None
    async with books(settings) as store:
        return await store.runs.get(workflow)


async def _mark_pruned(settings: Settings, rows: list[dict[str, Any]]) -> None:
    """Add what only the store knows; a store that does not answer takes nothing from what Temporal says."""
    if not has_books(settings):
        return
    with contextlib.suppress(StoreUnavailable):
        async with books(settings) as store:
            recorded = [await store.runs.get(row["id"], row["run_id"]) for row in rows]
        for row, known in zip(rows, recorded, strict=True):
            if known is not None and known.pruned_at is not None:
                row["state"] = "pruned"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def _lines(workflow: str, seen: dict[str, Any]) -> Iterator[str]:
    yield f"{workflow}: {'open' if seen['open'] else 'ended'}"
    if pruned := seen.get("pruned"):
        yield f"pruned {pruned}: what it recorded is gone, and it can no longer be taken back"
    if status := seen.get("status"):
        yield f"state {status.state}, step {status.step}"
        yield "  ".join(f"{name} {text}" for name, _, _, text in budget_rows(seen["budget"]["budget"], status.usage))
        for request in status.pending:
            yield from (line for line, _ in request_lines(request))
            yield from (f"    {command}" for command in commands(workflow, request))
    slots = seen.get("undo", {}).get("effects", [])
    if slots:
        yield f"undo would take back, last first (backstay undo {workflow}):"
        for slot in slots:
            doubt = ", outcome unknown" if slot.get("unknown") else ""
            how = slot["shown"] or "CANNOT BE UNDONE"
            yield f"  {slot['effect']}. {slot['tool']} (step {slot['step']}{doubt}): {how}"
    if result := seen.get("result"):
        yield f"outcome {result.outcome}"
        yield result_text(result)
    if error := seen.get("error"):
        yield error


def _plain(value: Any) -> Any:
    return value.plain() if hasattr(value, "plain") else value
