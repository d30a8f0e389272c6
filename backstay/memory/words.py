"""The words by which what is remembered is found again, and the part of a string that holds them.

Nothing in a string or a question is ever syntax.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence

from backstay.data_files import data_beside

MOST_READ = 50_000
"""Characters of a string that are looked at."""
MOST_INDEXED = 2000
"""Different words of one item by which it is found."""
MOST_ASKED = 40
"""Forms of words of a question that are looked for."""
MOST_QUERY = 2000
"""Characters of a question that are looked at."""
_PIECE = re.compile(r"\S{1,300}")
"""What is looked at as a whole for words that are asked for; a string without spaces is cut."""
_MOST_FOLDED = 600
_LEAD = 60
"""This many characters before the first such word are told, too, where there is room."""
_LONGEST = 48
_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset(data_beside(__file__)["stop"].split())
_ENDINGS = ("ies", "ing", "ed", "es", "s")
_LEAST_STEM = 3
_BEGINS = 5
"""Letters that words of one family begin with."""


def words_of(text: str, most: int = MOST_INDEXED) -> list[str]:
    """Return the different words of a string, in order, in the forms in which they are stored and asked for."""
    # One character can become eighteen.
    folded = unicodedata.normalize("NFKC", text[:MOST_READ])[:MOST_READ].casefold()
    found: dict[str, None] = {}
    for match in _WORD.finditer(folded):
        word = match.group()
        if word not in _STOP:
            found |= dict.fromkeys(_forms(word))
        if len(found) >= most:
            break
    return list(found)


def asked_words(query: str) -> list[str]:
    """Return the words that a question is answered by."""
    return words_of(query[:MOST_QUERY], MOST_ASKED)


def owner_word(owner: str) -> str:
    """Return the word under which everything of one user is in the index."""
    return hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def excerpt(text: str, wanted: Collection[str], most: int) -> str:
    """Return at most the given number of characters: those that hold most of the wanted words, the first such place."""
    if len(text) <= most:
        return text
    room = most - 2
    at = _richest(_places_of(text, frozenset(wanted)), room)
    part = text[at : at + room]
    return f"{'…' if at else ''}{part}{'…' if at + room < len(text) else ''}"


def _places_of(text: str, wanted: frozenset[str]) -> list[tuple[int, int, frozenset[str]]]:
    """Return where a string has wanted words: the beginnings and ends of such pieces, and which words."""
    found: list[tuple[int, int, frozenset[str]]] = []
    if not wanted:
        return found
    for match in _PIECE.finditer(text, 0, MOST_READ):
        folded = unicodedata.normalize("NFKC", match.group())[:_MOST_FOLDED].casefold()
        here = wanted.intersection(form for word in _WORD.findall(folded) for form in _forms(word))
        if here:
            found.append((match.start(), match.end(), here))
    return found


def _richest(places: Sequence[tuple[int, int, frozenset[str]]], room: int) -> int:
    """Return where the first part begins that has most of the wanted words within the given number of characters."""
    best, at, last = 0, 0, 0
    held: Counter[str] = Counter()
    for number, (start, _, words) in enumerate(places):
        while last < len(places) and (last <= number or places[last][1] <= start + room):
            held.update(places[last][2])
            last += 1
        if len(held) > best:
            spare = max(room - (places[last - 1][1] - start), 0)
            best, at = len(held), max(start - min(_LEAD, spare), 0)
        held.subtract(words)
        held = +held
    return at


def _forms(word: str) -> list[str]:
    """Return a word without its ending, and how it begins, so that `allergies` finds `allergic`, if less surely.

    Both are in ASCII: databases differ in what else they take for a letter.
    """
    stem, begins = word, ""
    if not any(map(str.isdigit, word)):
        ending = next((end for end in _ENDINGS if word.endswith(end) and len(word) - len(end) >= _LEAST_STEM), "")
        stem = word[: len(word) - len(ending)] + ("y" if ending == "ies" else "")
        # `invoice` and `invoices`, `charge` and `charged`.
        stem = stem.removesuffix("e") if len(stem) > _LEAST_STEM else stem
        begins = f"{_BEGINS}{word[:_BEGINS]}" if len(word) > _BEGINS else ""
    return [_ascii(form[:_LONGEST]) for form in (stem, begins) if form]


def _ascii(form: str) -> str:
    return form if form.isascii() else f"u{form.encode('utf-8', 'surrogatepass').hex()}"
