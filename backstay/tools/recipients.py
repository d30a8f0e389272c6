"""Know the arguments that say whom a call goes to, and put them first where a call is written on one line."""

import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from string import digits
from typing import Any

from backstay.canonical import canonical
from backstay.data_files import data_beside

(_RECIPIENTS, _KINDS, _FORMS, _SENDING, _NEAR, _ADDRESSES, _SENDER, _ACTING, _READ, _HEADINGS) = (
    frozenset[str](names.split()) for names in data_beside(__file__).values()
)
_LONGEST = 100


def is_recipient(name: str) -> bool:
    """Return whether an argument says, by its name, whom a message goes to."""
    if is_exactly_recipient(name):
        return True
    words = [*_words(name)]
    while words and words[-1] in _FORMS:
        words.pop()
    if not words:
        return bool({"email", "emails"} & {*_words(name)})
    if words[-1] == "to":
        return len(words) == 1 or (words[-2] in _SENDING and "in" not in words)
    return words[-1] in _KINDS


def is_exactly_recipient(name: str) -> bool:
    """Return whether a name as a whole is a usual one of a recipient, such as `to` or `X-Bcc`."""
    plain = _plain(name).casefold()
    return "".join(filter(str.isalnum, plain)).rstrip(digits).removeprefix("x") in _RECIPIENTS


def is_near_recipient(name: str) -> bool:
    """Return whether an address in an argument of this name is a recipient: not the sender's, and no mention."""
    return says_whom(name) and not ({*_words(name)} & _ACTING and _is_only_form(name))


def says_whom(name: str) -> bool:
    """Return whether a name has a word for people or addresses, and none that says that they send."""
    return bool({*_words(name)} & _NEAR) and not is_sender(name) and not is_read(name)


def is_sender(name: str) -> bool:
    """Return whether a name says who sends, or which thing it is, and nothing of who gets it."""
    return bool({*_words(name)} & _SENDER) and _is_only_form(name)


def is_form(name: str) -> bool:
    """Return whether a name says no more than that it is an address."""
    return bool(_words(name)) and {*_words(name)} <= _FORMS


def is_read(name: str) -> bool:
    """Return whether an argument is read by people or searched for: an address in it is a mention."""
    return "".join(_words(name)[-1:]) in _READ


def is_heading(name: str) -> bool:
    """Return whether an argument is the one line above the body."""
    return "".join(_words(name)[-1:]) in _HEADINGS


def call_line(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return a call on one line, with its arguments as JSON: first those that say whom it goes to."""
    names = sorted(arguments, key=lambda name: (not is_recipient(name), name))
    inside = ",".join(f"{canonical(name)}:{canonical(arguments[name])}" for name in names)
    return f"{tool} {{{inside}}}" if inside else tool


def _is_only_form(name: str) -> bool:
    words = {*_words(name)}
    return ("in" in words and "reply" in words) or words & _NEAR <= _ADDRESSES


@lru_cache(maxsize=4096)
def _words(name: str) -> tuple[str, ...]:
    """Return the words of a name, in small letters: `ccList` and `CC_list` have two."""
    plain = _plain(name)
    parted: list[str] = []
    for sign, before, after in zip(plain, f" {plain}", f"{plain[1:]} ", strict=False):
        begins = sign.isupper() and (before.islower() or (before.isupper() and after.islower()))
        parted += [" "] if begins or not sign.isalpha() else []
        parted += [sign] if sign.isalpha() else []
    return tuple("".join(parted).casefold().split())


def _plain(name: str) -> str:
    return unicodedata.normalize("NFKC", name[:_LONGEST])
