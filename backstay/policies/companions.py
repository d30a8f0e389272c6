"""Find the other recipients of a call: a person whom a condition permits by an address must not bring others along.

`to: bo@example.com` with `bcc: eve@evil.test` is one message, and it leaves the domain that a rule permits.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from backstay.policies.places import is_place
from backstay.tools.recipients import is_recipient


def companions(conditions: Mapping[str, Mapping[str, Any]], arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the condition, by its path, and the path of each recipient beside the one that it permits by an address.

    An argument with a condition of its own is judged by that; one that is empty is nobody.
    """
    judged = {_whom(path)[0] for path in conditions}
    by_address = [path for path, operators in conditions.items() if _names_addresses(path, operators)]
    if not by_address:
        return
    others = [place for place in _recipients(arguments) if place not in judged]
    for path in by_address:
        _, rest = _whom(path)
        yield from ((path, f"{place}.{rest}" if rest else place) for place in others)


def _whom(path: str) -> tuple[str, str]:
    """Return the part of a path that leads to the recipients of a call, or its first key, and what follows it."""
    keys = path.split(".")
    length = next((number for number, key in enumerate(keys, 1) if is_recipient(key)), 1)
    return ".".join(keys[:length]), ".".join(keys[length:])


def _recipients(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the path of each recipient that is named, also one in the options or the headers of a call."""
    waiting: list[tuple[str, Any]] = [("", arguments)]
    while waiting:
        above, item = waiting.pop()
        inside: Iterable[tuple[Any, Any]] = item.items() if isinstance(item, Mapping) else enumerate(item)
        for key, value in inside:
            path = f"{above}.{key}" if above else f"{key}"
            if isinstance(key, str) and is_recipient(key) and value and (not above or _has_words(value)):
                yield path
            elif isinstance(value, Mapping | list):
                waiting.append((path, value))


def _has_words(value: Any) -> bool:
    """Return whether a value is more than a number or a date, such as where a span of them ends."""
    return not isinstance(value, int | float) and (not isinstance(value, str) or any(map(str.isalpha, value)))


def _names_addresses(path: str, operators: Mapping[str, Any]) -> bool:
    """Return whether a condition says of a recipient whose address it may be."""
    return any(map(is_recipient, path.split("."))) and any(
        is_place(operator, operand) or (operator in ("equals", "in") and _holds_address(operand))
        for operator, operand in operators.items()
    )


def _holds_address(operand: Any) -> bool:
    operands: list[Any] = operand if isinstance(operand, list) else [operand]
    return any(isinstance(each, str) and "@" in each for each in operands)
