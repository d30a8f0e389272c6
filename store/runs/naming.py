"""Find the payloads that a run names: those of its row and its events, and those that its payloads name in turn.

All that list the payloads of a run ask here, so that none of them misses what another one finds.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from backstay.errors import BackstayError, StoreUnavailable
from store.blobs.blobs import Blobs
from store.blobs.rows import SEALED
from store.database.schema import effects

SEALED_OF_EFFECT = (effects.c.arguments_sealed, effects.c.undo_sealed, effects.c.task_sealed)
"""The columns with refs of sealed payloads that an effect needs: to be checked, undone or followed."""
_MOST_PIECES = 10_000


def of_effect(sealed: Iterable[str | None]) -> list[str]:
    """Return the names of the payloads of an effect, given what is in `SEALED_OF_EFFECT`."""
    return [f"{ref}{SEALED}" for ref in sealed if ref]


def of_lists(result: Mapping[str, Any]) -> list[str]:
    """Return the refs of the stored results that hold all events and effects of a Result."""
    return named(result, "events_ref", "effects_ref")


def of_answer(result: Mapping[str, Any]) -> list[str]:
    """Return the refs of the stored results that hold what was too large for a Result."""
    match result.get("raw_outputs"):
        # A model may report outputs with a ref of its own.
        case {"ref": str(), "note": str()} as apart if len(apart) == 2:
            return [*named(result, "output_ref"), *named(apart, "ref")]
        case _:
            return named(result, "output_ref")


def ref_of_event(body: Mapping[str, Any]) -> str:
    """Return the ref of the stored result that an event tells of; "" where it tells of none."""
    return next(iter(named(body.get("data") or {}, "summary_ref")), "")


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


def named(record: Mapping[str, Any], *names: str) -> list[str]:
    """Return the refs under these names in a record."""
    return [ref for name in names if isinstance(ref := record.get(name), str) and ref]
