"""Look for tools and look further into stored results."""

from typing import Any

from activities.payloads import READ
from activities.resources import Activities
from activities.retrying import implements
from backstay import calls
from backstay.digests.cutting import size_of_text
from backstay.errors import ArgumentsInvalid
from backstay.redaction.naming import PartChanges, masked_parts, masked_schema
from backstay.redaction.redactor import Redactor
from backstay.shown import one_line
from backstay.task.event import as_drafts
from backstay.task.reading import at_path
from backstay.tools.tool import TRUSTED, Hit, ToolResult
from toolbox.catalog.catalog import Catalog

PART_BYTES = 8192
AROUND_PART = 500
"""The words around a part of a string take at most this many bytes."""
_READ = frozenset({"short_description", "reason"})
"""Fields of a hit that are there to be read."""
MARKED = 8000
"""The most characters of a marked text that the workflow is told."""


class Searches(Activities):
    """Implement `search_tools`, `read_result` and `digest`."""

    @implements(calls.search_tools)
    async def search_tools(self, ask: calls.FindTools) -> calls.SearchFindings:
        """Search the catalog of the run's user and store the hits."""
        await self.admit(ask)
        found = await self.found(ask)
        if ask.patience_s and found.starting:
            # The search is made again; the hits are told then.
            await self.tell(ask)
        else:
            await self.tell(ask, as_drafts(ask.happened(found.count, found.catalog), ask.draft))
        return found

    async def found(self, ask: calls.FindTools) -> calls.SearchFindings:
        """Search the catalog, and store the hits; tells no event."""
        catalog = await self.catalog(ask, ask.user_id, patience_s=ask.patience_s)
        # Where the servers that are to be searched have nothing, all of them are searched.
        hits = _hits(catalog, ask, ask.servers) or _hits(catalog, ask, ())
        if ask.builtin and not ask.step:
            # A run that was given a workspace is shown what it can do there, whatever the task's own words.
            found = {hit.tool for hit in hits}
            own = (catalog.search(f"{provider}.", ask.detail_level, ask.limit) for provider in ask.builtin)
            hits = [
                *(hit for some in own for hit in some if hit.provider in ask.builtin and hit.tool not in found),
                *hits,
            ]
        held = await self.records.secrets.of(ask.run)
        shown = [_kept(hit, catalog, held.redactor) for hit in hits]
        shown = masked_hits(shown, held.redactor) if held.handles else shown
        ref = await self.store.blobs.of(ask.run).put_json({"hits": shown})
        shown_reasons = {name: held.redactor.clipped_text(said) for name, said in sorted(catalog.unavailable.items())}
        return calls.SearchFindings(
            ref=ref,
            catalog=catalog.version,
            count=len(shown),
            starting=bool(catalog.starting),
            unavailable={name: one_line(said, 300) for name, said in shown_reasons.items()},
        )

    @implements(calls.read_result)
    async def read_result(self, ask: calls.ReadStored) -> ToolResult:
        """Cut a part out of a stored result; its result is shown form only."""
        await self.begin(ask)
        try:
            value = at_path(await self.records.named_by_a_model(ask.run, ask.ref), ask.path)
            part = cut(value, ask.offset, ask.limit, self.records.digest_characters - AROUND_PART)
        except ArgumentsInvalid as error:
            return ToolResult(success=False, error=str(error), error_type="ArgumentsInvalid")
        label = f"{ask.ref[:12]} {ask.path}".strip()
        media = [] if ask.path or ask.offset else await self.records.media(ask.run, ask.ref)
        kept = await self.records.write(ask.run, label, part, whole_under=PART_BYTES, media=media)
        return ToolResult(success=True, ref=kept.ref)

    @implements(calls.digest)
    async def digest(self, ask: calls.DigestPayload) -> ToolResult:
        """Store a payload that is not a tool's answer, as a digest."""
        await self.begin(ask)
        payload = await self.store.blobs.of(ask.run).get_json(ask.payload)
        read = payload.pop(READ, ()) if isinstance(payload, dict) else ()
        kept = await self.records.keep(ask.run, ask.label, payload, ask.label, read=read)
        marked: dict[str, Any] = {}
        if ask.marked:
            shown = await self.records.show(ask.run, str(payload.get("result")), ask.label)
            marked["marked"] = str(shown.payload)[:MARKED]
        return ToolResult(success=True, **kept.facts, **marked)


def shown_hit(hit: Hit, redactor: Redactor) -> dict[str, Any]:
    """Return the hit in plain JSON; why it is not available may quote what its server made of our credentials."""
    plain = hit.plain()
    return plain if hit.reason is None else plain | {"reason": redactor.clipped_text(hit.reason)}


def _kept(hit: Hit, catalog: Catalog, redactor: Redactor) -> dict[str, Any]:
    """Return a hit with whether the operator vouches for what its server says of it.

    The words of others about a tool are kept as a model will be offered them, so that they are known for theirs.
    """
    definition = catalog.definitions[hit.tool]
    kept = shown_hit(hit, redactor) | {TRUSTED: definition.trusted}
    if definition.trusted or not hit.available:
        return kept
    return kept | {"offered": {"description": definition.offered, "parameters": definition.parameters}}


def masked_hits(hits: list[dict[str, Any]], redactor: Redactor) -> list[dict[str, Any]]:
    """Return hits with a mask for each known secret in descriptions; a tool whose name holds one is left out."""
    return masked_parts(hits, redactor, _masked)


def _masked(hits: list[dict[str, Any]], change: PartChanges) -> list[dict[str, Any]]:
    pairs = [(hit, _hit(hit, change)) for hit in hits]
    return [new for hit, new in pairs if new["tool"] == hit["tool"]]


def _hit(hit: dict[str, Any], change: PartChanges) -> dict[str, Any]:
    return {key: change.prose(item) if key in _READ else masked_schema(item, change) for key, item in hit.items()}


def _hits(catalog: Catalog, ask: calls.FindTools, servers: tuple[str, ...]) -> list[Hit]:
    hits = catalog.search(ask.query, ask.detail_level, ask.limit, servers)
    among = sum(not servers or known.provider in servers for known in catalog.definitions.values())
    if len(hits) < among <= ask.limit:
        # So few tools need no choice: all of them are shown, the matching ones first.
        found = {hit.tool for hit in hits}
        every = catalog.search("", ask.detail_level, ask.limit, servers)
        hits = [*hits, *(hit for hit in every if hit.tool not in found)]
    return hits


def cut(value: Any, offset: int, limit: int, room: int) -> Any:
    """Return a window of a list, or of a string as many bytes as have room, with what lies around it; others whole."""
    match value:
        case list():
            part = value[offset : offset + max(1, limit)]
            return {"items": part, "offset": offset, "total": len(value), "has_more": offset + len(part) < len(value)}
        case str() if size_of_text(value) > room or offset:
            part = value[offset : offset + room]
            while (size := size_of_text(part)) > room:
                part = part[: len(part) * room // (size + 1)]
            return {"text": part, "offset": offset, "total": len(value), "has_more": offset + len(part) < len(value)}
        case _:
            return value
