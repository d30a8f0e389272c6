"""Recognise the arguments that say where a call goes: addresses, account numbers, paths, URLs and commands.

Both the shape of the value and the name of the argument count, and one of them is enough.
"""

import re
from typing import Literal

from backstay.data_files import data_beside
from backstay.provenance.words import words

Shape = Literal["atom", "place", "other"]
"""atom: an address or account number, which is one thing; place: a path, URL or command, which is put together."""

SHORT = 200
"""A longer text, or one of several lines, is a target by its name only."""
_ATOM_NAMES, _PLACE_NAMES = (frozenset[str](names.split()) for names in data_beside(__file__).values())
_EMAIL = re.compile(r"[^\s@<>,;:\"']{1,80}@[^\s@<>,;:\"']{1,120}")
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}://\S{1,180}|www\.\S{4,180}", re.IGNORECASE)
_HEADER = re.compile(r"[\r\n]\s{0,20}(?:to|cc|bcc|reply-to)\s{0,20}:", re.IGNORECASE)
_HOST = re.compile(r"://([^\s/?#]{1,180})")
_ACCOUNT = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]{2,5}){2,9}|\+?\d(?:[ ().-]{0,2}\d){7,30})(?![A-Za-z0-9])"
)
_PATH = re.compile(r"(?:~|\.{1,2})?[/\\][^\s]{2,}|[A-Za-z]:[/\\]\S+|[\w.-]+(?:[/\\][\w.-]+)+")
_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def shape_of(name: str, value: str) -> Shape:
    """Return what kind of target an argument is, by its name and its value."""
    text = value.strip()
    if len(text) <= SHORT and "\n" not in text:
        if _URL.search(text):
            return "place"
        if _EMAIL.search(text) or _ACCOUNT.search(text):
            return "atom"
        if _PATH.fullmatch(text):
            return "place"
    if _HEADER.search(text[:2000]):
        # A line that a mail server would read as one more recipient.
        return "atom"
    named = set(map(str.lower, _NAME.findall(name)))
    if named & _PLACE_NAMES:
        return "place"
    return "atom" if named & _ATOM_NAMES and len(text) <= SHORT and len(words(text)) < 20 else "other"


def hosts_in(value: str) -> list[str]:
    """Return the hosts of the URLs in a short value."""
    return [] if len(value) > SHORT else _HOST.findall(value)


def is_address_of_a_page(name: str, value: str) -> bool:
    """Return whether a value says which page a read fetches."""
    named = set(map(str.lower, _NAME.findall(name)))
    return _URL.search(value) is not None or bool(named & {"url", "urls", "uri", "link", "href", "endpoint"})
