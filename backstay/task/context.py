"""What is added to the model's view of a run; the whole transcript lives in the store, history holds one ref."""

import json
from collections.abc import Iterable
from typing import Any, Literal

from backstay.canonical import canonical
from backstay.frozen import Frozen


class ContextItem(Frozen):
    """Add one thing to the context."""

    kind: Literal["answer", "note", "tools", "fact"]
    """answer: what a call of the model led to; note: what the engine tells the model; tools: hits that become visible;
    fact: a note that trimming never drops."""
    call_id: str | None = None
    """The model's own call id, for an answer or for the tools a search found."""
    ref: str | None = None
    """A stored result record, or the stored hits."""
    text: str | None = None
    """A short text instead of a ref."""


BYTES_PER_TOKEN = 3.5
PINNED = frozenset({"system", "task", "plan", "fact"})
STUB = 200
KEEP_LAST = 2
"""The newest answers are never dropped: the model has not reacted to them yet."""


def weight(item: Any) -> int:
    """Return the bytes that an item, or several, take in a request."""
    return len(canonical(item).encode("utf-8", "replace"))


def weigh(items: Iterable[dict[str, Any]]) -> int:
    """Return the bytes that items take together."""
    return sum(weight(item) for item in items)


def trim(items: list[dict[str, Any]], cap_tokens: int, *, total: int | None = None) -> tuple[list[dict[str, Any]], int]:
    """Return what fits into the cap and how many items were dropped or cut; `total` is their weight, when known.

    Prompt, task, plan and pinned facts stay; the oldest digests go first and are named; then the oldest exchanges go
    whole, so that no answer stays without its call.
    """
    cap = int(cap_tokens * BYTES_PER_TOKEN)
    kept = list(items)
    total = weigh(kept) if total is None else total
    dropped = 0
    for index, item in enumerate(kept):
        if total <= cap:
            return kept, dropped
        if item["kind"] == "answer" and len(item["text"]) > STUB and _later_answers(kept, index) >= KEEP_LAST:
            stub = {**item, "text": _stub(item["text"])}
            total += weight(stub) - weight(item)
            kept[index] = stub
            dropped += 1
    while total > cap and (span := _oldest_exchange(kept)) is not None:
        start, end = span
        gone = [item for item in kept[start:end] if item["kind"] not in PINNED]
        stay = [item for item in kept[start:end] if item["kind"] in PINNED]
        total -= sum(weight(item) for item in gone)
        dropped += len(gone)
        kept[start:end] = stay
    if dropped:
        kept = _with_note(kept, dropped)
    return kept, dropped


def _stub(text: str) -> str:
    ref = _ref(text)
    how = "dropped to save space" if ref is None else "dropped to save space; read_result reads it again"
    return canonical({"dropped": how, "began": text[:STUB]} | ({} if ref is None else {"ref": ref}))


def _ref(text: str) -> str | None:
    """Return the ref under which a stored answer can be read, or None."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = (answer.get("ref") or answer.get("storage_ref")) if isinstance(answer, dict) else None
    return found if isinstance(found, str) else None


def _later_answers(items: list[dict[str, Any]], index: int) -> int:
    return sum(1 for item in items[index + 1 :] if item["kind"] == "answer")


def _oldest_exchange(items: list[dict[str, Any]]) -> tuple[int, int] | None:
    """Return where the oldest answer of the model and all that belongs to it lies; never the last exchange."""
    starts = [index for index, item in enumerate(items) if item["kind"] == "said"]
    return (starts[0], starts[1]) if len(starts) > 1 else None


def _with_note(items: list[dict[str, Any]], dropped: int) -> list[dict[str, Any]]:
    note = {"kind": "fact", "text": f"{dropped} older items were dropped or cut to save space."}
    index = next((i for i, item in enumerate(items) if item["kind"] not in PINNED), len(items))
    return [*items[:index], note, *items[index:]]
