"""Find characters that pass for others: letters of a foreign script in a word, copies of letters, covering marks.

By the names of Unicode, which never change, and not by a list of all pairs that look alike.
"""

import sys
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from backstay.data_files import data_beside

_LISTS = data_beside(__file__)
_SHAPED_LIKE_LATIN = frozenset[str]("".join(_LISTS["shaped_like_latin"].split()))
_SHAPED_LIKE_LATIN_SCRIPTS = frozenset[str](_LISTS["shaped_like_latin_scripts"].split())
_SCIENCE = frozenset[str](_LISTS["science"])
_BESIDE_ANY = frozenset[str](["", *_LISTS["beside_any"].split()])
"""Scripts whose letters may be beside any others; so may letters of no script."""
_COPIES = frozenset({"<font>", "<wide>", "<narrow>", "<compat>"})
_SOFT_DOTTED = frozenset[str](_LISTS["soft_dotted"])
_DOT_ABOVE = "\u0307"
_OVERLAY = 1
_MOST_MARKS = 4
_CODE = "<U+"
_HEX = frozenset("0123456789ABCDEF")
_LONGEST_CODE = len("<U+10FFFF>")


def lookalikes(text: str) -> frozenset[int]:
    """Return where a string has characters that pass for others, or that cover or strike out what is before them."""
    if text.isascii() or (_CODE not in text and _is_plain(text)):
        return frozenset()
    text, places = _decoded(text)
    found: set[int] = set()
    at = 0
    for token in text.split():
        at = text.index(token, at)
        if not _is_plain(token):
            found.update(at + place for place in _in_token(token))
        at += len(token)
    return frozenset(places[at] for at in found if places[at] >= 0)


def code_at(text: str, at: int) -> str:
    """Return what is at a place in the form of a character that is written as its code; empty for anything else."""
    end = text.find(">", at, at + _LONGEST_CODE) if text.startswith(_CODE, at) else -1
    return text[at : end + 1] if end >= 0 and _HEX.issuperset(text[at + len(_CODE) : end]) else ""


def _decoded(text: str) -> tuple[str, Sequence[int]]:
    """Return the text as it was before it was marked, and the place of each character; -1 for what is written out.

    So a string can be shown twice, and is marked as if it were shown once.
    """
    if _CODE not in text:
        return text.replace("⏎", "\n"), range(len(text))
    signs: list[str] = []
    places: list[int] = []
    at = 0
    while at < len(text):
        code = code_at(text, at)
        digits = code[len(_CODE) : -1]
        if digits and int(digits, 16) <= sys.maxunicode:
            signs.append(chr(int(digits, 16)))
            places.append(-1)
            at += len(code)
            continue
        signs.append("\n" if text[at] == "⏎" else text[at])
        places.append(at)
        at += 1
    return "".join(signs), places


def _is_plain(text: str) -> bool:
    """Return whether its characters, in whatever order, cannot pass for others: no marks, no copies, one script.

    Most texts are, and each of their characters is looked at once; in its order, a string takes fifty times as long.
    """
    scripts = {_plain_script(sign) for sign in set(text)}
    scripts.discard("")
    return len(scripts) <= 1 and None not in scripts


@lru_cache(maxsize=4096)
def _plain_script(sign: str) -> str | None:
    """Return the script of a letter; empty if it may be beside any, None if its neighbours must be looked at."""
    script = _script(sign)
    if unicodedata.category(sign)[0] == "M" or (not sign.isascii() and _is_copy(sign)):
        return None
    if script == "LATIN" and _is_shaped_like_latin(sign):
        return None
    return "" if script in _BESIDE_ANY else script


def _in_token(token: str) -> set[int]:
    """Look at what stands between spaces: its words, and beside Latin words those that are shaped like Latin ones."""
    words = _words(token)
    has_latin = any(_script(token[place]) == "LATIN" for word in words for place in word)
    found = _marks(token)
    for word in words:
        letters = [place for place in word if _script(token[place]) not in _BESIDE_ANY]
        found |= _foreign(token, letters) | _copies(token, word)
        if has_latin and len(letters) > 1 and all(_is_shaped_like_latin(token[place]) for place in letters):
            found.update(letters)
    return found


def _words(token: str) -> list[list[int]]:
    """Return the places of the letters and digits of each word; marks and invisible characters part none."""
    words: list[list[int]] = [[]]
    for place, sign in enumerate(token):
        category = unicodedata.category(sign)
        if category[0] in "LN":
            words[-1].append(place)
        elif category[0] != "M" and category != "Cf":
            words.append([])
    return [word for word in words if word]


def _foreign(token: str, letters: list[int]) -> set[int]:
    """Return the letters that are not of their word's script, which is that of most of them, or else Latin."""
    scripts = Counter(_script(token[place]) for place in letters if token[place] not in _SCIENCE)
    if not scripts:
        return set()
    main = max(scripts, key=lambda script: (scripts[script], script == "LATIN"))
    return {
        place
        for place in letters
        if _script(token[place]) != main and not (main == "LATIN" and token[place] in _SCIENCE)
    }


def _copies(token: str, word: list[int]) -> set[int]:
    """Return the letters and digits that copy plain ones: always those of mathematics, others beside plain ones."""
    beside = any(token[place].isascii() for place in word)
    return {
        place
        for place in word
        if not token[place].isascii() and _is_copy(token[place]) and (beside or ord(token[place]) > 0xFFFF)
    }


def _marks(token: str) -> set[int]:
    """Return the marks that cover or strike out a character, those without any effect, and those that pile up."""
    found: set[int] = set()
    run = 0
    for place, sign in enumerate(token):
        category = unicodedata.category(sign)
        run = run + 1 if category[0] == "M" else 0
        covers = category == "Me" or unicodedata.combining(sign) == _OVERLAY
        unseen = sign == _DOT_ABOVE and place > 0 and token[place - 1] in _SOFT_DOTTED
        if covers or unseen or run > _MOST_MARKS:
            found.add(place)
    return found


@lru_cache(maxsize=4096)
def _script(sign: str) -> str:
    """Return the script of a letter or of a digit beyond the common ten; empty for all else."""
    if sign.isascii():
        return "LATIN" if sign.isalpha() else ""
    if unicodedata.category(sign) not in {"Lu", "Ll", "Lt", "Lm", "Lo", "Nd"}:
        return ""
    return unicodedata.name(sign, "").removeprefix("FULLWIDTH ").partition(" ")[0]


@lru_cache(maxsize=4096)
def _is_copy(sign: str) -> bool:
    """Return whether this is another form of a plain letter that looks like it, or a digit of another script."""
    plain = unicodedata.normalize("NFKC", sign)
    if len(plain) != 1 or not (plain.isascii() and plain.isalnum()):
        return unicodedata.category(sign) == "Nd"
    tag = unicodedata.decomposition(sign).partition(" ")[0]
    return tag in _COPIES or not tag.startswith("<")


def _is_shaped_like_latin(sign: str) -> bool:
    return sign in _SHAPED_LIKE_LATIN or _script(sign) in _SHAPED_LIKE_LATIN_SCRIPTS
