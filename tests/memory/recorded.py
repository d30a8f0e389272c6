"""Runs as workers leave them in a store, with what is remembered of them."""

import json
from typing import NamedTuple

from backstay.memory.item import MemoryItem
from backstay.memory.words import words_of
from backstay.task.event import Event
from store.blobs.shown import RECORD
from store.memory.items import NewItem
from store.runs.recollection import about_text, answer_text, call_text, output_text
from store.runs.runs import RunRow

NOON = 1_772_625_600.0
"""2026-03-04, noon by UTC."""
OTHERS = "!mail.read"


class Call(NamedTuple):
    tool: str
    request: str
    output: object
    source: str = OTHERS


class Recorded(NamedTuple):
    name: str
    task: str
    calls: tuple[Call, ...] = ()
    answer: str = ""


def record(store, connection, user, run, session=None):
    """Write one ended run and its items with what else the transaction writes; payloads are put before."""
    workflow_id, key = f"task-{run.name}", f"task-{run.name}/r"
    refs = [ref_of_output(call.output) for call in run.calls]
    events = [
        Event(
            n=n, name="action.called", at="2026-03-04T12:00:00.000+00:00", text=call.tool,
            data={"tool": call.tool, "arguments": json.loads(call.request), "summary_ref": ref},
        )
        for n, (call, ref) in enumerate(zip(run.calls, refs, strict=True), 1)
    ]  # fmt: skip
    result = {"outcome": "completed", "final_summary": run.answer}
    named = {"run": key, "workflow_id": workflow_id, "workflow_run_id": "r", "user_id": user, "text": run.task}
    store.runs.opened.within(connection, **named, opened={"model": "m", "started_by": user, "memory_of": user})
    store.events.append.within(connection, key, events)
    store.memory.items.keep.within(connection, key, items_of(key, user, run, refs, result, session))
    store.runs.closed.within(connection, key, result)


def items_of(key, user, run, refs, result, session=None):
    common = {"run": key, "owner": user, "at": NOON, "session_id": session}
    row = RunRow(
        run=key, workflow_id="w", workflow_run_id="r", user_id=user, text=run.task, state="closed", opened_at=NOON,
        opened={}, store="s", result=result,
    )  # fmt: skip
    found = [NewItem(MemoryItem(**common, n=0, kind="run_metadata", source="task"), words_of(about_text(row)))]
    for n, (call, ref) in enumerate(zip(run.calls, refs, strict=True), 1):
        data = {"tool": call.tool, "arguments": json.loads(call.request)}
        made = {**common, "n": n, "tool": call.tool}
        found.append(NewItem(MemoryItem(**made, kind="tool_call"), words_of(call_text(data))))
        output = MemoryItem(**made, kind="tool_output", ref=ref, source=call.source)
        found.append(NewItem(output, words_of(f"{call_text(data)} {output_text(call.output)}")))
    answer = MemoryItem(**common, n=len(refs) + 1, kind="final_answer")
    return [*found, NewItem(answer, words_of(answer_text(result)))]


def record_of_output(output):
    return {"kind": RECORD, "label": "tool", "digest": {"data": output}}


def ref_of_output(output):
    from store.blobs.shown import encode, ref_of

    return ref_of(encode(record_of_output(output)))


async def remember(store, user, *runs, session=None):
    """Record ended runs of a user."""
    for run in runs:
        for call in run.calls:
            await store.blobs.of(f"task-{run.name}/r").put_json(record_of_output(call.output))

    def work(connection):
        for run in runs:
            record(store, connection, user, run, session)

    await store.write(work)


def sources(found):
    """Which runs were found, in order, each once."""
    return list(dict.fromkeys(recalled.item.run.partition("/")[0].removeprefix("task-") for recalled in found))
