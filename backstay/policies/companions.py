"""Find the other recipients of a call: whom a condition permits by an address must not bring others along.

`to: bo@example.com` with `bcc: eve@evil.test` is one message, and it leaves the domain that a rule permits.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from backstay.data_files import data_beside
from backstay.policies.places import is_place

_RECIPIENTS = frozenset[str](data_beside(__file__)["recipients"].split())
_LONGEST = 100


def companions(conditions: Mapping[str, Mapping[str, Any]], arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the condition, by its path, and the path of each recipient beside the one that it permits by an address.

    An argument with a condition of its own is judged by that; one that is empty is nobody.
    """
    judged = {path.partition(".")[0] for path in conditions}
    by_address = [path for path, operators in conditions.items() if _names_addresses(path, operators)]
    if not by_address:
        return
    others = [name for name, value in arguments.items() if name not in judged and is_recipient(name) and value]
    for path in by_address:
        _, dot, rest = path.partition(".")
        yield from ((path, f"{name}{dot}{rest}") for name in others)


def _names_addresses(path: str, operators: Mapping[str, Any]) -> bool:
    """Return whether a condition says of a recipient whose address it may be."""
    return is_recipient(path.partition(".")[0]) and any(
        is_place(operator, operand) or (operator in ("equals", "in") and _holds_address(operand))
        for operator, operand in operators.items()
    )


def _holds_address(operand: Any) -> bool:
    operands: list[Any] = operand if isinstance(operand, list) else [operand]
    return any(isinstance(each, str) and "@" in each for each in operands)


def is_recipient(name: str) -> bool:
    """Return whether an argument says, by its name, whom a message goes to."""
    return "".join(filter(str.isalnum, name[:_LONGEST])).casefold() in _RECIPIENTS
