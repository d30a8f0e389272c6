"""Keep the index of each run: where all that its model was told stood."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from activities.model.transcript import DESCRIBED, HITS, PROGRAM, RECALLED, Transcript, Utterance
from activities.payloads import ASKED, apart, echo_of, vouches
from activities.records import Records
from backstay.provenance.echo import MOST, UNKNOWN, Echo
from backstay.provenance.index import MarkIndex, texts_in
from backstay.provenance.lookup import Lookup
from backstay.provenance.source import MODEL, doubted
from backstay.stored_texts import holds_stored_text
from backstay.tools.tool import TRUSTED

KEPT_BYTES = 128 << 20
"""How much memory the indexes of all runs take on a worker; others are built again from the store."""


@dataclass
class _RunIndex:
    """Hold the index of one run, and how much of its transcript it covers."""

    index: MarkIndex = field(default_factory=lambda: MarkIndex(whole=True))
    before: str = ""
    covered: tuple[Utterance, ...] = ()
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)


class Tracing:
    """Keep the indexes of the runs that this worker serves, and build them from the store where they are missing."""

    def __init__(self, records: Records) -> None:
        """Begin with none."""
        self.records = records
        self._kept: OrderedDict[str, _RunIndex] = OrderedDict()

    async def lookup(self, run: str, transcript: Transcript) -> Lookup:
        """Return how to find values in all that the model of a run was told up to here."""
        traced = self._kept.setdefault(run, _RunIndex())
        self._kept.move_to_end(run)
        async with traced.busy:
            if not await self._advance(run, traced, transcript):
                fresh = _RunIndex(busy=traced.busy)
                await self._advance(run, fresh, transcript)
                self._kept[run] = traced = fresh
        self._make_room()
        return Lookup(traced.index)

    async def _advance(self, run: str, traced: _RunIndex, transcript: Transcript) -> bool:
        """Cover the rest of a transcript; return False when the index covers what is not part of it."""
        older: list[tuple[Utterance, ...]] = []
        before = transcript.before
        while before != traced.before:
            if not before:
                return False
            piece = await self.records.store.blobs.of(run).get_json(before)
            older.append(tuple(Utterance(*said) for said in piece["said"]))
            before = piece["older"] or ""
        chain = [*reversed(older), transcript.said]
        if chain[0][: len(traced.covered)] != traced.covered:
            return False
        new = [*chain[0][len(traced.covered) :], *(said for part in chain[1:] for said in part)]
        for said in new:
            await self._add(run, traced.index, said)
        traced.before, traced.covered = transcript.before, transcript.said
        return True

    async def _add(self, run: str, index: MarkIndex, said: Utterance) -> None:
        if said.ref is None:
            index.add("!engine.run_program" if said.code == PROGRAM else said.code, said.text or "")
            return
        codes = [said.code]
        if said.code in {HITS, DESCRIBED}:
            hits = (await self.records.store.blobs.of(run).get_json(said.ref))["hits"]
            await apart(hits, lambda: _add_hits(index, hits, said.code))
            return
        payload = await self.records.shown(run, said.ref)
        record = await self.records.record(run, said.ref)
        if said.code == RECALLED:
            await apart(payload, lambda: _add_recalled(index, payload, record))
            return
        echo = echo_of(record)
        if said.code == PROGRAM:
            codes = record.get("read") or ["model"]
            echo = _echo_of_program(said.asked)
        if not vouches(record) or (said.code == PROGRAM and echo is None):
            codes = [doubted(code) for code in codes]
        for code in codes:
            await apart(payload, lambda code=code: index.add_answer(code, payload, echo))

    def _make_room(self) -> None:
        size = sum(traced.index.size for traced in self._kept.values())
        while size > KEPT_BYTES and len(self._kept) > 1:
            size -= self._kept.popitem(last=False)[1].index.size


def _add_hits(index: MarkIndex, hits: list[dict[str, Any]], code: str) -> None:
    """Add what servers say of their tools; the operator vouches for trusted ones, but not for why one is away."""
    told = hits if code == HITS else ()
    said: dict[str, list[Any]] = {DESCRIBED: [], HITS: [hit["reason"] for hit in told if hit.get("reason")]}
    for hit in hits:
        texts = {name: text for name, text in hit.items() if name not in {TRUSTED, "reason"}}
        # Workers of before kept of no hit whether it is trusted, and the code is of them all.
        said[DESCRIBED if hit.get(TRUSTED, code == DESCRIBED) else HITS].append(texts)
    for whose, texts in said.items():
        # Where others have said nothing, what the model says next is still its own.
        if texts:
            index.add(whose, texts_in(texts))


def _add_recalled(index: MarkIndex, payload: Any, record: Mapping[str, Any]) -> None:
    """Add what was recalled, each item under its recorded source; a model's own words vouch for nothing."""
    items, codes = payload.get("items", ()), record.get("read") or ()
    asked: list[Any] = record.get(ASKED) or [None] * len(codes)
    for item, code, arguments in zip(items, codes, asked, strict=True):
        if code != MODEL:
            counts = doubted(code) if arguments == UNKNOWN else code
            echo = Echo(arguments) if arguments and arguments != UNKNOWN else None
            index.add_answer(counts, _structured(item["text"]), echo, recalled=True)


def _structured(text: str) -> Any:
    """Return what a string holds: which fields of a table vouch for what is told by their names."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _echo_of_program(arguments: str | None) -> Echo | None:
    """Return how to recognise what was in a program already; None where that is not all known."""
    if arguments is None or len(arguments) > MOST:
        return None
    try:
        asked = json.loads(arguments)
    except ValueError:
        return None
    return None if holds_stored_text(asked) else Echo(asked)
