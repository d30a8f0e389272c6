"""The model's view of a run: an append-only chain of stored pieces, of which history holds the last ref."""

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from activities.model.functions import NAMES
from activities.payloads import PRIVATE
from activities.records import PERSON, Records
from backstay.canonical import canonical
from backstay.digests.cutting import size_of_text
from backstay.digests.long_texts import LEAST_CUT, shared
from backstay.digests.told import told as as_told
from backstay.provenance.source import Source
from backstay.shown import one_line
from backstay.task.context import BYTES_PER_TOKEN, MEDIA, ContextItem, as_earlier, shorten, weigh, weight
from backstay.task.media import within
from backstay.tools.tool import TRUSTED, Tool
from toolbox.catalog.catalog import Catalog

MOST_VISIBLE = 64
MOST_WINDOWS, LEAST_WINDOWS = 4, 2
"""A transcript that weighs four times what the model can be shown is cut to twice that."""
MOST_PIECES = 200
"""From this many pieces on, a run that follows others keeps their context in one piece of its own."""
CACHED = 256
STEP_ROOMS = 3
_TRIES = 3
_MEDIA_SHARE = 2
"""The pictures and PDFs of one answer may take so large a part of what a model can be shown."""
_NAMED = 5
"""This many tools that a search has found are named where there is no room for what is known of them."""
"""All answers of a step together may take this many times what one of them may."""
_OF_HITS = frozenset({"tool", "short_description", "parameters"})
Item = dict[str, Any]
HITS = "!engine.search_tools"
DESCRIBED = "operator"
"""What trusted servers say of their tools: the operator vouches for it."""
OF_OTHERS = "of_others"
"""The field of an item of found tools that says whether the operator does not vouch for all that is told of them."""
UNFLAGGED = "unflagged"
"""The field of such an item that names the tools whose hits, of an older worker, do not say who vouches for them."""
PROGRAM = ">"
RECALLED = "!engine.recall"
"""What earlier runs have left: each item has a source of its own, which the stored answer names."""


class Utterance(NamedTuple):
    """Hold whose words the model was told: a source's code, and the stored result or the text itself."""

    code: str
    ref: str | None
    text: str | None = None
    asked: str | None = None
    """The program that the answer was computed by: for what is in it as well, the answer does not vouch."""


@dataclass(frozen=True)
class Transcript:
    """Hold the items of a chain, oldest first."""

    ref: str
    items: tuple[Item, ...]
    weight: int = 0
    """Bytes of all items, added up piece by piece so that a step does not weigh what earlier ones have weighed."""

    unstored: tuple[Item, ...] = ()
    """The newest items, as long as they are not part of a stored piece."""

    forgotten: int = 0
    """How many of the oldest items are cut or gone for good: no model could be shown them any more."""

    said: tuple[Utterance, ...] = ()
    """Whose words the model was told, all of them: a value is known again long after its answer was cut."""

    unstored_said: tuple[Utterance, ...] = ()

    before: str = ""
    """Ref of a stored list of the messages before these."""

    pieces: int = 0
    """Of how many stored pieces it was read."""

    older: str = field(default="", compare=False)
    """Ref of the one that it was extended from; empty where it was read."""

    def earlier(self, system: Iterable[Item]) -> "Transcript":
        """Return what the run that follows this one is shown of it, after its own prompt."""
        items = (*system, *as_earlier(self.items))
        return replace(self, items=items, weight=weigh(items))

    def open_calls(self) -> list[str]:
        """Return the ids of the model's last calls that have no answer."""
        last = next((place for place in reversed(range(len(self.items))) if self.items[place]["kind"] == "said"), None)
        if last is None:
            return []
        answered = {item.get("call_id") for item in self.items[last + 1 :]}
        return [call["id"] for call in self.items[last].get("calls", ()) if call["id"] not in answered]

    def with_items(self, more: Iterable[Item], said: Iterable[Utterance] = ()) -> "Transcript":
        """Return the transcript with items that are not stored yet, and whose words they are."""
        more, said = tuple(more), tuple(said)
        return replace(
            self,
            items=(*self.items, *more),
            weight=self.weight + weigh(more),
            unstored=(*self.unstored, *more),
            said=(*self.said, *said),
            unstored_said=(*self.unstored_said, *said),
        )

    def cut(self, window: int) -> "Transcript":
        """Return the transcript without what no model can be shown when it is far longer than what it is shown.

        Without that, every step of a long run would cost more than the one before.
        """
        return self if self.weight <= MOST_WINDOWS * window else self.shortened(LEAST_WINDOWS * window)

    def shortened(self, most: int) -> "Transcript":
        """Return the transcript without its oldest items, so that it has at most the given number of bytes."""
        stay, gone, _ = shorten(list(self.items), most, self.weight)
        if not gone:
            return self
        # The functions that the model sees do not change because the search that found them is forgotten.
        called = sorted({name for item in self.items for name in item.get("tools_called", ())})
        seen: Item = {"kind": "tools", "tools": self.visible(), "tools_called": called}
        later = [item for item in stay if item["kind"] != "tools" or item.get("call_id") is not None]
        first = next((place for place, item in enumerate(later) if item["kind"] == "said"), len(later))
        items = (*later[:first], seen, *later[first:])
        return replace(self, items=items, weight=weigh(items), forgotten=self.forgotten + gone)

    @property
    def started(self) -> bool:
        """Return whether the model has answered before; plain text then counts as a finish."""
        return any(item["kind"] == "said" for item in self.items)

    @property
    def called(self) -> frozenset[str]:
        """Return the names of the functions that models have called."""
        return frozenset(call["function"]["name"] for item in self.items for call in item.get("calls", ()))

    @property
    def private_of(self) -> tuple[str, ...]:
        """Return the providers of what the model was told that not everybody may read."""
        return tuple(sorted({item[PRIVATE] for item in self.items if PRIVATE in item}))

    def last_said(self, by: str | None) -> Item | None:
        """Return what a model said last; None when it said nothing. Only entries of models.yaml sign what they say."""
        return next((item for item in reversed(self.items) if item["kind"] == "said" and item.get("by") == by), None)

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
    context_tokens: int = 60_000
    """How much of a transcript a model is shown at most."""
    recent: OrderedDict[tuple[str, str], Transcript] = field(default_factory=OrderedDict)

    @property
    def window(self) -> int:
        """Return the bytes of a transcript that a model is shown at most."""
        return int(self.context_tokens * BYTES_PER_TOKEN)

    async def begin(self, run: str, items: list[Item], said: Iterable[Utterance] = ()) -> str:
        """Store the first piece and return its ref."""
        return (await self.extend(run, Transcript("", ()).with_items((), said), items)).ref

    async def follow(
        self, run: str, earlier: str, items: list[Item], said: Iterable[Utterance], *, unproven: bool = False
    ) -> str:
        """Store the first piece of a run that follows another one, whose transcript stays where it is.

        `unproven`: no person was asked to prove who they are in the earlier run, as the policy demands by now.
        """
        system = [item for item in items if item["kind"] == "system"]
        own = [item for item in items if item["kind"] != "system"]
        blobs, said = self.records.store.blobs.of(run), tuple(said)
        before = await self.load(run, earlier)
        if before.pieces < MOST_PIECES and not unproven:
            return await blobs.put_json({"older": earlier, "system": system, "items": own, "said": said})
        shown = before.earlier(system).shortened(LEAST_WINDOWS * self.window)
        listed: dict[str, Any] = {"older": before.before or None, "said": before.said}
        if unproven:
            listed = {"older": None, "said": [_doubted(told) for told in await self.told_in(run, before)]}
        piece = {"items": [*shown.items, *own], "forgotten": shown.forgotten, "said": said}
        return await blobs.put_json({"older": None, "before": await blobs.put_json(listed), **piece})

    async def inherit(self, run: str, above: str, items: list[Item], said: Iterable[Utterance]) -> str:
        """Store the first piece of a sub-run.

        Its model is shown nothing of what that above it was told, but what it is told from there is known for whose
        words it is.
        """
        blobs, known = self.records.store.blobs.of(run), await self.load(run, above)
        before = await blobs.put_json({"older": known.before or None, "said": known.said, "above": True})
        return await blobs.put_json({"older": None, "before": before, "items": items, "said": tuple(said)})

    async def read_by(self, run: str, ref: str) -> list[str]:
        """Return the codes of whatever the model of a run was told, but for what those above it were told."""
        transcript = await self.load(run, ref)
        found, older = list(transcript.said), transcript.before
        while older:
            piece = await self.records.store.blobs.of(run).get_json(older)
            if piece.get("above"):
                break
            found += [Utterance(*said) for said in piece["said"]]
            older = piece["older"]
        return [said.code for said in found]

    async def told_in(self, run: str, transcript: Transcript) -> list[Utterance]:
        """Return whose words the model was told from the beginning."""
        found, older = list(transcript.said), transcript.before
        while older:
            piece = await self.records.store.blobs.of(run).get_json(older)
            found = [*(Utterance(*said) for said in piece["said"]), *found]
            older = piece["older"]
        return found

    async def load(self, run: str, ref: str) -> Transcript:
        """Read a chain from its last piece back to its first."""
        found = self.recent.get((run, ref))
        if found is not None:
            self.recent.move_to_end((run, ref))
            return found
        pieces: list[dict[str, Any]] = []
        older: str | None = ref
        forgotten, before = 0, ""
        while older is not None and (run, older) not in self.recent:
            piece = await self.records.store.blobs.of(run).get_json(older)
            pieces.append(piece)
            older, forgotten, before = piece["older"], piece.get("forgotten", 0), piece.get("before", "")
        first = Transcript("", (), forgotten=forgotten, before=before)
        known = first if older is None else self.recent[run, older]
        items, told = list(known.items), list(known.said)
        for piece in reversed(pieces):
            if "system" in piece:
                items = [*piece["system"], *as_earlier(items)]
            items += piece["items"]
            told += [Utterance(*said) for said in piece.get("said", ())]
        whole = replace(known, ref=ref, items=tuple(items), weight=weigh(items), said=tuple(told))
        return self._kept(run, replace(whole, pieces=known.pieces + len(pieces)))

    async def extend(self, run: str, transcript: Transcript, more: list[Item]) -> Transcript:
        """Store the items that are not stored yet, and more, as a new piece."""
        extended = transcript.with_items(more)
        if not extended.unstored:
            return transcript
        blobs = self.records.store.blobs.of(run)
        piece: dict[str, Any] = {"older": transcript.ref or None, "items": extended.unstored}
        whole = extended.cut(self.window)
        if whole is not extended:
            # A new beginning: a worker that restarts need not read all that came before.
            before = await blobs.put_json({"older": whole.before or None, "said": whole.said})
            extended = replace(whole, said=(), unstored_said=(), before=before)
            piece = {"older": None, "items": whole.items, "forgotten": whole.forgotten, "before": before}
            # Of the items above some are cut; a reader of the whole conversation wants those that are new whole.
            piece["added"] = transcript.with_items(more).unstored
        elif extended.unstored_said:
            piece["said"] = extended.unstored_said
        ref = await blobs.put_json(piece)
        pieces = 1 if piece["older"] is None else transcript.pieces + 1
        # Of a run only the newest are asked for; each of a long one holds all that its model was ever told.
        self.recent.pop((run, transcript.older), None)
        own = replace(extended, ref=ref, older=transcript.ref, unstored=(), unstored_said=(), pieces=pieces)
        return self._kept(run, own)

    async def items_of(self, run: str, append: tuple[ContextItem, ...]) -> list[Item]:
        """Turn what the workflow appends into items, resolving refs to digests and hits.

        All answers of a step share a room: small ones stay as they are, and large ones are cut to what is left. Where
        that is too little, the largest are left out, and only said to be there.
        """
        items = [await self._item(run, added) for added in append]
        sizes = {at: _told_bytes(item) for at, item in enumerate(items) if item.get("call_id") is not None}
        room = STEP_ROOMS * self.records.digest_characters
        if sum(sizes.values()) <= room:
            return items
        large = {str(at): sizes[at] for at in sizes if append[at].ref and append[at].kind == "answer"}
        left = max(room - sum(size for at, size in sizes.items() if str(at) not in large), 0)
        for name, share in shared(large, left).items():
            if share < large[name]:
                at = int(name)
                items[at] = await self._smaller(run, append[at], items[at], share)
                sizes[at] = _told_bytes(items[at])
        for at in sorted(sizes, key=lambda at: (-sizes[at], -at)):
            if sum(sizes.values()) > room and (less := _left_out(append[at], items[at])) is not None:
                items[at], sizes[at] = less, _told_bytes(less)
        return items

    async def _smaller(self, run: str, added: ContextItem, item: Item, share: int) -> Item:
        """Return an answer that takes no more than its share of the room, as far as that can be said of it."""
        most, size = share, share + 1
        for _ in range(_TRIES):
            if size <= share or most < LEAST_CUT:
                break
            digest = await self.records.smaller_digest(run, added.ref or "", most)
            item = await self._item(run, added, digest)
            size = _told_bytes(item)
            # A digest is counted in characters, and what is told of it takes lines of its own.
            most = min(most * share // max(size, 1), most - 1)
        return item

    async def _item(self, run: str, added: ContextItem, digest: dict[str, Any] | None = None) -> Item:
        if added.kind == "tools":
            hits = (await self.records.store.blobs.of(run).get_json(added.ref or ""))["hits"]
            item: Item = {"kind": "tools", "tools": [hit["tool"] for hit in hits if hit["available"]]}
            # Of those that are not available as well: the model is told what their servers say, and why they are away.
            reasons = added.call_id is not None and any(hit.get("reason") for hit in hits)
            item |= {OF_OTHERS: True} if reasons or not all(hit.get(TRUSTED, True) for hit in hits) else {}
            unflagged = [hit["tool"] for hit in hits if TRUSTED not in hit]
            item |= {UNFLAGGED: unflagged} if unflagged else {}
            text = canonical({"tools": [*map(_hit, hits)]})
            return item if added.call_id is None else item | {"call_id": added.call_id, "text": text}
        text = added.text
        if text is not None:
            # Whoever said it, a person, a tool or the engine that repeats them: the model is told no secret.
            text = str((await self.records.show(run, text, PERSON)).payload)
        if added.with_steps and text is not None:
            told, answers = await self._with_short_answers(run, json.loads(text))
            return {"kind": added.kind, "call_id": added.call_id, "text": canonical(told), "answers": answers}
        if added.ref is not None or text is None:
            digest = await self.records.digest(run, added.ref or "") if digest is None else digest
            text = canonical(digest if text is None else digest | json.loads(text))
        if added.kind == "answer":
            item = {"kind": "answer", "call_id": added.call_id, "text": text}
            media = [] if added.ref is None else await self.records.media(run, added.ref)
            if media:
                item[MEDIA] = within(media, self.context_tokens // _MEDIA_SHARE)
            if added.ref is not None and (provider := await self.records.private_of(run, added.ref)):
                item[PRIVATE] = provider
            return item
        return {"kind": added.kind, "text": text}

    async def _with_short_answers(self, run: str, told: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Return what is told of a plan with the answers of its steps, as far as these are whole and have room.

        Those are named apart, each by its tool and its ref.
        """
        left = STEP_ROOMS * self.records.digest_characters - weight(told)
        steps: list[Any] = []
        answers: list[tuple[str, str]] = []
        for step in told["steps"]:
            data = (await self.records.digest(run, step["ref"])).get("data") if step.get("ref") else None
            size = size_of_text(as_told(canonical({"data": data})))
            if data is not None and size <= left:
                left -= size
                answers.append((str(step.get("tool")), step["ref"]))
                steps.append({name: said for name, said in step.items() if name != "ref"} | {"data": data})
            else:
                steps.append(step)
        return told | {"steps": steps}, answers

    def _kept(self, run: str, transcript: Transcript) -> Transcript:
        self.recent[run, transcript.ref] = transcript
        while len(self.recent) > CACHED:
            self.recent.popitem(last=False)
        return transcript


def _hit(hit: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model is told of a tool that was found: what its function does not tell anyway."""
    missing = {} if hit.get("available", True) else {"available": False, "reason": hit.get("reason")}
    return {name: said for name, said in hit.items() if name in _OF_HITS} | missing


def _told_bytes(item: Item) -> int:
    """Return the bytes that a model is told of an answer."""
    return size_of_text(as_told(item["text"]))


def _left_out(added: ContextItem, item: Item) -> Item | None:
    """Return an answer of which nothing is told but that it is there; None for one that says too little for that."""
    if added.kind == "tools":
        hits = json.loads(item["text"])["tools"]
        names = [one_line(str(hit.get("tool")), 80) for hit in hits[:_NAMED]]
        return {**item, "text": canonical({"tools": names, "left_out": f"{len(hits)} tools, of which these are named"})}
    if added.ref is None:
        return None
    how = f"{_told_bytes(item):,} bytes had no room beside the other answers of this step; read_result reads them"
    said = json.loads(item["text"])
    beside = {name: said.get(name) for name in json.loads(added.text or "{}")}
    return {**item, "text": canonical({"left_out": how, "ref": added.ref} | beside)}


def _doubted(said: Utterance) -> Utterance:
    """Return whose words these are when nobody has proved to be the person."""
    return said._replace(code="!person") if said.code == "person" else said


def source_of_tool(tool: Tool, ref: str | None = None) -> Source:
    """Return the source that a tool's answer is; which answer it was matters where others wrote it."""
    return Source(kind="tool", tool=tool.name, ref=ref if tool.content == "others" else None, content=tool.content)


def said_by(
    transcript: Transcript, append: Iterable[ContextItem], items: Iterable[Mapping[str, Any]], catalog: Catalog
) -> list[Utterance]:
    """Return whose words the model is told with what the workflow appends."""
    called = {call["id"]: call["function"] for item in transcript.items for call in item.get("calls", ())}
    known = {said.ref for said in transcript.said}
    found: list[Utterance | None] = []
    for added, item in zip(append, items, strict=True):
        bare, answers = _apart(item, catalog) if added.with_steps else (item, [])
        found += [*answers, _said(added, bare, called, known, catalog)]
    return [said for said in found if said is not None]


def _apart(item: Mapping[str, Any], catalog: Catalog) -> tuple[Mapping[str, Any], list[Utterance]]:
    """Return what is told of a plan without the answers of its steps, and whose words these are."""
    told = json.loads(item["text"])
    bare = told | {"steps": [{name: said for name, said in step.items() if name != "data"} for step in told["steps"]]}
    answers = [Utterance(source_of_tool(_tool(name, catalog), ref).code, ref) for name, ref in item["answers"]]
    return {**item, "text": canonical(bare)}, answers


def _tool(name: str, catalog: Catalog) -> Tool:
    definition = catalog.by_function.get(name) or catalog.definitions.get(name)
    return Tool(name=name or "engine.unknown") if definition is None else definition.tool


def _said(
    added: ContextItem,
    item: Mapping[str, Any],
    called: Mapping[str, Mapping[str, str]],
    known: AbstractSet[str | None],
    catalog: Catalog,
) -> Utterance | None:
    text = str(item.get("text", ""))
    if added.kind == "tools":
        unflagged = (catalog.definitions.get(name) for name in item.get(UNFLAGGED, ()))
        vouched = not item.get(OF_OTHERS) and all(known is not None and known.trusted for known in unflagged)
        return Utterance(DESCRIBED if vouched else HITS, added.ref)
    if added.kind == "message":
        return Utterance("!person" if added.unverified else "person", None, text)
    if added.kind != "answer":
        # The engine's own words may quote a tool or a person.
        return Utterance("!engine.told", None, text)
    function = called.get(added.call_id or "", {})
    name = function.get("name", "")
    if name in NAMES:
        return _built_in(name, added, text, function.get("arguments", ""), known)
    tool = _tool(name, catalog)
    if added.ref is None:
        # An error, of the tool or of the engine, may quote anything.
        return Utterance(Source(kind="tool", tool=tool.name, content="others").code, None, text)
    return Utterance(source_of_tool(tool, added.ref).code, added.ref)


def _built_in(
    name: str, added: ContextItem, text: str, arguments: str, known: AbstractSet[str | None]
) -> Utterance | None:
    """Return whose words the answer of one of the engine's own functions is."""
    if name == "ask_person":
        # Without an answer it is an error, which may quote the question.
        unverified = added.unverified or not text.startswith('{"answer":')
        return Utterance("!person" if unverified else "person", None, text)
    if name in {"run_program", "delegate"}:
        return Utterance(PROGRAM, added.ref, None if added.ref else text, arguments)
    if name == "read_result" and _ref_in(arguments) in known:
        # A value that is read again was told when it was first answered.
        return None
    return Utterance(f"!engine.{name}", added.ref, None if added.ref else text)


def _ref_in(arguments: str) -> Any:
    """Return which result a call asks for, and nothing of what else it holds; an empty text where it names none."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    ref = given.get("ref") if isinstance(given, dict) else ""
    return ref if isinstance(ref, str) else ""
