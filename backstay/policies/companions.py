"""Find the other recipients of a call: a person whom a condition permits by an address must not bring others along.

`to: bo@example.com` with `bcc: eve@evil.test` is one message, and it leaves the domain that a rule permits.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from backstay.canonical import pointer_to
from backstay.policies.places import is_domain_of_mail, is_place
from backstay.tools.recipients import (
    is_exactly_recipient,
    is_form,
    is_heading,
    is_near_recipient,
    is_read,
    is_recipient,
    is_sender,
    says_whom,
)

_NAMED = frozenset(("name", "key", "header", "field", "type", "kind", "role"))
"""The keys of an object that says by its values which header it is, or who somebody is to a message."""
_HEADERS = frozenset(("to", "cc", "bcc"))
_BEFORE_HEADERS = ("x-", "resent-", "apparently-")
_LONGEST_HEADER = 40
_LINE_ENDS = str.maketrans("\r&?{", "\n\n\n\n")
"""Where the name of a header, or of a parameter of a URL, may begin and its value ends."""
_NO_WORDS = frozenset(("yes", "no", "true", "false", "none", "null"))
_LONGEST = 65_536
"""Longer JSON in a string, or JSON that is too deep, is a recipient as it stands: no condition on one holds for it."""
_BEGINS = ("{", "[")


class Companion(NamedTuple):
    """Hold a recipient beside the one whom a condition permits."""

    condition: str
    """The path of that condition."""
    path: str
    pointer: str
    """Where in the arguments it is; of one within a string, where the string is."""
    value: Any
    rest: str
    """What the path of the condition goes on with below a recipient."""


class _Recipient(NamedTuple):
    path: str
    pointer: str
    value: Any


class _Node(NamedTuple):
    found: _Recipient
    name: str
    """The key that it has, or that the list has in which it is."""
    written: bool = False
    """Whether it is in a string, and has the pointer of that string."""


def companions(conditions: Mapping[str, Mapping[str, Any]], arguments: Mapping[str, Any]) -> Iterator[Companion]:
    """Yield each recipient beside the one whom a condition permits by an address, with that condition.

    An argument with a condition of its own is judged by that; one that is empty is nobody.
    """
    judged = {_whom(path)[0] for path in conditions}
    by_address = _by_address(conditions)
    if not by_address:
        return
    others = [found for found in _recipients(arguments) if found.path not in judged]
    for path in by_address:
        rest = _whom(path)[1]
        yield from (Companion(path, *found, rest) for found in others)


def _whom(path: str) -> tuple[str, str]:
    """Return the part of a path that leads to the recipients of a call, or all of it, and what follows that part."""
    keys = path.split(".")
    length = next((number for number, key in enumerate(keys, 1) if is_recipient(key)), len(keys))
    return ".".join(keys[:length]), ".".join(keys[length:])


def _recipients(arguments: Mapping[str, Any]) -> Iterator[_Recipient]:
    """Yield each recipient that is named, also one in the options or the headers of a call, or in a string of these."""
    waiting: list[_Node] = [_Node(_Recipient("", "", arguments), "")]
    while waiting:
        place = waiting.pop()
        above, name, _ = place
        if isinstance(above.value, str):
            if not is_read(name) and (inside := _parsed(above.value)) is not None:
                waiting.append(_Node(above._replace(value=inside), name, written=True))
            else:
                yield from _written(above, name)
            continue
        header, pair, sends = _is_header(above.value), _is_pair(above.value), is_sender(name)
        for key, value in _entries(above.value, pair=pair):
            below = _below(place, key, value, pair=pair)
            if sends and isinstance(key, str) and is_form(key) and _is_flat(value):
                continue
            if _is_companion(key, value, top=not above.path) or (header and _is_of_header(key, value)):
                yield below.found
            elif isinstance(value, Mapping | list | str):
                waiting.append(below)


def _below(place: _Node, key: Any, value: Any, *, pair: bool) -> _Node:
    above, name, written = place
    path = f"{above.path}.{key}" if above.path else f"{key}"
    pointer = above.pointer if written or pair else pointer_to(above.pointer, f"{key}")
    return _Node(_Recipient(path, pointer, value), key if isinstance(key, str) else name, written)


def _entries(value: Any, *, pair: bool) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return value.items()
    # A header as its name and its value.
    return [(value[0], value[1:])] if pair else enumerate(value)


def _is_pair(value: Any) -> bool:
    """Return whether a list is a header: the name of a recipient, and addresses."""
    begins = isinstance(value, list) and len(value) > 1 and isinstance(value[0], str)
    return begins and is_recipient(value[0]) and _holds_address(value[1:])


def _is_companion(key: Any, value: Any, *, top: bool) -> bool:
    """Return whether a key and its value say who else gets something."""
    if not isinstance(key, str) or not value:
        return False
    if is_exactly_recipient(key):
        return top or _says(value)
    if is_recipient(key):
        return _says(value)
    return is_near_recipient(key) and _is_flat(value) and _holds_address(value)


def _is_header(item: Any) -> bool:
    """Return whether an object says by one of its values that another one is a recipient."""
    return isinstance(item, Mapping) and any(
        isinstance(said := item.get(key), str) and is_recipient(said) for key in _NAMED
    )


def _is_of_header(key: Any, value: Any) -> bool:
    return key not in _NAMED and not is_read(f"{key}") and _holds_address(value)


def _written(found: _Recipient, name: str) -> Iterator[_Recipient]:
    """Yield the recipients in a string of headers, or of the parameters of a URL.

    In what people read, only one behind a line break of what is a single line counts: a server may read it as a header.
    """
    text = found.value.replace("\r\n", "\n").strip()
    if "@" not in text or (is_read(name) and not is_heading(name)):
        return
    if is_heading(name):
        text = text.replace("\r", "\n").partition("\n")[2]
    # The body of a mail follows an empty line; a line that begins with a space goes on with the one before it.
    lines = text.partition("\n\n")[0].replace("\n ", " ").replace("\n\t", " ").translate(_LINE_ENDS).split("\n")
    yield from (found._replace(value=value) for line in lines if "@" in line and (value := _of_header(line)))


def _of_header(line: str) -> str:
    """Return the value of a header of recipients in a line, also behind other headers; else nothing."""
    start, commas = 0, line.replace(";", ",")
    while start < len(line):
        begins = line[start : start + _LONGEST_HEADER]
        end = min((at for sign in ":=" if (at := begins.find(sign)) >= 0), default=0)
        header = begins[:end].strip(" \t\"'").lower()
        for before in _BEFORE_HEADERS:
            header = header.removeprefix(before)
        if header in _HEADERS:
            return line[start + end + 1 :].strip(" \t\"'")
        start = (commas.find(",", start) + 1) or len(line)
    return ""


def _parsed(text: str) -> Any:
    """Return the object or list that a string is in JSON; None for any other string."""
    if not text.lstrip().startswith(_BEGINS):
        return None
    unread = {"to": text} if "@" in text else None
    if len(text) > _LONGEST:
        return unread
    try:
        found = json.loads(text)
    except RecursionError:
        return unread
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None


def _is_flat(value: Any) -> bool:
    """Return whether a value is a string or a list of strings, and nothing with names of its own."""
    return isinstance(value, str) or (isinstance(value, list) and any(isinstance(each, str) for each in value))


def _says(value: Any) -> bool:
    """Return whether a value is more than a number, a date or a yes, such as where a span of them ends."""
    if isinstance(value, str):
        return any(map(str.isalpha, value)) and value.strip().casefold() not in _NO_WORDS
    return bool(value) and not isinstance(value, int | float)


def _holds_address(value: Any) -> bool:
    """Return whether there is an address in a string, or in one of a list."""
    values: list[Any] = value if isinstance(value, list) else [value]
    return any(isinstance(each, str) and "@" in each for each in values)


def _by_address(conditions: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the paths of the conditions that say of a recipient whose address it may be.

    An argument that is not called a recipient is one by its address, unless another of the line is called so.
    """
    called = [path for path, operators in conditions.items() if _names_addresses(path, operators)]
    return called or [path for path, operators in conditions.items() if _permits_an_address(path, operators)]


def _names_addresses(path: str, operators: Mapping[str, Any]) -> bool:
    return any(map(is_recipient, path.split("."))) and any(
        is_place(operator, operand) or (operator in ("equals", "in") and _holds_address(operand))
        for operator, operand in operators.items()
    )


def _permits_an_address(path: str, operators: Mapping[str, Any]) -> bool:
    """Return whether a condition permits an address, or a domain of them, as another thing than the sender's."""
    if any(map(is_sender, path.split("."))) or is_read(path.rsplit(".", maxsplit=1)[-1]):
        return False
    says = any(map(says_whom, path.split(".")))
    return any(
        is_domain_of_mail(operator, operand) or (says and is_place(operator, operand))
        for operator, operand in operators.items()
    )
