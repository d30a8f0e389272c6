"""Take a string apart into the marks by which it is found again: its words, and each two words that follow each other.

A word is a run of letters and digits; case, width, space, punctuation and invisible marks do not count. So
`Ana.Keller@Nordwind.example` and `ana keller (at nordwind)` share the words `ana`, `keller` and `nordwind`, and the
first two of them in order.
"""

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, wraps
from html import unescape
from itertools import islice
from operator import add
from typing import Any, TypeVar
from urllib.parse import unquote

Found = TypeVar("Found")
BORDER = "\x1f"
"""Stands between the values of an answer: words on both sides of it do not follow each other."""
LEAST_ALIKE = 4
"""Of shorter words, two that differ in one letter do not look alike."""
_WORD = re.compile(rf"[^\W_]+|{BORDER}")
_PLAIN = bytes(
    ord(chr(code).lower()) if code < 128 and (chr(code).isalnum() or chr(code) == BORDER) else 32 for code in range(256)
)
_BETWEEN = bytes(code for code in range(128) if not chr(code).isalnum())
_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_SIGN = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))")
_ENTITY = re.compile(r"&#(?:\d{2,6}|[xX][0-9A-Fa-f]{2,5});")
_PUNYCODE = re.compile(r"(?<![\w.-])(?:[a-z0-9-]{1,63}\.){0,8}xn--[a-z0-9-]{1,59}(?:\.[a-z0-9-]{1,63}){0,8}")
_AROUND = 80
"""Characters before and after a coded character that are read with it."""
# Runs of base64 or hexadecimal digits: in text from 24 digits on, in an argument from 12 on.
_CODED = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}")
_DIGITS_OF_CODE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")
_AS_CODE = bytes(120 if code in _DIGITS_OF_CODE else 32 for code in range(256))
_LONG_CODE = b"x" * 24
"""A string without this many of these digits in a row has no such run; this is seen faster."""
_BASE32 = re.compile(r"[A-Z2-7]+=*|[a-z2-7]+=*")
_USUAL_NAME = 64
"""Of names of fields and tools with at most this many characters it is remembered what was found in them."""
_LONG = 12
"""Where no word is that long, nothing is written in base64 or hexadecimal."""
_CODED_LEAF = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_LETTERS = re.compile(rf" [^ {BORDER}](?: [^ {BORDER}]){{3,}}(?= )")
_AS_LETTER = bytes(code if chr(code) in f" {BORDER}" else 120 for code in range(256))
_FOUR_LETTERS = re.compile(b" x x x x ")
"""In a string in ASCII, each such run begins with these; they are found faster, too."""
_ESCAPED = re.compile(r"\\[nrtbf]([^\W_]+)")
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:[.,]\d{1,6})?|\d{1,3}(?:[., ']\d{3})+(?:[.,]\d{1,6})?")
_INVISIBLE = ((0xAD, 0xAD), (0x34F, 0x34F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x2064), (0xFE00, 0xFE0F),
              (0xFEFF, 0xFEFF))  # fmt: skip
_UNSEEN = dict.fromkeys(code for first, last in _INVISIBLE for code in range(first, last + 1))


def remembered_of_names(most: int) -> Callable[[Callable[[str], Found]], Callable[[str], Found]]:
    """Remember what is found in `most` usual names, which come again with each call; no longer text is kept."""

    def remembering(find: Callable[[str], Found]) -> Callable[[str], Found]:
        remembered = lru_cache(maxsize=most)(find)

        @wraps(find)
        def found(name: str) -> Found:
            return remembered(name) if len(name) <= _USUAL_NAME else find(name)

        return found

    return remembering


@remembered_of_names(4096)
def name_words(name: str) -> tuple[str, ...]:
    """Return the words of the name of a tool or of a field, in small letters: `listFiles` has two."""
    return tuple(word.lower() for word in _NAME.findall(name))


def normalise(text: str) -> str:
    """Return a string as it is compared: compatible forms folded into one, invisible marks gone, small letters."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).translate(_UNSEEN).casefold()
    return folded if folded.isascii() else unicodedata.normalize("NFC", folded)


def _in_order(text: str) -> list[str]:
    """Return the words and borders of a string, in order."""
    if not text.isascii():
        return _WORD.findall(normalise(text))
    # A table does in one pass what is slow as an expression.
    spaced = text.replace(BORDER, f" {BORDER} ") if BORDER in text else text
    return spaced.encode().translate(_PLAIN).decode().split()


def words(text: str) -> list[str]:
    """Return the words of a string, in order."""
    if BORDER in text:
        return [word for word in _in_order(text) if word != BORDER]
    return text.encode().translate(_PLAIN).decode().split() if text.isascii() else _in_order(text)


def squeezed(in_order: list[str]) -> str:
    """Return words as one run of letters and digits."""
    return "".join(in_order)


def run_of(text: str) -> str:
    """Return the words of a string as one run of letters and digits."""
    return text.encode().translate(_PLAIN, _BETWEEN).decode() if text.isascii() else squeezed(words(text))


def differ_in_one(word: str, other: str) -> bool:
    """Return whether two words differ in one character, as with a zero for an O or a letter of another script."""
    return len(word) == len(other) >= LEAST_ALIKE and sum(map(str.__ne__, word, other)) == 1


def marks(text: str) -> set[str]:
    """Return the words and pairs of words of a string, those of what is coded in it included."""
    in_order = _in_order(text)
    single = in_order
    if BORDER in text:
        # A border is not a word, and with a word before or after it makes that word again.
        single = ["" if word == BORDER else word for word in in_order]
    found = set(single)
    coded = max(map(len, found), default=0) >= _LONG
    found.update(map(add, single, islice(single, 1, None)))
    found.discard("")
    for part in _decoded(text, coded=coded):
        plain = words(part)
        found.update(plain, map(add, plain, islice(plain, 1, None)))
    found.update(run.replace(" ", "") for run in _letters_in(f" {' '.join(in_order)} "))
    return found


def _letters_in(row: str) -> Iterator[str]:
    """Yield the runs of one letter after the other, such as "m a l l o r y", in words with a space between them."""
    if not row.isascii():
        yield from _LETTERS.findall(row)
        return
    plain = row.encode().translate(_AS_LETTER)
    at = 0
    while (begun := _FOUR_LETTERS.search(plain, at)) and (found := _LETTERS.match(row, begun.start())):
        yield found[0]
        at = found.end()


def _decoded(text: str, *, coded: bool) -> Iterator[str]:
    """Yield what is in a string in another coding."""
    if "%" in text:
        yield from map(unquote, _around(_PERCENT, text))
    if "\\" in text:
        yield from _ESCAPED.findall(text)
        yield from (_SIGN.sub(_sign_of, part) for part in _around(_SIGN, text))
    if "&#" in text:
        yield from map(unescape, _around(_ENTITY, text))
    if "xn--" in text:
        yield from filter(None, map(_punycoded, _PUNYCODE.findall(text)))
    for run in _CODED.findall(text) if coded and may_be_coded(text) else ():
        if (plain := decoded(run)) is not None:
            yield plain


def may_be_coded(text: str) -> bool:
    """Return whether a string has a run so long that something may be coded in it."""
    return len(text) >= len(_LONG_CODE) and _LONG_CODE in text.encode(errors="replace").translate(_AS_CODE)


def _sign_of(escaped: re.Match[str]) -> str:
    return chr(int(escaped[1] or escaped[2], 16))


def _punycoded(name: str) -> str:
    """Return the name of a host as people read it; empty where it is none."""
    try:
        return name.encode().decode("idna")
    except UnicodeError:
        return ""


def _around(coded: re.Pattern[str], text: str) -> Iterator[str]:
    """Yield the parts of a string in which characters are coded, with what is before and after them."""
    start = end = 0
    for found in coded.finditer(text):
        if found.start() - _AROUND > end:
            yield text[start:end]
            start = found.start() - _AROUND
        end = found.end() + _AROUND
    yield text[start:end]


def decoded(run: str) -> str | None:
    """Return the text that a run of hexadecimal, base64 or base32 digits stands for, or None."""
    try:
        data = bytes.fromhex(run)
    except ValueError:
        plain = run.rstrip("=").replace("-", "+").replace("_", "/")
        try:
            data = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        except (binascii.Error, ValueError):
            data = b""
    return _readable(data) or (_readable(_of_base32(run)) if _BASE32.fullmatch(run) else None)


def _of_base32(run: str) -> bytes:
    plain = run.rstrip("=").upper()
    try:
        return base64.b32decode(plain + "=" * (-len(plain) % 8))
    except binascii.Error:
        return b""


def _readable(data: bytes) -> str | None:
    """Return the text that bytes are; None where they are none."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if text and text.replace("\n", " ").replace("\t", " ").replace("\r", " ").isprintable() else None


def coded_in(leaf: str) -> list[str]:
    """Return the texts that are in a leaf in base64 or hexadecimal."""
    runs = [] if len(leaf) > 4096 else _CODED_LEAF.findall(leaf)
    return [text for text in map(decoded, runs) if text is not None]


def spellings(leaf: str, known: Mapping[str, Any] | None = None) -> Iterator[list[str]]:
    """Yield the words of a leaf as an enemy may have spelled it: backwards, coded, turned, or character by character.

    With what is known of marks, those are left out that begin with two characters which stand nowhere.
    """
    data = leaf.encode("utf-8", "replace")
    yield words(leaf[::-1])
    yield words(base64.b64encode(data).decode().rstrip("="))
    yield words(base64.b32encode(data).decode().rstrip("="))
    yield words(data.hex())
    yield words(leaf.translate(_TURNED))
    yield words(leaf.translate(_LOOKING_ALIKE))
    for signs in _SIGNS:
        if known is None or len(data) < 2 or known[signs[data[0]] + signs[data[1]]]:
            yield [signs[sign] for sign in data]


def numbers(value: Any) -> list[list[str]]:
    """Return how a number may be written, each way as its words; nothing for what is not a number.

    1250.5 is also 1,250.50 and 1.250,50.
    """
    if isinstance(value, str):
        value = _number(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) >= 1e15:  # noqa: PLR0124 - NaN
        return []
    whole, _, rest = f"{abs(value):.6f}".rstrip("0").rstrip(".").partition(".")
    grouped = f"{int(whole):,}".split(",")
    fractions = [[rest], [rest.ljust(2, "0")]] if rest else [[], ["00"], ["0"]]
    return [front + fraction for fraction in fractions for front in ([whole], grouped)]


def _number(text: str) -> float | None:
    if not _NUMBER.fullmatch(text):
        return None
    plain = text.replace(" ", "").replace("'", "")
    places = max(plain.rfind("."), plain.rfind(","))
    if places >= 0 and len(plain) - places - 1 != 3:
        return float(f"{plain[:places].replace('.', '').replace(',', '')}.{plain[places + 1 :]}")
    return float(plain.replace(".", "").replace(",", ""))


# One character after the other: `53 45`, `83 69`, `123 105`, eight bits each, backslash and `u0053`, backslash and
# `x53`.
_SIGNS = tuple(
    [form.format(sign) for sign in range(256)] for form in ("{:02x}", "{}", "{:03o}", "{:08b}", "u{:04x}", "x{:02x}")
)
# Digits for the letters that they look like.
_LOOKING_ALIKE = str.maketrans("aeiostAEIOST", "431057" * 2)
_SMALL = "abcdefghijklmnopqrstuvwxyz"
_TURNED = str.maketrans(_SMALL + _SMALL.upper(), _SMALL[13:] + _SMALL[:13] + _SMALL.upper()[13:] + _SMALL.upper()[:13])
