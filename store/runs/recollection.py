"""Tell what is remembered of runs: find it by words, and read its text where the record has it."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from backstay.canonical import canonical
from backstay.errors import BackstayError, StoreUnavailable
from backstay.memory.item import TOLD_CHARACTERS, ItemKind, MemoryItem, RecalledItem
from backstay.memory.words import asked_words, excerpt
from backstay.tools.recipients import call_line
from store.blobs.blobs import BlobStore
from store.memory.items import MemoryItems
from store.runs.events import Events
from store.runs.runs import RunRow, Runs

MOST_SHOWN = 20_000
"""Characters of one item that a person is shown."""
_MOST_FOUND = 40
_ASKED = "asked"
"""The field of a stored result that holds the arguments of the call which it answers."""


class Recollection:
    """Read the memory of one user at a time; items that were pruned or forgotten are not in it."""

    def __init__(self, items: MemoryItems, runs: Runs, events: Events, blobs: BlobStore) -> None:
        """Read in these parts of the store."""
        self.items = items
        self._runs = runs
        self._events = events
        self._blobs = blobs

    async def search(
        self, owner: str, query: str, *, limit: int = 8, without: str = "", most: int = TOLD_CHARACTERS
    ) -> list[RecalledItem]:
        """Return what answers a question best, best first, with the given number of characters of each text."""
        found = await self.items.search(owner, query, limit=max(1, min(limit, _MOST_FOUND)), without=without)
        return await self.told(found, asked_words(query), most)

    async def newest(
        self, owner: str, *, kind: ItemKind, session_id: str | None = None, limit: int = 8
    ) -> list[RecalledItem]:
        """Return the newest items of one kind."""
        return await self.told(await self.items.newest(owner, kind=kind, session_id=session_id, limit=limit))

    async def show(self, owner: str, number: int) -> RecalledItem | None:
        """Return one item of a user with its text, cut only where it is very long; None where there is none."""
        item = await self.items.get(owner, number)
        return None if item is None else next(iter(await self.told([item], (), MOST_SHOWN)), None)

    async def told(
        self, items: Sequence[MemoryItem], wanted: Sequence[str] = (), most: int = TOLD_CHARACTERS
    ) -> list[RecalledItem]:
        """Return items with their texts; those of which the record has nothing any more are left out."""
        told: list[RecalledItem] = []
        rows: dict[str, RunRow | None] = {}
        for item in items:
            if item.run not in rows:
                workflow_id, _, workflow_run_id = item.run.rpartition("/")
                rows[item.run] = await self._runs.get(workflow_id, workflow_run_id)
            row = rows[item.run]
            if row is None or row.pruned_at is not None:
                continue
            text, asked = await self._text(item, row)
            if text:
                # A long text of strangers must not hold up the runs of everybody.
                part = await asyncio.to_thread(excerpt, text, wanted, most)
                told.append(RecalledItem(item=item, text=part, is_cut=part != text, asked=asked))
        return told

    async def _text(self, item: MemoryItem, row: RunRow) -> tuple[str, Any]:
        match item.kind:
            case "run_metadata":
                return about_text(row), None
            case "final_answer":
                return answer_text(row.result or {}), None
            case "tool_call":
                events = await self._events.numbered(item.run, [item.n])
                return (call_text(events[0].data) if events else ""), None
            case "tool_output":
                return await self._output(item)

    async def _output(self, item: MemoryItem) -> tuple[str, Any]:
        blobs = self._blobs.of(item.run)
        try:
            record = await blobs.record(item.ref)
            payload = await blobs.result(item.ref)
            return await asyncio.to_thread(output_text, payload), record.get(_ASKED)
        except StoreUnavailable:
            raise
        except BackstayError:
            # It was erased, or this worker does not have it.
            return "", None


def about_text(row: RunRow) -> str:
    """Return what a run was about, and how it ended."""
    if not row.text:
        return ""
    outcome = str((row.result or {}).get("outcome") or "")
    more = canonical(row.metadata) if row.metadata else ""
    return " ".join(part for part in (row.text, more, f"({outcome})" if outcome else "") if part)


def answer_text(result: dict[str, Any]) -> str:
    """Return what a run answered."""
    said = [str(result.get("final_summary") or "")]
    said += [canonical(result[name]) for name in ("raw_outputs", "output") if result.get(name)]
    return " ".join(filter(None, said))


def call_text(data: dict[str, Any]) -> str:
    """Return what was asked of a tool, from the event of the call."""
    arguments = data.get("arguments")
    return "" if arguments is None else call_line(str(data.get("tool", "")), arguments)


def output_text(payload: Any) -> str:
    """Return what a tool answered, as text."""
    return payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
