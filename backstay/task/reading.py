"""Read stored payloads and events of a run, a page at a time."""

from collections.abc import Sequence
from typing import Any, Self

from pydantic import Field, model_validator

from backstay.bounds import MOST
from backstay.canonical import canonical
from backstay.errors import ArgumentsInvalid
from backstay.frozen import Frozen
from backstay.task.event import Event

PAGE_BYTES = 100 * 1024
LONGEST_PATH = 1000
"""Characters of a path."""


class Reading(Frozen):
    """Say what to read: a stored payload by its `ref`, the events `after` a number, or the `messages` after one."""

    ref: str | None = Field(default=None, max_length=200)
    after: int | None = Field(default=None, strict=True, ge=0, le=MOST)
    messages: int | None = Field(default=None, strict=True, ge=0, le=MOST)
    """The number of the last event whose messages are known; 0 for all of them."""
    path: str = Field(default="", max_length=LONGEST_PATH)
    """Where in the payload, such as `invoices.3.total`."""
    as_text: bool = Field(default=False, strict=True)
    """Whether to read the JSON text of what is there, whatever it is; a string is read as it is."""
    offset: int = Field(default=0, strict=True, ge=0, le=MOST)
    """The first item of a list, or the first character of a string."""
    limit: int | None = Field(default=None, strict=True, ge=1, le=MOST)
    """The most items or characters; a page holds 100 KiB at most all the same."""

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if [self.ref, self.after, self.messages].count(None) != 2:
            raise ValueError('give either "ref", "after" or "messages"')
        if self.ref is None and (self.path or self.offset or self.as_text):
            raise ValueError('"path", "offset" and "as_text" go with "ref"')
        return self


class Page(Frozen):
    """Hold a part of a payload, events, or messages."""

    value: Any = None
    is_json: bool = False
    """Whether the value is a part of the JSON text of what is there, which is not a string itself."""
    events: tuple[Event, ...] = ()
    messages: tuple[dict[str, Any], ...] = ()
    """As Chat Completions writes them, with `step`; a long answer has its ref as `content_ref` instead of `content`."""
    total: int = 0
    """Of a list, its items; of a string, its characters; of events and messages, the highest number of an event."""
    next: int | None = None
    """The `offset`, `after` or `messages` of the next page; null on the last one."""
    run_id: str = ""
    """Of the first execution of the run, which a proof names; empty where the run itself is asked."""

    def answer(self, reading: Reading) -> dict[str, Any]:
        """Return it as other programs read it."""
        plain = self.plain()
        listed = "events" if reading.after is not None else "messages"
        held = "value" if reading.ref is not None else listed
        told = [name for name in ("is_json", "run_id") if plain[name]]
        return {name: plain[name] for name in (held, *told, "total", "next")}


def at_path(value: Any, path: str) -> Any:
    """Return what is at a path such as `invoices.3.total`; raises ArgumentsInvalid naming what is there.

    A key that has dots or brackets of its own is written as it is: of several keys that fit, the longest counts.
    """
    steps = steps_to(value, path)
    return steps[-1][1] if steps else value


def steps_to(value: Any, path: str) -> list[tuple[str, Any]]:
    """Return each key or number of a path, with what is there; raises as `at_path` does."""
    steps: list[tuple[str, Any]] = []
    while path:
        fits = _fitting_key(value, path)
        if not fits and path[0] in ".[]":
            path = path[1:]
            continue
        key = fits or path.replace("[", ".").replace("]", ".").partition(".")[0]
        # A key may begin with a dot, so no more than what parts two keys is left out.
        path = path[len(key) :].removeprefix("]")
        path = path[1:] if path[:1] in {".", "["} else path
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        elif key == "$":
            continue
        else:
            known = ", ".join(list(value)[:10]) if isinstance(value, dict) else f"a {type(value).__name__}"
            raise ArgumentsInvalid(f"path: {key[:60]!r} does not exist; there is {known[:300]}")
        steps.append((key, value))
    return steps


def _fitting_key(value: Any, path: str) -> str:
    """Return the longest key of an object with which a path begins; empty for none."""
    keys = [str(key) for key in value] if isinstance(value, dict) else []
    fits = [key for key in keys if path.startswith(key) and path[len(key) : len(key) + 1] in {"", ".", "[", "]"}]
    return max(fits, key=len, default="")


def page_of(value: Any, reading: Reading) -> Page:
    """Return a part of a payload that is not larger than a page.

    A record that is larger is read as its JSON text. Raises ArgumentsInvalid for a single item that is larger.
    """
    if reading.as_text and not isinstance(value, str):
        return _json(canonical(value), reading)
    match value:
        case list():
            return _items(value, reading)
        case str():
            return _text(value, reading)
        case _ if len(whole := canonical(value).encode("utf-8", "surrogatepass")) > PAGE_BYTES:
            return _json(whole.decode("utf-8", "replace"), reading)
        case _:
            return Page(value=value, total=1)


def page_of_events(events: Sequence[Event], last: int, reading: Reading) -> Page:
    """Return the first events that fit a page; `last` is the number of the last one that there is."""
    taken = tuple(events[: _fitting([event.plain() for event in events], reading.limit)])
    more = bool(taken) and taken[-1].n < last
    return Page(events=taken, total=last, next=taken[-1].n if more else None)


def _items(value: list[Any], reading: Reading) -> Page:
    rest = value[reading.offset :]
    count = _fitting(rest, reading.limit)
    if rest and not count:
        place = f"{reading.path}.{reading.offset}".lstrip(".")
        raise ArgumentsInvalid(f"path: item {reading.offset} is larger than a page; read path {place!r}")
    end = reading.offset + count
    return Page(value=rest[:count], total=len(value), next=end if end < len(value) else None)


def _json(text: str, reading: Reading) -> Page:
    return _text(text, reading).model_copy(update={"is_json": True})


def _text(value: str, reading: Reading) -> Page:
    end = len(value) if reading.limit is None else reading.offset + reading.limit
    part = value[reading.offset : min(end, reading.offset + PAGE_BYTES)]
    while len(canonical(part).encode("utf-8", "surrogatepass")) > PAGE_BYTES:
        part = part[: len(part) // 2]
    end = reading.offset + len(part)
    return Page(value=part, total=len(value), next=end if end < len(value) else None)


def _fitting(items: Sequence[Any], limit: int | None) -> int:
    """Return how many of the items fit a page."""
    size = 0
    for count, item in enumerate(items if limit is None else items[:limit]):
        size += len(canonical(item).encode("utf-8", "surrogatepass")) + 1
        if size > PAGE_BYTES:
            return count
    return len(items) if limit is None else min(limit, len(items))
