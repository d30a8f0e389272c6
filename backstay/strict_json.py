"""Convert any Python value to strict JSON."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import chain
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pydantic import BaseModel

DEEPEST = 100
_MOST_BITS = 1024
_LARGE = 1 << _MOST_BITS
_PLAIN = frozenset((dict, list, str, int, float, bool, type(None)))
_NOT_FINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}
OPAQUE = "nested too deeply to be shown"


def clean_json(value: Any, deepest: int = DEEPEST) -> Any:
    """Return the value as strict JSON: no NaN, no lone surrogates, text keys, no cycles, at most `deepest` levels.

    Never raises. A value that JSON cannot express becomes a short description; strict JSON is returned unchanged.
    """
    return value if _is_strict(value, deepest) else _clean(value, deepest, set())


def clean_text(text: str) -> str:
    """Return the text with lone surrogates replaced, so that it can be written as UTF-8."""
    plain = str.__str__(text)
    if plain.isascii():
        return plain
    try:
        plain.encode()
    except UnicodeEncodeError:
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return plain


def _is_strict(value: Any, deepest: int) -> bool:
    """Return whether a value is strict JSON; also False when the same list or object occurs twice."""
    # Checking whole levels takes a quarter of the time of checking each leaf.
    level, met = [value], set[int]()
    for _ in range(deepest + 1):
        of_kind: dict[type, list[Any]] = {kind: [] for kind in {*map(type, level)}}
        add = {kind: found.append for kind, found in of_kind.items()}
        for item in level:
            add[type(item)](item)
        objects, lists = of_kind.get(dict, []), of_kind.get(list, [])
        names = [*chain.from_iterable(objects)]
        ints = of_kind.get(int, [0])
        if not (
            of_kind.keys() <= _PLAIN
            and {*map(type, names)} <= {str}
            and _is_utf8(names)
            and _is_utf8(of_kind.get(str, []))
            and all(map(math.isfinite, of_kind.get(float, [])))
            and -_LARGE < min(ints) <= max(ints) < _LARGE
        ):
            return False
        if not objects and not lists:
            return True
        inside = {*map(id, objects), *map(id, lists)}
        if len(inside) < len(objects) + len(lists) or not met.isdisjoint(inside):
            return False
        met |= inside
        level = [*chain.from_iterable(lists), *chain.from_iterable(map(dict.values, objects))]
    return False


def _is_utf8(texts: list[str]) -> bool:
    if all(map(str.isascii, texts)):
        return True
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


def _clean(value: Any, left: int, above: set[int]) -> Any:
    # Nearly all values have exactly one of these types; a subclass may behave differently and takes the slow path.
    kind = type(value)
    if kind is str:
        return value if value.isascii() else clean_text(value)
    if kind is dict or kind is list:
        return _clean_inside(value, left, above)
    if value is None or kind is bool:
        return value
    if kind is int and -_LARGE < value < _LARGE:
        return value
    if kind is float and value - value == 0:
        return value
    return _clean_other(value, left, above)


def _clean_other(value: Any, left: int, above: set[int]) -> Any:
    match value:
        case Enum():
            return _clean(value.value, left, above)
        case str():
            return clean_text(value)
        case int():
            return int(value) if value.bit_length() <= _MOST_BITS else f"a number of {value.bit_length()} bits"
        case float():
            return float(value) if value - value == 0 else _NOT_FINITE.get(float(value), "NaN")
        case _:
            opened = _opened(value)
            return _clean_inside(opened, left, above) if isinstance(opened, Mapping | list) else opened


def _clean_inside(value: Mapping[Any, Any] | list[Any], left: int, above: set[int]) -> Any:
    if left <= 0 or id(value) in above:
        return OPAQUE
    above.add(id(value))
    try:
        left -= 1
        # Leaves are checked inline: a call for each one would dominate the running time.
        if isinstance(value, list):
            return [
                item
                if ((kind := type(item)) is str and item.isascii()) or (kind is float and item - item == 0)
                else _clean(item, left, above)
                for item in value
            ]
        cleaned: dict[str, Any] = {}
        for key, item in value.items():
            name = key if type(key) is str and key.isascii() else _key(key)
            if name in cleaned:
                name = unique_key(name, cleaned)
            kind = type(item)
            plain = (kind is str and item.isascii()) or (kind is float and item - item == 0)
            cleaned[name] = item if plain else _clean(item, left, above)
        return cleaned
    finally:
        above.discard(id(value))


def unique_key(key: str, taken: Mapping[str, Any]) -> str:
    """Return the key, with a number added if it is taken, so that no entry replaces another."""
    if key not in taken:
        return key
    count = len(taken) + 1
    while f"{key}#{count}" in taken:
        count += 1
    return f"{key}#{count}"


def _opened(value: Any) -> Any:
    """Return a mapping, a list or a string for a value whose type JSON does not have."""
    match value:
        case Mapping() | list():
            return value
        case tuple():
            return list(value)
        case set() | frozenset():
            return sorted(value, key=repr)
        case bytes() | bytearray() | memoryview():
            data = bytes(value)
            return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"
        case date() | time():
            return value.isoformat()
        case Decimal() | UUID() | PurePath() | timedelta():
            return clean_text(str(value))
        case _:
            return _opened_object(value)


def _opened_object(value: Any) -> Any:
    name = clean_text(type(value).__name__)
    try:
        if isinstance(value, BaseModel):
            return value.model_dump()
        if is_dataclass(value) and not isinstance(value, type):
            return {field.name: getattr(value, field.name) for field in fields(value)}
        if isinstance(value, BaseException):
            return clean_text(f"{name}: {value}")
    except Exception:
        # Any method of an unknown class may raise; only its name is safe to use.
        return f"a {name}"
    # repr often contains an address, which differs between processes.
    return f"a {name}"


def _key(key: Any) -> str:
    match key:
        case str():
            return clean_text(key)
        case bool():
            return "true" if key else "false"
        case None:
            return "null"
        case int() | float() | tuple() | Enum():
            cleaned = _clean(key, 3, set())
            return cleaned if isinstance(cleaned, str) else clean_text(repr(cleaned))
        case _:
            opened = _opened(key)
            return opened if isinstance(opened, str) else f"a {clean_text(type(key).__name__)}"
