"""Write JSON in exactly one way, so that equal values have equal digests."""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(value: Any) -> str:
    """Return the canonical JSON text: sorted keys, no spaces, real characters, no NaN."""
    return _WRITER.encode(value)


class KeyTwice(ValueError):
    """A key is there twice in one object."""


def read_json(
    text: str, parse_int: Callable[[str], Any] | None = None, parse_float: Callable[[str], Any] | None = None
) -> Any:
    """Return the value of JSON that people write; raises ValueError, also for a key that is there twice.

    Of two values of one key, only one would count, and nobody could say which.
    """
    try:
        return json.loads(text, object_pairs_hook=each_once, parse_int=parse_int, parse_float=parse_float)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of pairs that were read of JSON; raises KeyTwice for a key that is there twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise KeyTwice(f"{key}: duplicate key; keep one of them")
        found[key] = value
    return found


def differs(before: Any, after: Any) -> bool:
    """Return whether two JSON values are different JSON, as 1, 1.0 and true are, which Python takes for equal."""
    return canonical(before) != canonical(after)


def longer_than(value: Any, characters: int) -> bool:
    """Return whether the canonical JSON text is longer, and write no more of it than that takes."""
    written = 0
    for part in _WRITER.iterencode(value):
        written += len(part)
        if written > characters:
            return True
    return False


def deeper_than(value: Any, levels: int) -> bool:
    """Return whether JSON is nested deeper; nothing can exhaust the stack."""
    level: list[Any] = [value]
    for _ in range(levels):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return False
        level = below
    return True


def texts_of(value: Any, *, names: bool = False) -> Iterator[str]:
    """Yield every text in a JSON value, in order; with `names`, those of objects' fields too."""
    match value:
        case str():
            yield value
        case dict():
            for name, item in value.items():
                yield from (name,) if names else ()
                yield from texts_of(item, names=names)
        case list():
            for item in value:
                yield from texts_of(item, names=names)
        case _:
            pass


def with_texts(value: Any, change: Callable[[str], Any], *, names: bool = False) -> Any:
    """Return a JSON value with what each text in it becomes; with `names`, those of objects' fields too."""
    match value:
        case str():
            return change(value)
        case dict():
            return {
                change(name) if names and isinstance(name, str) else name: with_texts(item, change, names=names)
                for name, item in value.items()
            }
        case list():
            return [with_texts(item, change, names=names) for item in value]
        case _:
            return value


def pointer_to(pointer: str, key: Any) -> str:
    """Return the JSON pointer of a key below a pointer."""
    return f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"


def key_of(part: str) -> str:
    """Return the key that a part of a JSON pointer, between two slashes, stands for."""
    return part.replace("~1", "/").replace("~0", "~")


def digest_of(value: Any) -> str:
    """Return the sha256 of the canonical JSON as 64 hex digits."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()
