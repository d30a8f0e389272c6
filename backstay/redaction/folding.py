"""Reduce a string to its letters and digits, so that a secret is found however it is set apart, escaped or styled.

Folded, `S-e c%72 ⓔt` is `secret`: without case, accents, separators and invisible characters, and with escapes
resolved.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from html import unescape
from itertools import accumulate
from operator import itemgetter
from unicodedata import normalize

_ROUNDS = 3
"""How often an escape may have been escaped again."""
_MOST_REMEMBERED = 20_000
_LAST_CODE = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_CHUNK = 1024
_HINT = re.compile(r"[%\\&=]")
_ESCAPE = re.compile(
    r"""(?P<bytes>(?:%[89A-Fa-f][0-9A-Fa-f])+|(?:=[89A-F][0-9A-F])+)
      | (?:%|\\{1,8}x|=(?=[0-9A-F]{2}))(?P<byte>[0-9A-Fa-f]{2})
      | \\{1,8}u(?P<pair>[Dd][89ABab][0-9A-Fa-f]{2}\\{1,8}u[Dd][C-Fc-f][0-9A-Fa-f]{2})
      | \\{1,8}(?:u(?P<code>[0-9A-Fa-f]{4})|U(?P<long>[0-9A-Fa-f]{8})|[ux]\{(?P<braced>[0-9A-Fa-f]{1,6})\})
      | &\#[xX](?P<hex>[0-9A-Fa-f]{1,6});?
      | &\#(?P<decimal>[0-9]{1,7});?
      | \\{1,8}(?P<octal>[0-7]{3})
      | \\{1,8}(?P<sign>[abfnrtv0"'/\\])
      | (?P<name>&[A-Za-z]{2,8};)
      | =\r?\n""",
    re.VERBOSE,
)
"""Escapes of addresses, code, markup and mail."""
_NUMBERS = (("byte", 16), ("code", 16), ("long", 16), ("braced", 16), ("hex", 16), ("decimal", 10), ("octal", 8))
_SIGNS = dict(zip("abfnrtv0", "\a\b\f\n\r\t\v\0", strict=True))


_LOWER = bytes(range(256)).lower()
_NEITHER = bytes(code for code in range(128) if not chr(code).isalnum())


class _Folding(dict[int, str]):
    """Give the folded form of each character; those that were met are remembered."""

    def __missing__(self, code: int) -> str:
        folded = "".join(sign for sign in normalize("NFKD", chr(code)).casefold() if sign.isalnum())
        if len(self) < _MOST_REMEMBERED:
            self[code] = folded
        return folded


BARRIER = "\udfff"
"""A sign that no clean text has, nor any spelling of a secret; it stays when a string is folded."""
_FOLDING = _Folding({ord(BARRIER): BARRIER})


def fold(text: str) -> str:
    """Return the letters and digits of a string, without case and accents."""
    if text.isascii():
        return text.encode().translate(_LOWER, _NEITHER).decode()
    return text.translate(_FOLDING)


def plain_forms(text: str) -> Iterator[str]:
    """Yield a string as it stands, and after each round of resolving escapes."""
    yield text
    for _ in range(_ROUNDS):
        if _HINT.search(text) is None or (plain := _ESCAPE.sub(_resolved, text)) == text:
            return
        text = plain
        yield text


class Form:
    """A string folded after some rounds of resolving escapes, which knows where its characters are in the text."""

    def __init__(self, text: str, before: "Form | None" = None) -> None:
        """Resolve the escapes of the form before, or none."""
        self._before = before
        self.escapes: list[tuple[int, int, int, int]] = []
        """Where escapes stood that were resolved: in the new text and behind it, in the old text and behind it."""
        self.text = text if before is None else self._resolve(text)
        self.folded = fold(self.text)
        self._sums: list[int] = []
        self._chunk: tuple[int, list[int]] = (-1, [])

    def next(self) -> "Form | None":
        """Return the form after one more round, or None when there are no escapes left."""
        form = Form(self.text, self) if _HINT.search(self.text) else None
        return form if form is not None and form.escapes else None

    def unfolded(self, start: int, end: int) -> tuple[int, int]:
        """Return where in this form stands what is between two places of its folded text."""
        return self._unfolded(start), self._unfolded(end - 1) + 1

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return where in the text stands what is between two places of this form."""
        return self.source(start)[0], self.source(end - 1)[1]

    def _resolve(self, text: str) -> str:
        parts: list[str] = []
        at = length = 0
        for found in _ESCAPE.finditer(text):
            plain = _resolved(found)
            length += found.start() - at
            self.escapes.append((length, length + len(plain), *found.span()))
            parts += (text[at : found.start()], plain)
            at, length = found.end(), length + len(plain)
        return "".join((*parts, text[at:]))

    def _unfolded(self, at: int) -> int:
        """Return the place of the character that the one at a place of the folded form comes from."""
        if not self._sums:
            chunks = range(0, len(self.text), _CHUNK)
            self._sums = [*accumulate((len(fold(self.text[start : start + _CHUNK])) for start in chunks), initial=0)]
        number = bisect_right(self._sums, at) - 1
        if self._chunk[0] != number:
            # Secrets are looked up in order, so each chunk is gone through once.
            signs = self.text[number * _CHUNK : (number + 1) * _CHUNK]
            self._chunk = number, [place for place, sign in enumerate(signs) for _ in _FOLDING[ord(sign)]]
        return number * _CHUNK + self._chunk[1][at - self._sums[number]]

    def source(self, at: int) -> tuple[int, int]:
        """Return where in the text stands what a character comes from, through all rounds."""
        if self._before is None:
            return at, at + 1
        number = bisect_right(self.escapes, at, key=itemgetter(0)) - 1
        if number < 0:
            return self._before.source(at)
        _, behind, old, old_behind = self.escapes[number]
        if at >= behind:
            return self._before.source(old_behind + at - behind)
        return self._before.source(old)[0], self._before.source(old_behind - 1)[1]


def forms_of(text: str) -> Iterator[Form]:
    """Yield the same as `plain_forms`, with places; this takes longer."""
    form: Form | None = Form(text)
    for _ in range(_ROUNDS + 1):
        if form is None:
            return
        yield form
        form = form.next()


def _resolved(found: re.Match[str]) -> str:
    if found["bytes"]:
        return bytes.fromhex(found["bytes"].replace("%", "").replace("=", "")).decode("utf-8", "ignore")
    if found["pair"]:
        pair = bytes.fromhex(found["pair"][:4] + found["pair"][-4:])
        return pair.decode("utf-16-be", "ignore")
    for name, base in _NUMBERS:
        if found[name]:
            code = int(found[name], base)
            return chr(code) if code < _SURROGATES[0] or _SURROGATES[1] < code <= _LAST_CODE else ""
    return unescape(found["name"]) if found["name"] else _SIGNS.get(found["sign"], found["sign"] or "")
