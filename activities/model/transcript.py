"""The model's view of a run: an append-only chain of stored pieces, of which history holds the last ref."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from activities.records import Records
from backstay.canonical import canonical
from backstay.task.context import ContextItem, weigh

MOST_VISIBLE = 64
CACHED = 256
Item = dict[str, Any]


@dataclass(frozen=True)
class Transcript:
    """Hold the items of a chain, oldest first."""

    ref: str
    items: tuple[Item, ...]
    weight: int = 0
    """Bytes of all items, added up piece by piece so that a step does not weigh what earlier ones have weighed."""

    @property
    def started(self) -> bool:
        """Return whether the model has already said anything; plain text is taken for a finish then."""
        return any(item["kind"] == "said" for item in self.items)

    def visible(self) -> list[str]:
        """Return the tools the model sees: only appended to; when full, the oldest never-called one goes."""
        called = {name for item in self.items for name in item.get("tools_called", ())}
        names: dict[str, None] = {}
        for item in self.items:
            for name in item.get("tools", ()):
                names.setdefault(name)
                if len(names) > MOST_VISIBLE:
                    idle = next((other for other in names if other not in called and other != name), next(iter(names)))
                    del names[idle]
        return list(names)


@dataclass
class Transcripts:
    """Load and extend transcripts; pieces read or written lately stay in memory."""

    records: Records
    recent: OrderedDict[tuple[str, str], Transcript] = field(default_factory=OrderedDict)

    async def begin(self, run: str, items: list[Item]) -> str:
        """Store the first piece and return its ref."""
        return (await self._stored(run, None, Transcript("", ()), items)).ref

    async def load(self, run: str, ref: str) -> Transcript:
        """Read a chain from its last piece back to its first."""
        found = self.recent.get((run, ref))
        if found is not None:
            self.recent.move_to_end((run, ref))
            return found
        pieces: list[tuple[str, list[Item]]] = []
        older: str | None = ref
        known: Transcript | None = None
        while older is not None and known is None:
            piece = await self.records.store.blobs.of(run).get_json(older)
            pieces.append((older, piece["items"]))
            older = piece["older"]
            known = self.recent.get((run, older)) if older is not None else None
        items = list(known.items if known is not None else ())
        for _, more in reversed(pieces):
            items.extend(more)
        return self._kept(run, Transcript(ref, tuple(items), weigh(items)))

    async def extend(self, run: str, transcript: Transcript, more: list[Item]) -> Transcript:
        """Add items as a new piece."""
        if not more:
            return transcript
        return await self._stored(run, transcript.ref, transcript, more)

    @staticmethod
    def ahead(transcript: Transcript, more: list[Item]) -> Transcript:
        """Return the transcript with items that are not stored yet; only for rendering."""
        return Transcript(transcript.ref, (*transcript.items, *more), transcript.weight + weigh(more))

    async def items_of(self, run: str, append: tuple[ContextItem, ...]) -> list[Item]:
        """Turn what the workflow appends into items, resolving refs to digests and hits."""
        return [await self._item(run, one) for one in append]

    async def _item(self, run: str, one: ContextItem) -> Item:
        if one.kind == "tools":
            hits = (await self.records.store.blobs.of(run).get_json(one.ref or ""))["hits"]
            item: Item = {"kind": "tools", "tools": [hit["tool"] for hit in hits if hit["available"]]}
            return item if one.call_id is None else item | {"call_id": one.call_id, "text": canonical({"tools": hits})}
        text = one.text if one.text is not None else canonical(await self.records.digest(run, one.ref or ""))
        if one.kind == "answer":
            return {"kind": "answer", "call_id": one.call_id, "text": text}
        return {"kind": one.kind, "text": text}

    async def _stored(self, run: str, older: str | None, before: Transcript, items: list[Item]) -> Transcript:
        ref = await self.records.store.blobs.of(run).put_json({"older": older, "items": items})
        return self._kept(run, Transcript(ref, (*before.items, *items), before.weight + weigh(items)))

    def _kept(self, run: str, transcript: Transcript) -> Transcript:
        self.recent[run, transcript.ref] = transcript
        while len(self.recent) > CACHED:
            self.recent.popitem(last=False)
        return transcript
