"""The additions to the model's view of a run; the whole transcript lives in the store, history holds one ref."""

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Literal

from backstay.canonical import canonical
from backstay.frozen import Frozen
from backstay.tools.tool import ToolResult


class ContextItem(Frozen):
    """Add one thing to the context."""

    kind: Literal["answer", "note", "tools", "fact", "message"]
    """answer: what a call of the model led to; note: what the engine tells the model; tools: hits that become visible;
    fact: a note that trimming never drops; message: what a person says while the run works, which stays as well."""
    call_id: str | None = None
    """The model's own call id, for an answer or for the tools a search found."""
    ref: str | None = None
    """A stored result record, or the stored hits."""
    text: str | None = None
    """A short text instead of a ref; with the ref of an answer, a JSON object of what else is to be told with it."""
    unverified: bool = False
    """Whether a person said it of whom nobody knows who it is, while the policy needs to know."""
    with_steps: bool = False
    """Whether the text, a JSON object, tells of the steps of a plan; short answers are told in place of their refs."""


def answered(item: ContextItem, result: ToolResult) -> ContextItem:
    """Return an answer with what its call led to; its text holds what else is to be told, as a JSON object."""
    if result.ref is not None and result.error is None:
        return item.model_copy(update={"ref": result.ref})
    more = json.loads(item.text) if item.text else {}
    return item.model_copy(update={"text": canonical({**_told(result), **more})})


def _told(result: ToolResult) -> dict[str, Any]:
    if result.success:
        return {"note": result.error, "ref": result.ref}
    return {"error": result.reason or result.error, "type": result.error_type, "ref": result.ref}


def answers_first(append: Iterable[ContextItem]) -> tuple[ContextItem, ...]:
    """Return what is added so that nothing stands between the calls of the model and their answers."""
    return tuple(sorted(append, key=lambda item: item.call_id is None))


BYTES_PER_TOKEN = 3.5
PINNED = frozenset({"system", "task", "plan", "fact", "message"})
EARLIER = "earlier"
"""The kind of item that the task of a followed run becomes; an exchange begins with it, which trimming may drop."""
_BEGINS = frozenset({"said", EARLIER})
STUB = 200
KEEP_LAST = 2
"""The newest answers are never dropped: the model has not reacted to them yet."""


MEDIA = "media"
"""Where an item names the pictures and PDFs that it shows, each with the tokens that it usually takes."""
SENT = "sent"
"""Marks, for one request, what was beside a message that is sent with it: it belongs to the model that is asked."""


def as_earlier(items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items of a run as the one that follows it is shown them: without the prompt, and nothing pinned."""
    kinds = {"task": EARLIER, "plan": "note", "fact": "note", "message": "note"}
    return [{**item, "kind": kinds.get(item["kind"], item["kind"])} for item in items if item["kind"] != "system"]


def weight(item: Any) -> int:
    """Return the bytes that an item, or several, take in a request, with what was beside it where that is sent."""
    apart = item.get("opaque") if isinstance(item, dict) else None
    beside = apart["bytes"] if apart is not None and apart.get(SENT) else 0
    shown = item.get(MEDIA, ()) if isinstance(item, dict) else ()
    beside += int(sum(media["tokens"] for media in shown) * BYTES_PER_TOKEN)
    return len(canonical(item).encode("utf-8", "replace")) + beside


def weigh(items: Iterable[dict[str, Any]]) -> int:
    """Return the bytes that items take together."""
    return sum(weight(item) for item in items)


def trim(
    items: list[dict[str, Any]], cap_tokens: int, *, total: int | None = None, forgotten: int = 0
) -> tuple[list[dict[str, Any]], int]:
    """Return what fits into the cap and how many items were dropped or cut.

    `total` is the weight of the items, when known, and `forgotten` counts those that were dropped or cut before.
    Prompt, task, plan and pinned facts stay; the oldest digests go first and are named; then the oldest exchanges go
    whole, so that no answer stays without its call.
    """
    total = weigh(items) if total is None else total
    cap = int(cap_tokens * BYTES_PER_TOKEN)
    kept, dropped, fits = shorten(items, cap, total)
    kept = kept if fits else _clipped(kept, cap)
    dropped += forgotten
    return (_with_note(kept, dropped) if forgotten or (dropped and not fits) else kept), dropped


def shorten(items: list[dict[str, Any]], cap: int, total: int) -> tuple[list[dict[str, Any]], int, bool]:
    """Return what fits into `cap` bytes, how many items were dropped or cut, and whether cutting was enough.

    To shorten what was shortened to a larger cap leads to the same.
    """
    kept = list(items)
    cut = 0
    later = sum(1 for item in kept if item["kind"] == "answer")
    for index, item in enumerate(kept):
        if total <= cap:
            return kept, cut, True
        if item["kind"] != "answer":
            continue
        later -= 1
        if (len(item["text"]) > STUB or MEDIA in item) and later >= KEEP_LAST and "cut" not in item:
            stub = {**_without_media(item), "text": _stub(item["text"]), "cut": True}
            total += weight(stub) - weight(item)
            kept[index] = stub
            cut += 1
    kept, gone = without_oldest(kept, total - cap)
    return kept, cut + len(gone), False


def _clipped(items: list[dict[str, Any]], cap: int) -> list[dict[str, Any]]:
    """Return the items with the beginnings of the largest answers, where even the newest ones are too large."""
    total, kept = weigh(items), list(items)
    answers = [index for index, item in enumerate(kept) if item["kind"] == "answer" and "cut" not in item]
    for count, index in enumerate(sorted(answers, key=lambda index: len(kept[index]["text"]), reverse=True)):
        if total <= cap:
            break
        item = kept[index]
        room = max(len(item["text"]) - (total - cap) // (len(answers) - count) - 2 * STUB, STUB)
        if room < len(item["text"]):
            kept[index] = {**_without_media(item), "text": _stub(item["text"], room), "cut": True}
            total += weight(kept[index]) - weight(item)
    return kept


def without_oldest(items: list[dict[str, Any]], excess: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the items without as many of the oldest exchanges as weigh the excess, and those that are gone.

    Pinned items stay, and so does the last exchange.
    """
    starts = [index for index, item in enumerate(items) if item["kind"] in _BEGINS]
    stay: list[dict[str, Any]] = items[: starts[0]] if starts else []
    gone: list[dict[str, Any]] = []
    reached = starts[0] if starts else 0
    for start, end in pairwise(starts):
        if excess <= 0:
            break
        for item in items[start:end]:
            if item["kind"] in PINNED:
                stay.append(item)
            else:
                gone.append(item)
                excess -= weight(item)
        reached = end
    return [*stay, *items[reached:]], gone


def _without_media(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != MEDIA}


def _stub(text: str, length: int = STUB) -> str:
    ref = _ref(text)
    how = "dropped to save space" if ref is None else "dropped to save space; read_result reads it again"
    return canonical({"dropped": how, "began": text[:length]} | ({} if ref is None else {"ref": ref}))


def _ref(text: str) -> str | None:
    """Return the ref under which a stored answer can be read, or None."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = (answer.get("ref") or answer.get("storage_ref")) if isinstance(answer, dict) else None
    return found if isinstance(found, str) else None


def _with_note(items: list[dict[str, Any]], dropped: int) -> list[dict[str, Any]]:
    note = {"kind": "fact", "text": f"{dropped} older items were dropped or cut to save space."}
    index = next((i for i, item in enumerate(items) if item["kind"] not in PINNED), len(items))
    return [*items[:index], note, *items[index:]]
