"""Look at the characters of hosts and URLs, in bounded time and without a regular expression."""

import ipaddress
from collections.abc import Container
from string import ascii_letters, digits

HEX = frozenset("0123456789abcdef")
_NUMBERS = 4
_LONGEST_NUMBER = 40
_SCHEME = frozenset(ascii_letters + digits + "+.-")
_LABEL = frozenset(ascii_letters + digits + "_-")


def only(text: str, signs: Container[str]) -> bool:
    """Return whether a string is not empty, and has these characters only."""
    return bool(text) and all(sign in signs for sign in text)


def scheme_in(text: str) -> tuple[int, int] | None:
    """Return where the first `scheme://`, or `//`, begins and ends in a string; None where there is none."""
    at = text.find("//")
    if at < 0:
        return None
    start = at
    if at > 0 and text[at - 1] == ":":
        start = at - 1
        while start > 0 and text[start - 1] in _SCHEME:
            start -= 1
    return start, at + 2


def end_of_authority(text: str) -> int:
    """Return where what may name a host ends in a URL without its scheme."""
    return min((at for sign in "/?#" if (at := text.find(sign)) >= 0), default=len(text))


def is_host(text: str) -> bool:
    """Return whether a string could be a host's name, or the end of one: at least two labels, the last not a number."""
    labels = text.removeprefix(".").removesuffix(".").split(".")
    many = len(labels) > 1 or (text.startswith(".") and text.count(".") > 1)
    return many and all(only(label, _LABEL) for label in labels) and labels[-1][0] in ascii_letters


def is_numbers(text: str) -> bool:
    """Return whether a string could be the beginning of an address in numbers."""
    return "." in text and only(text, digits + ".") and text[0] in digits


def dotted(host: str) -> str:
    """Return an address in numbers in the usual way, however it is written; empty for what is none.

    Programs also take fewer numbers than four, hexadecimal or octal ones, one that is mapped into IPv6, and one of IPv6
    at its full length.
    """
    if host.startswith("[") and host.endswith("]"):
        return _of_version_6(host[1:-1])
    parts = host.split(".")
    if len(parts) > _NUMBERS or not all(len(part) <= _LONGEST_NUMBER for part in parts):
        return ""
    numbers = [_number(part) for part in parts]
    last = numbers.pop()
    if last is None or last >= 256 ** (_NUMBERS - len(numbers)):
        return ""
    whole = last
    for place, number in enumerate(numbers):
        if number is None or number > 255:
            return ""
        whole += number << 8 * (_NUMBERS - 1 - place)
    return str(ipaddress.IPv4Address(whole))


def _of_version_6(text: str) -> str:
    try:
        found = ipaddress.IPv6Address(text)
    except ValueError:
        return ""
    return f"[{found.compressed}]" if found.ipv4_mapped is None else str(found.ipv4_mapped)


def _number(text: str) -> int | None:
    """Return a number of an address: decimal, hexadecimal after `0x`, octal after `0`; None for what is none."""
    if text.startswith("0x"):
        return int(text[2:] or "0", 16) if only(text[2:] or "0", HEX) else None
    octal = text.startswith("0") and only(text, "01234567")
    if not only(text, digits):
        return None
    return int(text, 8 if octal else 10)
