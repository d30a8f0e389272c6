"""Find secrets that are known, in any of their spellings, in time that does not grow with their number."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Self
from urllib.parse import quote

from backstay.redaction.folding import Form, fold, forms_of, plain_forms
from backstay.redaction.spellings import LETTERS, SPELLINGS

SHORTEST = 8
"""Fewer letters and digits would be found in ordinary words."""
_SHORTEST_WORD = 5
"""A shorter secret with a digit is found where it stands alone."""
_SHORTEST_NUMBER = 6
_LEAST_DIGITS = 12
"""Shorter numbers, if they were taken apart, would be found in dates and telephone numbers."""
_LONGEST = 16_384
"""Of a longer secret only this many letters are known."""
_PIECE = 192
"""A long secret is found by its pieces."""
_BLOCK = 6 * 1024 * 128
"""How much of a string is cut into keys at once; a multiple of each stride."""
_CROWDED = 16
_IN_ALL_SPELLINGS = 500
_IN_LETTERS = 5000
"""How many secrets are known in all spellings, which take some 50 kB for each, and how many in their letters only."""
_LONGEST_ESCAPED = 200
_WORD = re.compile(r"[^\W_]+")
_HALF_ESCAPE = re.compile(r"(?:[%\\&=][^\s%\\&=]{0,11}|=\r?)\Z")

Place = tuple[int, int]
"""Where a secret begins and ends in a string."""


class _Index:
    """Find texts in a longer one by looking up a key at every few places of it; each text has all keys in a row."""

    def __init__(self, key: int, stride: int) -> None:
        self.shortest = key + stride - 1
        self._key, self._stride = key, stride
        self._cut = re.compile(f"(?=(.{{{key}}})).{{1,{stride}}}" if key > stride else f".{{{key}}}", re.DOTALL)
        self.entries: dict[str, str | tuple[str, ...]] = {}
        self.starts: dict[str, int] = {}
        """Where in each text its keys begin."""

    def copy(self) -> "_Index":
        more = _Index(self._key, self._stride)
        more.entries, more.starts = dict(self.entries), dict(self.starts)
        return more

    def enter(self, text: str) -> None:
        """Enter a string under the keys at its beginning or, where many others have those too, further on."""
        starts = range(0, len(text) - self.shortest + 1, self._stride)
        crowds = ((self._crowd(text, start), start) for start in starts)
        start = next((start for crowd, start in crowds if not crowd), None)
        if start is None:
            start = min((self._crowd(text, start), start) for start in starts)[1]
        self.starts[text] = start
        for place in range(start, start + self._stride):
            key = text[place : place + self._key]
            known = self._entered(key)
            if not known:
                # Nearly all keys have one text; a tuple for each would take as much memory again.
                self.entries[key] = text
            elif len(known) < _CROWDED:
                self.entries[key] = (*known, text)

    def occurs_in(self, text: str) -> bool:
        """Return whether any of the texts is in this one."""
        if not self.entries:
            return False
        for start in range(0, len(text), _BLOCK):
            keys = self._cut.findall(text, start, start + _BLOCK + self._key)
            if not self.entries.keys().isdisjoint(keys) and next(self.found_in(text, start), None) is not None:
                return True
        return False

    def found_in(self, text: str, start: int = 0) -> Iterator[tuple[str, int]]:
        """Yield the texts that are in this one, and where."""
        for at in range(start, len(text) - self._key + 1, self._stride):
            key = text[at : at + self._key]
            for found in self._entered(key) if key in self.entries else ():
                first = self.starts[found]
                for place in range(first, min(first + self._stride, at + 1)):
                    if found.startswith(key, place) and text.startswith(found, at - place):
                        yield found, at - place

    def _entered(self, key: str) -> tuple[str, ...]:
        known = self.entries.get(key, ())
        return (known,) if isinstance(known, str) else known

    def _crowd(self, text: str, start: int) -> int:
        keys = (text[at : at + self._key] for at in range(start, start + self._stride))
        return max(len(self._entered(key)) for key in keys)


class KnownSecrets:
    """Know secrets, and find them in texts in any spelling."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """Take the secrets; those that would be found in ordinary words are left out."""
        self.spelled: dict[str, tuple[str, str, bool]] = {}
        """Folded spellings, with the characters of the secret before its first and after its last letter, and
        whether they count only without anything between them."""
        self.indexes = _Index(6, 6), _Index(5, 4)
        """Of the longer spellings, which are most, and of the shorter ones, which take more keys."""
        self.words: frozenset[str] = frozenset()
        self.signs: frozenset[str] = frozenset()
        """Secrets with too few letters and digits to be folded."""
        self.count = 0
        self._ordered: list[str] = []
        self._longest = 0
        self.enter(secrets)

    def __bool__(self) -> bool:
        """Return whether any secret is known."""
        return bool(self.spelled or self.words or self.signs)

    def adding(self, secrets: Iterable[str]) -> Self:
        """Return what knows these secrets too."""
        more = type(self)()
        more.spelled, more.indexes = dict(self.spelled), (self.indexes[0].copy(), self.indexes[1].copy())
        more.words, more.signs, more.count = self.words, self.signs, self.count
        more.enter(secrets)
        return more

    def occur_in(self, text: str) -> bool:
        """Return whether there may be a known secret in a string; False is certain."""
        return bool(self) and any(map(self._may_hold, plain_forms(text)))

    def places_in(self, text: str) -> list[Place]:
        """Return where known secrets are in a string, in order; they may overlap."""
        if not self.occur_in(text):
            return []
        return sorted(
            {
                form.place(start, end)
                for form in forms_of(text)
                for start, end in (*self._literal(form), *self._folded(form))
            }
        )

    def opening_in(self, text: str) -> int:
        """Return where, at the end of a string, the beginning of a known secret stands; the text's length if nowhere.

        The secret may go on in what follows, in any spelling.
        """
        first = len(text)
        spelled = self._in_order()
        for form in forms_of(text) if spelled else ():
            # The beginning of an escape alone may become any letter.
            half = _HALF_ESCAPE.search(form.text)
            behind = len(fold(half.group())) if half else 0
            for end in {len(form.folded), len(form.folded) - behind}:
                for start in range(max(end - self._longest, 0), end):
                    if _begins_one(form.folded[start:end], spelled):
                        at, _ = form.unfolded(start, start + 1)
                        first = min(first, form.place(at, at + 1)[0])
                        break
        for signs in self.signs:
            begun = next((size for size in range(len(signs) - 1, 0, -1) if text.endswith(signs[:size])), 0)
            first = min(first, len(text) - begun)
        return first

    def _in_order(self) -> list[str]:
        if len(self._ordered) != len(self.spelled):
            self._ordered = sorted(self.spelled)
            self._longest = max(map(len, self._ordered), default=0)
        return self._ordered

    def _may_hold(self, text: str) -> bool:
        folded = fold(text)
        return (
            any(index.occurs_in(folded) for index in self.indexes)
            or (bool(self.words) and any(found.group() in self.words for found in _WORD.finditer(text)))
            or any(signs in text for signs in self.signs)
        )

    def _literal(self, form: Form) -> Iterator[Place]:
        if self.words:
            yield from (found.span() for found in _WORD.finditer(form.text) if found.group() in self.words)
        for signs in self.signs:
            at = form.text.find(signs)
            while at >= 0:
                yield at, at + len(signs)
                at = form.text.find(signs, at + len(signs))

    def _folded(self, form: Form) -> Iterator[Place]:
        for index in self.indexes:
            done = 0
            for spelled, start in index.found_in(form.folded):
                if start + len(spelled) <= done:
                    continue
                first, last = form.unfolded(start, start + len(spelled))
                before, after, is_exact = self.spelled[spelled]
                if is_exact and last - first > len(spelled):
                    continue
                done = start + len(spelled)
                yield (
                    first - len(before) if form.text.endswith(before, 0, first) else first,
                    last + len(after) if form.text.startswith(after, last) else last,
                )

    def enter(self, secrets: Iterable[str]) -> None:
        """Add secrets; only while nobody else uses this."""
        words, signs = set(self.words), set(self.signs)
        for secret in secrets:
            if self.count >= _IN_LETTERS:
                break
            self.count += 1
            if len(secret.encode("utf-8", "surrogatepass")) < SHORTEST:
                words |= {secret} if _is_word(secret) else set()
            elif len(fold(secret)) < SHORTEST or _looks_escaped(secret):
                signs |= {secret, quote(secret, errors="surrogatepass"), json.dumps(secret)[1:-1]}
                signs |= {secret[::-1], secret.upper(), secret.lower(), " ".join(secret), "-".join(secret)}
            for piece in _pieces(secret):
                self._enter_piece(piece)
        self.words, self.signs = frozenset(words), frozenset(signs)

    def _enter_piece(self, piece: str) -> None:
        if len(piece) < _SHORTEST_WORD:
            return
        is_exact = piece.isdecimal() and len(piece) < _LEAST_DIGITS
        names = SPELLINGS if self.count <= _IN_ALL_SPELLINGS else LETTERS
        for name in names:
            for spelled in map(fold, SPELLINGS[name](piece)):
                if len(spelled) >= SHORTEST and spelled not in self.spelled:
                    before, after = _edges(piece) if name == "plain" else ("", "")
                    self.spelled[spelled] = before, after, is_exact and name in LETTERS
                    self.indexes[len(spelled) < self.indexes[0].shortest].enter(spelled)


def _begins_one(text: str, ordered: list[str]) -> bool:
    """Return whether any of the texts, which are in order, begins with this one and goes on."""
    at = bisect_right(ordered, text)
    return at < len(ordered) and ordered[at].startswith(text)


def _is_word(secret: str) -> bool:
    """Return whether a short secret is found where it stands alone, so that ordinary words and years are not."""
    if _WORD.fullmatch(secret) is None:
        return False
    return len(secret) >= (_SHORTEST_NUMBER if secret.isdecimal() else _SHORTEST_WORD) and any(
        map(str.isdecimal, secret)
    )


def _looks_escaped(secret: str) -> bool:
    """Return whether a short secret holds what passes for an escape, so that resolving the text's own would cut it."""
    return len(secret) <= _LONGEST_ESCAPED and len([*plain_forms(secret)]) > 1


def _pieces(secret: str) -> Iterator[str]:
    """Yield a secret in pieces; the rest at the end is not a piece of its own, since it may be too short."""
    secret, start = secret[:_LONGEST], 0
    while len(secret) - start >= 2 * _PIECE:
        yield secret[start : start + _PIECE]
        start += _PIECE
    yield secret[start:]


def _edges(secret: str) -> tuple[str, str]:
    """Return the characters before the first and after the last letter or digit."""
    kept = [at for at, sign in enumerate(secret) if fold(sign)]
    return secret[: kept[0]], secret[kept[-1] + 1 :]
