"""Payloads that may be shown, and their digests; neither key nor database is needed for them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from backstay.canonical import canonical
from backstay.digests.digest import ANSWER_CHARS, MOST_CHARS, digest_of_result
from backstay.errors import ArgumentsInvalid
from backstay.provenance.echo import UNKNOWN, Echo
from backstay.shown import one_line
from backstay.task.context import MEDIA
from backstay.task.media import Media
from store.blobs.shown import RECORD, Missing, ShownBlobStore

READ = "\x00read"
"""The key in a program's stored end under which stands what it has read."""
SNIPPET = 80
"""Characters of an answer that its event holds."""
SMALL_LEAVES = 300
SMALL_BYTES = 16_384
Value = TypeVar("Value")


ASKED = "asked"
"""The field of a record that holds the arguments of the call which it answers, where its answer may vouch."""


PRIVATE = "private"
"""The field of a record that says that not everybody may read it."""


class StoredRecord(NamedTuple):
    """Name a stored record, and say what an event tells of it."""

    ref: str
    snippet: str = ""
    """The beginning of what may be shown, on one line."""
    size: str = ""
    """The size of a payload of which a digest is shown, in words; there is no snippet then."""
    private: bool = False
    """Whether its server labelled it so that not everybody may read it."""

    @property
    def facts(self) -> dict[str, Any]:
        """Return them as fields of a ToolResult."""
        return self._asdict()


class PayloadRecords:
    """Write and read the part of result records that may be shown."""

    def __init__(self, blobs: ShownBlobStore, digest_characters: int = ANSWER_CHARS) -> None:
        """Keep everything in the blob store; a digest has at most the given number of characters."""
        self.blobs = blobs
        self.digest_characters = digest_characters

    async def write(
        self,
        run: str,
        label: str,
        shown: Any,
        raw: str | None = None,
        *,
        whole_under: int = 2048,
        read: Sequence[str] = (),
        asked: Any = None,
        media: Sequence[Media] = (),
        private: bool = False,
    ) -> StoredRecord:
        """Store a payload that may be shown, with its digest, and what pictures and PDFs it has."""
        most = self.digest_characters
        # The digest of a table says what there is to say in a quarter of the room.
        options: Any = {
            "max_chars": most,
            "table_chars": min(most, max(most // 4, MOST_CHARS)),
            "wanted": await self.wanted(run),
        }
        digest = await apart(shown, lambda: digest_of_result(label, shown, "", whole_under, **options))
        record = {"kind": RECORD, "label": label, "digest": digest} | ({"read": read} if read else {})
        record |= {ASKED: asked} if asked else {}
        record |= {PRIVATE: True} if private else {}
        record |= {MEDIA: [found.plain() for found in media]} if media else {}
        if "data" not in digest:
            # An answer that passes whole is in the digest already.
            record["shown"] = await self.blobs.of(run).put_json(shown)
        ref = await self.blobs.of(run).put_json(record | ({"raw": raw} if raw else {}))
        return StoredRecord(ref, **_said(digest), private=private)

    async def wanted(self, _run: str) -> frozenset[str]:
        """Return the words whose fields a digest prefers."""
        return frozenset()

    async def record(self, run: str, ref: str) -> dict[str, Any]:
        """Return a record; raises ArgumentsInvalid when the ref names none."""
        return await self.blobs.of(run).record(ref)

    async def media(self, run: str, ref: str) -> list[Media]:
        """Return the pictures and PDFs of a record."""
        return [Media.model_validate(found) for found in (await self.record(run, ref)).get(MEDIA, ())]

    async def private_of(self, run: str, ref: str) -> str:
        """Return the provider of a record that not everybody may read; empty for every other record."""
        record = await self.record(run, ref)
        return str(record["label"]).partition(".")[0] if record.get(PRIVATE) else ""

    async def digest(self, run: str, ref: str) -> dict[str, Any]:
        """Return the digest of a record, with the record's own ref in it."""
        digest = dict((await self.record(run, ref))["digest"])
        return {**digest, "ref" if "data" in digest else "storage_ref": ref}

    async def smaller_digest(self, run: str, ref: str, room: int) -> dict[str, Any]:
        """Return a digest of a record that takes less room than the one that is stored with it."""
        label, payload = (await self.record(run, ref))["label"], await self.shown(run, ref)
        options: Any = {"max_chars": room, "wanted": await self.wanted(run)}
        return await apart(payload, lambda: digest_of_result(label, payload, ref, min(room, 2048), **options))

    async def named_by_a_model(self, run: str, ref: str) -> Any:
        """Return the full shown form of a record that a model asks for; raises ArgumentsInvalid for a made-up ref."""
        try:
            await self.record(run, ref)
        except Missing as error:
            raise ArgumentsInvalid(f"no stored result {ref}; use the ref of an earlier answer") from error
        return await self.shown(run, ref)

    async def shown(self, run: str, ref: str) -> Any:
        """Return the full shown form of a record."""
        return await self.blobs.of(run).result(ref)


def _said(digest: dict[str, Any]) -> dict[str, str]:
    if "data" in digest:
        data = "" if digest["data"] is None else digest["data"]
        text = data if isinstance(data, str) else canonical(data)
        return {"snippet": one_line(text, SNIPPET)}
    size = digest["original_size"]
    rows = "" if size["rows"] is None else f"{size['rows']:,} rows, "
    return {"size": f"{rows}{size['bytes']:,} bytes"}


def echo_of(record: Mapping[str, Any]) -> Echo | None:
    """Return how to recognise the arguments of the call that a record answers; None where there is nothing to tell."""
    return Echo(record[ASKED]) if record.get(ASKED) else None


def vouches(record: Mapping[str, Any]) -> bool:
    """Return whether the answer in a record is compared with the arguments of its call, and no error."""
    return record.get(ASKED) != UNKNOWN


async def apart(payload: Any, work: Callable[[], Value]) -> Value:
    """Do work on a payload: at once when it is small, else in a thread, so that heartbeats continue."""
    return work() if is_small(payload) else await asyncio.to_thread(work)


def is_small(payload: Any) -> bool:
    """Return whether a payload has few leaves and few bytes, looking at no more than that many."""
    waiting, leaves, size = [payload], 0, 0
    while waiting:
        value = waiting.pop()
        leaves += 1
        match value:
            case str() | bytes():
                size += len(value)
            case dict():
                leaves += len(value)
                waiting.extend([*value, *value.values()] if len(value) <= SMALL_LEAVES else ())
            case list() | tuple():
                leaves += len(value)
                waiting.extend(value if len(value) <= SMALL_LEAVES else ())
            case _:
                pass
        if leaves > SMALL_LEAVES or size > SMALL_BYTES:
            return False
    return True
