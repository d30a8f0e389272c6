"""Say where the arguments of the model's calls came from: keep what it was told, and find values in that."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from activities.model.functions import NAMES
from activities.model.transcript import Said, Transcript
from activities.payloads import apart
from activities.records import Records
from backstay.provenance.index import Index, texts_in
from backstay.provenance.lookup import Lookup
from backstay.provenance.source import Source
from backstay.task.context import ContextItem
from backstay.tools.tool import Tool
from toolbox.catalog.catalog import Catalog

KEPT_BYTES = 128 << 20
"""How much memory the indexes of all runs take on a worker; others are built again from the store."""
HITS = "!engine.search_tools"
DESCRIBED = "operator"
"""What trusted servers say of their tools: the operator vouches for it."""
PROGRAM = ">"


def source_of_tool(tool: Tool, ref: str | None = None) -> Source:
    """Return the source that a tool's answer is; which answer it was matters where others wrote it."""
    return Source(kind="tool", tool=tool.name, ref=ref if tool.content == "others" else None, content=tool.content)


def said_by(
    transcript: Transcript, append: Iterable[ContextItem], items: Iterable[Mapping[str, Any]], catalog: Catalog
) -> list[Said]:
    """Return whose words the model is told with what the workflow appends."""
    called = {call["id"]: call["function"] for item in transcript.items for call in item.get("calls", ())}
    known = {said.ref for said in transcript.said}
    found = (_said(added, item, called, known, catalog) for added, item in zip(append, items, strict=True))
    return [said for said in found if said is not None]


def _said(
    added: ContextItem,
    item: Mapping[str, Any],
    called: Mapping[str, Mapping[str, str]],
    known: AbstractSet[str | None],
    catalog: Catalog,
) -> Said | None:
    text = str(item.get("text", ""))
    if added.kind == "tools":
        found = (catalog.definitions.get(name) for name in item.get("tools", ()))
        trusted = all(definition is not None and definition.trusted for definition in found)
        return Said(DESCRIBED if trusted else HITS, added.ref)
    if added.kind == "message":
        return Said("!person" if added.unverified else "person", None, text)
    if added.kind != "answer":
        # What the engine tells may quote a tool or a person.
        return Said("!engine.told", None, text)
    function = called.get(added.call_id or "", {})
    name = function.get("name", "")
    if name in NAMES:
        return _built_in(name, added, text, function.get("arguments", ""), known)
    definition = catalog.by_function.get(name) or catalog.definitions.get(name)
    tool = Tool(name=name or "engine.unknown") if definition is None else definition.tool
    return Said(source_of_tool(tool, added.ref).code, added.ref, None if added.ref else text)


def _built_in(name: str, added: ContextItem, text: str, arguments: str, known: AbstractSet[str | None]) -> Said | None:
    """Return whose words the answer of one of the engine's own functions is."""
    if name == "ask_person":
        return Said("!person" if added.unverified else "person", None, text)
    if name == "run_program":
        return Said(PROGRAM, added.ref, None if added.ref else text)
    if name == "read_result" and any(ref and ref in arguments for ref in known):
        # What is read again was told when it was first answered.
        return None
    return Said(f"!engine.{name}", added.ref, None if added.ref else text)


@dataclass
class _Traced:
    """Hold the index of one run, and how much of its transcript it covers."""

    index: Index = field(default_factory=Index)
    before: str = ""
    covered: tuple[Said, ...] = ()
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)


class Tracing:
    """Keep the indexes of the runs that this worker serves, and build them from the store where they are missing."""

    def __init__(self, records: Records) -> None:
        """Begin with none."""
        self.records = records
        self._kept: OrderedDict[str, _Traced] = OrderedDict()

    async def lookup(self, run: str, transcript: Transcript) -> Lookup:
        """Return how to find values in all that the model of a run was told up to here."""
        traced = self._kept.setdefault(run, _Traced())
        self._kept.move_to_end(run)
        async with traced.busy:
            if not await self._advance(run, traced, transcript):
                fresh = _Traced(busy=traced.busy)
                await self._advance(run, fresh, transcript)
                self._kept[run] = traced = fresh
        self._make_room()
        return Lookup(traced.index)

    async def _advance(self, run: str, traced: _Traced, transcript: Transcript) -> bool:
        """Cover the rest of a transcript; return False when the index covers what is no part of it."""
        older: list[tuple[Said, ...]] = []
        before = transcript.before
        while before != traced.before:
            if not before:
                return False
            piece = await self.records.store.blobs.of(run).get_json(before)
            older.append(tuple(Said(*said) for said in piece["said"]))
            before = piece["older"] or ""
        chain = [*reversed(older), transcript.said]
        if chain[0][: len(traced.covered)] != traced.covered:
            return False
        new = [*chain[0][len(traced.covered) :], *(said for part in chain[1:] for said in part)]
        for said in new:
            await self._add(run, traced.index, said)
        traced.before, traced.covered = transcript.before, transcript.said
        return True

    async def _add(self, run: str, index: Index, said: Said) -> None:
        if said.ref is None:
            index.add("!engine.run_program" if said.code == PROGRAM else said.code, said.text or "")
            return
        codes = [said.code]
        if said.code in {HITS, DESCRIBED}:
            payload: Any = (await self.records.store.blobs.of(run).get_json(said.ref))["hits"]
        else:
            payload = await self.records.shown(run, said.ref)
        if said.code == PROGRAM:
            codes = (await self.records.record(run, said.ref)).get("read") or ["model"]
        for code in codes:
            await apart(payload, lambda code=code: index.add(code, texts_in(payload)))

    def _make_room(self) -> None:
        size = sum(traced.index.size for traced in self._kept.values())
        while size > KEPT_BYTES and len(self._kept) > 1:
            size -= self._kept.popitem(last=False)[1].index.size
