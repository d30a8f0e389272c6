"""Say where the arguments of a program's calls came from: its own text, what it read, or what it computed from that."""

import json
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from activities.payloads import ASKED, PayloadRecords, apart
from activities.programs.journals import Journal, Journals
from backstay.errors import ArgumentsInvalid
from backstay.provenance.echo import UNKNOWN, Echo
from backstay.provenance.index import MarkIndex
from backstay.provenance.lookup import Lookup
from backstay.provenance.source import MODEL, Source, is_others
from backstay.provenance.targets import shape_of
from backstay.tools.program import Program
from sandbox.programs.frames import RESULT, Round

KEPT = 32
"""Indexes of at most this many programs stay in memory; others are built again from their journals."""
MOST_LITERALS = 2000
_LITERAL = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"|(\d[\d_.]*)")
_UNKNOWN = Source(kind="tool", tool="engine.unknown", content="others")
Literals = tuple[tuple[str, tuple[str, ...]], ...]
"""Texts of a program, and the codes of the places where they were before the model wrote them into it."""


def literals_of(source: str, lookup: Lookup) -> Literals:
    """Return what a program's text holds that the model had read somewhere."""
    texts = dict.fromkeys("".join(found.groups(default="")) for found in _LITERAL.finditer(source))
    parts = (part for text in (source, *texts) for part in lookup.parts_of(text, shape_of("", text)))
    found = dict.fromkeys((" ".join(part.words), part.codes) for part in parts if part.codes)
    return tuple(found)[:MOST_LITERALS]


@dataclass
class _ProgramIndex:
    """Hold the index of one program, and up to which round of its journal."""

    index: MarkIndex
    journal: str = ""
    read: dict[str, None] = field(default_factory=dict)
    """The codes of what it has read, as a program's own sources."""
    asked: dict[int, tuple[Source, Any]] = field(default_factory=dict)
    """The calls of its last batch, which wait for their answers, with their arguments."""


class ProgramTracing:
    """Keep the indexes of the programs that this worker runs."""

    def __init__(self, payloads: PayloadRecords, journals: Journals) -> None:
        """Read answers from the journals."""
        self.payloads = payloads
        self.journals = journals
        self._kept: OrderedDict[str, _ProgramIndex] = OrderedDict()

    async def lookup(self, run: str, ref: str, program: Program, journal: Journal) -> Lookup:
        """Return how to find values in all that a program has read up to here."""
        traced = await self._upto(run, ref, program, journal)
        return Lookup(traced.index, computed=_computed(traced.read))

    async def read(self, run: str, ref: str, program: Program, journal: Journal) -> tuple[str, ...]:
        """Return as what a program's own result counts: as computed from what it has read."""
        return _computed((await self._upto(run, ref, program, journal)).read)

    async def _upto(self, run: str, ref: str, program: Program, journal: Journal) -> _ProgramIndex:
        traced = self._kept.get(f"{run}/{ref}")
        new = None if traced is None else await self.journals.since(run, journal.ref, traced.journal)
        if traced is None or new is None:
            traced, new = _ProgramIndex(_begun(program)), await self.journals.rounds(run, journal.ref)
        for done in new:
            await self._add(run, program, traced, done)
        traced.journal = journal.ref
        self._kept[f"{run}/{ref}"] = traced
        self._kept.move_to_end(f"{run}/{ref}")
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return traced

    async def _add(self, run: str, program: Program, traced: _ProgramIndex, done: Round) -> None:
        """Add the answers that a round began with, and note what it asks."""
        sent = json.loads(done.sent) if done.sent else {}
        for result in sent.get("results", ()):
            asked, arguments = traced.asked.get(result["i"], (_UNKNOWN, None))
            if "ok" not in result:
                # An error may quote anything.
                asked = asked.model_copy(update={"content": "others"})
            traced.read[Source(kind="program", tool=asked.tool, content=asked.content).code] = None
            payload = result.get("ok", result.get("error"))
            await apart(payload, partial(_answered, traced.index, asked, arguments, payload))
        came = json.loads(done.came) if done.came else {}
        asks: Sequence[dict[str, Any]] = came.get("calls") or ()
        traced.asked = {call["i"]: await self._source(run, program, call) for call in asks}

    async def _source(self, run: str, program: Program, call: dict[str, Any]) -> tuple[Source, Any]:
        """Return whose words the answer of a call will be, and the arguments that it may repeat."""
        name, arguments, content = call["tool"], call.get("args"), "others"
        if name == RESULT:
            try:
                record = await self.payloads.record(run, str(call["args"].get("ref")))
            except ArgumentsInvalid:
                return _UNKNOWN, None
            name, arguments = str(record["label"]), record.get(ASKED)
        tool = program.tools.get(name)
        if tool is not None and arguments != UNKNOWN:
            content = tool.content
        return Source(kind="tool", tool=name, content=content), arguments


def _answered(index: MarkIndex, source: Source, arguments: Any, payload: Any) -> None:
    """Add an answer; for what it only repeats of the arguments of its call it does not vouch."""
    echo = Echo(arguments) if arguments and source.content == "own" else None
    index.add_answer(source.code, payload, echo)


def _begun(program: Program) -> MarkIndex:
    index = MarkIndex()
    index.add(MODEL, program.source)
    for text, codes in program.literals:
        for code in codes:
            index.add(code, text)
    return index


def _computed(read: dict[str, None]) -> tuple[str, ...]:
    """Return what a computed value counts as: as others' words as soon as others' words were read."""
    return tuple([code for code in read if is_others(code)] or read)
