"""Decode texts as the programs do that take addresses and URLs: percent codes, HTML, words of mail, names of hosts."""

import base64
import binascii
import re
from collections.abc import Callable
from html import unescape
from string import ascii_lowercase, digits

_CHARSETS = ("utf", "iso-8859", "windows-125", "koi8")
"""How the names of character sets begin of which reading takes linear time."""
_WORD = re.compile(r"=\?([^?]{1,40})\?([bBqQ])\?([^?]*)\?=")
_WORDS = re.compile(rf"{_WORD.pattern}(?:\s*{_WORD.pattern})*")
_QUOTED = re.compile(rb"=([0-9a-fA-F]{2})")
_PERCENTS = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_DIGITS = 8
"""A number with more of them stands for no sign."""
# Programs leave out the zeros before a number.
_ENTITY = re.compile(r"&(?:#0*([0-9]+);?|#[xX]0*([0-9a-fA-F]+);?|[A-Za-z][A-Za-z0-9]{1,31};?)")
_IN_LABEL = frozenset(ascii_lowercase + digits + "-")
_ASCII_LABEL = "xn--"
_LONGEST_LABEL = 63


def decoded(text: str) -> list[str]:
    """Return what one program after the other may read in a text, each code taken off once; nothing for plain text."""
    codes = [decode for sign, decode in _CODES.items() if sign in text]
    found = [code(text) for code in codes]
    if len(codes) > 1:
        for code in codes:
            text = code(text)
        found.append(text)
    return found


def as_written(text: str) -> str:
    """Return a text in small letters whose hosts are written in their own letters, where they stand there in ASCII."""
    first, *parts = text.split(_ASCII_LABEL)
    return first + "".join(map(_label, parts))


def words_decoded(text: str) -> str:
    """Return a text with the encoded words of mail, such as `=?utf-8?q?ana=40x?=`, replaced by what they stand for."""
    # White space between two of them stands for nothing.
    return _WORDS.sub(lambda found: "".join(_word(*word) for word in _WORD.findall(found[0])), text)


def _word(charset: str, encoding: str, said: str) -> str:
    data = said.encode("utf-8", "replace")
    plain = _from_base64(data) if encoding in "bB" else _from_quoted(data)
    # A language may follow the name of the character set.
    name = charset.partition("*")[0].strip().lower()
    try:
        return plain.decode(name if name.startswith(_CHARSETS) else "utf-8", "replace")
    except (LookupError, ValueError):
        return plain.decode("utf-8", "replace")


def _from_base64(data: bytes) -> bytes:
    try:
        return base64.b64decode(data + b"==")
    except binascii.Error:
        return data


def _from_quoted(data: bytes) -> bytes:
    return _QUOTED.sub(lambda found: bytes.fromhex(found[1].decode("ascii")), data.replace(b"_", b" "))


def _percent(text: str) -> str:
    return _PERCENTS.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace"), text)


def _html(text: str) -> str:
    return _ENTITY.sub(_sign, text)


def _sign(found: re.Match[str]) -> str:
    number, hexadecimal = found.groups()
    if len(number or hexadecimal or "") > _DIGITS:
        return "\ufffd"
    return unescape(f"&#{number};" if number else f"&#x{hexadecimal};" if hexadecimal else found[0])


def _label(part: str) -> str:
    """Return what stands for the rest of a label in ASCII, and what follows it."""
    length = 0
    while length < len(part) and part[length] in _IN_LABEL and length <= _LONGEST_LABEL:
        length += 1
    try:
        if length > _LONGEST_LABEL - len(_ASCII_LABEL):
            return f"{_ASCII_LABEL}{part}"
        return part[:length].encode("ascii").decode("punycode") + part[length:]
    except ValueError:
        return f"{_ASCII_LABEL}{part}"


_CODES: dict[str, Callable[[str], str]] = {
    "%": _percent,
    "&": _html,
    "=?": words_decoded,
}
"""How a code is taken off, by a sign without which it is not there."""
