"""Decode texts as the programs do that take addresses and URLs: `%`, HTML, JSON, words of mail, names of hosts."""

import base64
import binascii
from collections.abc import Callable
from html import unescape
from string import ascii_letters, ascii_lowercase, digits
from urllib.parse import unquote

from backstay.policies.signs import HEX

_CHARSETS = ("utf", "iso-8859", "windows-125", "koi8")
"""How the names of character sets begin of which reading takes linear time."""
_LONGEST_CHARSET = 40
_IN_LABEL = frozenset(ascii_lowercase + digits + "-")
_ASCII_LABEL = "xn--"
_LONGEST_LABEL = 63
_LETTERS = frozenset(ascii_letters)
_LONGEST_ENTITY = 33
"""With its semicolon."""
_DIGITS = 9
"""A number with more of them stands for no character."""
_LONG_ESCAPE = 4


def decoded(text: str) -> list[str]:
    """Return what one program after the other may read in a string, each code taken off once; none for plain text."""
    codes = [decode for sign, decode in _CODES.items() if sign in text]
    found = [code(text) for code in codes]
    if len(codes) > 1:
        for code in codes:
            text = code(text)
        found.append(text)
    return found


def as_written(text: str) -> str:
    """Return a string in small letters whose hosts are written in their own letters, where they are there in ASCII."""
    first, *parts = text.split(_ASCII_LABEL)
    return first + "".join(map(_label, parts))


def words_decoded(text: str) -> str:
    """Return a string with the encoded words of mail, such as `=?utf-8?q?ana=40x?=`, replaced by their meaning."""
    if "?=" not in text or all(f"?{encoding}?" not in text for encoding in "bBqQ"):
        return text
    parts: list[str] = []
    at, after_word = 0, False
    while (start := text.find("=?", at)) >= 0:
        word, end = _word_at(text, start)
        between = text[at:start]
        # White space between two of them stands for nothing.
        parts += ["" if after_word and end and between.isspace() else between, word]
        at, after_word = end or start + 2, bool(end)
    return "".join([*parts, text[at:]])


def _word_at(text: str, start: int) -> tuple[str, int]:
    """Return the encoded word that begins there, decoded, and where it ends; 0 where there is none."""
    after = text.find("?", start + 2, start + 3 + _LONGEST_CHARSET)
    encoding = text[after + 1 : after + 3].lower()
    end = text.find("?", after + 3) if after > 0 and encoding in {"b?", "q?"} else -1
    if end < 0 or text[end + 1 : end + 2] != "=":
        return "=?", 0
    data = text[after + 3 : end].encode("utf-8", "replace")
    plain = _from_base64(data) if encoding == "b?" else _from_quoted(data)
    # A language may follow the name of the character set.
    charset = text[start + 2 : after].partition("*")[0].strip().lower()
    try:
        word = plain.decode(charset if charset.startswith(_CHARSETS) else "utf-8", "replace")
    except (LookupError, ValueError):
        word = plain.decode("utf-8", "replace")
    return word, end + 2


def _from_base64(data: bytes) -> bytes:
    try:
        return base64.b64decode(data + b"==")
    except binascii.Error:
        return data


def _from_quoted(data: bytes) -> bytes:
    first, *parts = data.replace(b"_", b" ").split(b"=")
    return first + b"".join(map(_quoted, parts))


def _quoted(part: bytes) -> bytes:
    code = part[:2].decode("ascii", "replace").lower()
    is_code = len(code) == 2 and set(code) <= HEX
    return bytes([int(code, 16)]) + part[2:] if is_code else b"=" + part


def _html(text: str) -> str:
    first, *parts = text.split("&")
    return first + "".join(map(_entity, parts))


def _entity(part: str) -> str:
    """Return the character that an entity stands for, and what follows it; anything else stays as it is."""
    if part[:1] == "#":
        # Python reads no number of thousands of digits, and programs leave out the zeros before one.
        sign = part[1:2] if part[1:2] in ("x", "X") else ""
        number = part[1 + len(sign) :].lstrip("0")
        if not sign and number[:_DIGITS].isdecimal() and len(number) >= _DIGITS:
            return f"\ufffd{number.lstrip(digits)}"
        return unescape(f"&#{sign}{number}")
    if part[:1] not in _LETTERS:
        return f"&{part}"
    return unescape(f"&{part[:_LONGEST_ENTITY]}") + part[_LONGEST_ENTITY:]


def _json(text: str) -> str:
    """Return a string with the escapes of JSON, such as the one of four digits for `@`, replaced by characters."""
    first, *parts = text.split("\\u")
    plain = first + "".join(map(_escaped, parts))
    # Two escapes may be the halves of one character.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _escaped(part: str) -> str:
    code = part[:_LONG_ESCAPE].lower()
    is_code = len(code) == _LONG_ESCAPE and set(code) <= HEX
    return chr(int(code, 16)) + part[_LONG_ESCAPE:] if is_code else f"\\u{part}"


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
    "%": lambda text: unquote(text, errors="replace"),
    "&": _html,
    "=?": words_decoded,
    "\\u": _json,
}
"""How a code is taken off, by a character without which it is not there."""
