"""Replace a secret with a handle that becomes the secret again only for the provider it came from."""

import hashlib
import hmac
import json
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from backstay.frozen import Frozen

_OPEN, _KIND = "⟦", "secret:"
MARK = _OPEN + _KIND
_SIMULATED = "sim:"
"""How the mark of a value goes on that a rehearsal has made up, before the number of its call."""
_MARKS = (_KIND, _SIMULATED)
_LONGEST_NUMBER = 9
JOINER = "\u2060"
"""Stands after the bracket of what only looks like a mark of the engine."""
_END = "⟧"
_HEX = frozenset("0123456789abcdef")
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_JSON = json.JSONDecoder()
_DEEPEST = 100
"""How many levels of JSON in JSON are looked into."""
_LABEL = 40
_DIGITS = 24
_LONGEST = len(MARK) + 2 * _LABEL + 1 + _DIGITS + 2


class SecretHandle(Frozen):
    """Name a secret of a provider without revealing it."""

    provider: str
    label: str
    mac: str

    @property
    def text(self) -> str:
        """Return the form that is used in prompts, history and arguments."""
        return f"{MARK}{self.provider}/{self.label}:{self.mac}{_END}"


def handle_for(key: bytes, provider: str, label: str, value: Any) -> str:
    """Return the handle of a secret; equal secrets of one run, provider and label have equal handles."""
    source, name = _name(provider), _clean(label)[:_LABEL] or "secret"
    text = value if isinstance(value, str) else _digits(value)
    message = f"{source}|{name}|{text}".encode("utf-8", "surrogatepass")
    mac = hmac.new(key, message, hashlib.sha256).hexdigest()[:_DIGITS]
    return SecretHandle(provider=source, label=name, mac=mac).text


def provider_of(handle: str) -> str:
    """Return the provider a handle belongs to; empty when the text is not a handle."""
    parsed = _parse(handle)
    return parsed.provider if parsed else ""


def label_of(handle: str) -> str:
    """Return the kind of secret a handle stands for; empty when the text is not a handle."""
    parsed = _parse(handle)
    return parsed.label if parsed else ""


def handle_named(text: str) -> str:
    """Return the handle that a person names with or without its brackets; a string that is none stays as it is."""
    bare = text.strip().removeprefix("⟦").removeprefix("secret:").removesuffix(_END)
    handle = f"{MARK}{bare}{_END}"
    return handle if _parse(handle) else text


def belongs_to(handle: str, provider: str) -> bool:
    """Return whether a secret came from this provider, so that it may go back there unasked."""
    return provider_of(handle) == _name(provider)


def handles_in(value: Any) -> list[str]:
    """Return every handle in a JSON value, keys and parts of longer strings included, each once."""
    found: dict[str, None] = {}
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                found.update((part, None) for part, handle in split_handles(text) if handle is not None)
            case dict() as mapping:
                waiting.extend([*reversed(mapping.values()), *reversed(mapping)])
            case list() | tuple() as items:
                waiting.extend(reversed(items))
            case _:
                pass
    return list(found)


def is_json_like(text: str) -> bool:
    """Return whether a string begins and ends as an object or a list in JSON does."""
    stripped = text.strip()
    return stripped[:1] in ("{", "[") and stripped[-1:] in ("}", "]")


def replace_handles(value: Any, mapping: Mapping[str, Any]) -> Any:
    """Put values back in place of their handles; a string that is one handle becomes the value with its own type.

    Handles that the mapping does not know are left alone.
    """
    match value:
        case str():
            return mapping[value] if value in mapping else _replace_parts(value, mapping)
        case dict():
            return {_replace_parts(k, mapping): replace_handles(item, mapping) for k, item in value.items()}
        case list() | tuple():
            return [replace_handles(item, mapping) for item in value]
        case _:
            return value


def escape_lookalikes(value: Any, known: Container[str], simulated: Container[int] = ()) -> Any:
    """Return a JSON value in which only known handles are handles: others get an invisible character in them.

    Marks of simulated values are none but those of the calls that are simulated. Text that looked like that already
    gets another character, so that `unescape_lookalikes` gives back the original.
    """
    return _changed(value, lambda text: _with_signs(text, lambda part: _is_foreign(part, known, simulated)))


def unescape_lookalikes(value: Any) -> Any:
    """Return a JSON value as it was before `escape_lookalikes`."""
    return _changed(value, lambda text: text if JOINER not in text else _with_signs(text))


def split_lookalikes(text: str) -> list[tuple[str, bool]]:
    """Cut a string at what looks like a handle and is escaped; joined, the parts are the text."""
    parts: list[tuple[str, bool]] = []
    plain_from = at = 0
    while (at := text.find(_OPEN + JOINER, at)) >= 0:
        found = text[at + 1 : at + 1 + 2 * _LONGEST]
        rest = found.lstrip(JOINER)
        part, handle = split_handles(_OPEN + rest)[0]
        if handle is None:
            at += 1
            continue
        end = at + len(part) + len(found) - len(rest)
        parts += [(text[plain_from:at], False)] if at > plain_from else []
        parts.append((text[at:end], True))
        plain_from = at = end
    return [*parts, (text[plain_from:], False)] if plain_from < len(text) or not parts else parts


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str() if _OPEN in value:
            return change(value)
        case dict():
            return {change(name) if _OPEN in name else name: _changed(item, change) for name, item in value.items()}
        case list():
            return [_changed(item, change) for item in value]
        case _:
            return value


def _with_signs(text: str, foreign: Callable[[str], bool] | None = None) -> str:
    """Return a string with one character more after the brackets of lookalikes, or one less where none is foreign."""
    first, *parts = text.split(_OPEN)
    said = [first]
    for part in parts:
        rest = part.lstrip(JOINER)
        signs = len(part) - len(rest)
        if rest.startswith(_MARKS) and foreign is None:
            signs = max(signs - 1, 0)
        elif rest.startswith(_MARKS) and (signs or (foreign is not None and foreign(rest))):
            signs += 1
        said.append(JOINER * signs + rest)
    return _OPEN.join(said)


def _is_foreign(rest: str, known: Container[str], simulated: Container[int]) -> bool:
    if rest.startswith(_SIMULATED):
        number, colon, _ = rest.removeprefix(_SIMULATED).partition(":")
        is_one = colon and number.isascii() and number.isdecimal() and len(number) <= _LONGEST_NUMBER
        return bool(is_one) and int(number) not in simulated
    part, handle = split_handles(f"{_OPEN}{rest}")[0]
    return handle is not None and part not in known


def split_handles(text: str) -> list[tuple[str, SecretHandle | None]]:
    """Cut a string into plain parts and handles, in order; joined, the parts are the text."""
    parts: list[tuple[str, SecretHandle | None]] = []
    plain_from = at = 0
    while (at := text.find(MARK, at)) >= 0:
        end = text.find(_END, at, at + _LONGEST)
        handle = _parse(text[at : end + 1]) if end >= 0 else None
        if handle is None:
            at += len(MARK)
            continue
        if at > plain_from:
            parts.append((text[plain_from:at], None))
        parts.append((text[at : end + 1], handle))
        plain_from = at = end + 1
    if plain_from < len(text) or not parts:
        parts.append((text[plain_from:], None))
    return parts


def _replace_parts(text: Any, mapping: Mapping[str, Any]) -> Any:
    if not isinstance(text, str) or MARK not in text:
        return text
    parts, is_json = split_handles(text), _is_json(text)
    values = _values(text, mapping, is_json=is_json)
    # One that is written with escapes is a handle to whoever reads the JSON only: it is passed over here.
    said = [next((value for name, value in values if name == part), part) if handle else part for part, handle in parts]
    if is_json:
        for at in range(1, len(parts) - 1):
            if not isinstance(mapping.get(parts[at][0], ""), str) and _is_quoted(said[at - 1], said[at + 1]):
                said[at - 1], said[at + 1] = said[at - 1][:-1], said[at + 1][1:]
    return "".join(said)


def _values(text: str, mapping: Mapping[str, Any], depth: int = 0, *, is_json: bool) -> Iterator[tuple[str, str]]:
    """Yield each handle in a string with what takes its place; in JSON, values are written as its strings are."""
    if not is_json:
        yield from (
            (part, _as_text(mapping[part]) if part in mapping else part)
            for part, handle in split_handles(text)
            if handle
        )
        return
    for string in _strings(text):
        if MARK in string:
            is_json = depth < _DEEPEST and _is_json(string)
            for name, value in _values(string, mapping, depth + 1, is_json=is_json):
                yield name, json.dumps(value, ensure_ascii=False)[1:-1]


def _is_json(text: str) -> bool:
    try:
        return is_json_like(text) and isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


def _strings(text: str) -> Iterator[str]:
    """Yield the strings of a JSON text, names included."""
    at = text.find('"')
    while at >= 0:
        string, end = _JSON.raw_decode(text, at)
        yield string
        at = text.find('"', end)


def _is_quoted(before: str, behind: str) -> bool:
    """Return whether what is between two parts of JSON text is a whole string, and no name: a number is none."""
    is_string = before.endswith('"') and not before.endswith('\\"') and behind.startswith('"')
    return is_string and not behind[1:].lstrip().startswith(":")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _parse(text: str) -> SecretHandle | None:
    if not text.startswith(MARK) or not text.endswith(_END):
        return None
    names, _, mac = text[len(MARK) : -len(_END)].rpartition(":")
    provider, slash, label = names.partition("/")
    if not slash or len(mac) != _DIGITS or not _HEX.issuperset(mac):
        return None
    if not all(0 < len(name) <= _LABEL and _PLAIN.issuperset(name) for name in (provider, label)):
        return None
    return SecretHandle(provider=provider, label=label, mac=mac)


def _name(provider: str) -> str:
    """Return the provider's name as it is in handles; names that had to be changed stay distinct."""
    cleaned = _clean(provider)
    if cleaned == provider and 0 < len(provider) <= _LABEL:
        return provider
    mark = hashlib.sha256(provider.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{cleaned[: _LABEL - 9]}-{mark}"


def _digits(value: Any) -> str:
    # Python refuses to write integers of thousands of digits in decimal.
    return hex(value) if isinstance(value, int) else repr(value)


def _clean(name: str) -> str:
    return "".join(sign if sign in _PLAIN else "_" for sign in name)
