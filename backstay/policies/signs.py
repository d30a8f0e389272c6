"""Look at the signs of hosts and URLs, in bounded time and without a regular expression."""

from collections.abc import Container
from string import ascii_letters, digits

HEX = frozenset("0123456789abcdef")
_SCHEME = frozenset(ascii_letters + digits + "+.-")
_LABEL = frozenset(ascii_letters + digits + "_-")


def only(text: str, signs: Container[str]) -> bool:
    """Return whether a text has signs, and these only."""
    return bool(text) and all(sign in signs for sign in text)


def scheme_in(text: str) -> tuple[int, int] | None:
    """Return where the first `scheme://`, or `//`, begins and ends in a text; None where there is none."""
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
    """Return whether a text could be the name of a host, or the end of one: at least two labels, none a number last."""
    labels = text.removeprefix(".").removesuffix(".").split(".")
    many = len(labels) > 1 or (text.startswith(".") and text.count(".") > 1)
    return many and all(only(label, _LABEL) for label in labels) and labels[-1][0] in ascii_letters


def is_numbers(text: str) -> bool:
    """Return whether a text could be the beginning of an address in numbers."""
    return "." in text and only(text, digits + ".") and text[0] in digits
