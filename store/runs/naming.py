"""Find the payloads that a run names: those of its row, and those that its payloads name in turn."""

from typing import Any

from backstay.errors import BackstayError, StoreUnavailable
from store.blobs.blobs import Blobs
from store.blobs.rows import SEALED

_MOST_PIECES = 10_000


async def conversation(blobs: Blobs, context: str | None) -> tuple[list[str], list[str]]:
    """Return the pieces of what the model of a run was told, from the last one back, and what says how the run ended.

    How a run ended is in a stored result of its own.
    """
    found: dict[str, None] = {}
    ends: dict[str, None] = {}
    waiting = [context]
    while waiting and len(found) < _MOST_PIECES:
        ref = waiting.pop()
        if not ref or ref in found:
            continue
        found[ref] = None
        piece = await stored(blobs, ref)
        waiting += named(piece, "older", "before")
        ends |= dict.fromkeys(said[1] for said in piece.get("said", ()) if said[0] == "!engine.result" and said[1])
    return list(found), list(ends)


async def of_result(blobs: Blobs, ref: str) -> list[str]:
    """Return the payloads of one result: its record, and its shown and its raw form."""
    record = await stored(blobs, ref)
    return [ref, *named(record, "shown"), *(f"{raw}{SEALED}" for raw in named(record, "raw"))]


async def stored(blobs: Blobs, ref: str) -> dict[str, Any]:
    """Return a stored object; an empty one where nothing of the kind is there. Raises StoreUnavailable."""
    try:
        found = await blobs.get_json(ref)
    except StoreUnavailable:
        raise
    except BackstayError:
        return {}
    return found if isinstance(found, dict) else {}


def named(record: dict[str, Any], *names: str) -> list[str]:
    """Return the refs under these names in a record."""
    return [ref for name in names if isinstance(ref := record.get(name), str) and ref]
