"""Find secrets that are in a sentence without a name: by how unlike words they are, and by the words around them.

An identifier looks the same. So what a sentence calls an order, a file or an event is left alone, and so is what is
also a field of its own beside the sentence. A UUID, or what has a line for itself, is taken only from whole sentences,
and a digest or a license in groups only if it is called a secret.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Literal, NamedTuple

from backstay.data_files import data_beside
from backstay.redaction.entropy import is_worded
from backstay.redaction.vendor_tokens import Span

_LISTS = data_beside(__file__)
_THINGS = frozenset[str](_LISTS["things"].split())
_CUES = frozenset[str]((*_LISTS["cues"].split(), "log in", "log on", "sign in", "sign on"))
_FUNCTION_WORDS = frozenset[str](_LISTS["function_words"].split())
_COPULAS = frozenset[str](_LISTS["copulas"].split())
_PLACING = frozenset[str](_LISTS["placing"].split())
_HAVING = frozenset[str](_LISTS["having"].split())
_NO_HOLDERS = _THINGS - frozenset[str](_LISTS["holders"].split())
_JOINING = frozenset[str](_LISTS["joining"].split())
_STATES = frozenset[str](_LISTS["states"].split())
_WORK = frozenset[str](_LISTS["work"].split())
_OPENS_NOTHING: dict[str, frozenset[str]] = {
    word: frozenset(_LISTS[table].split())
    for table, words in (("keys_of", ("key", "keys")), ("tokens_of", ("token", "tokens")))
    for word in words
}
"""By a cue, the words before it that make it the name of something public: `primary key`, `page token`."""
_BARE = re.compile(
    r"(?<![\w./+=@#%&?~$|\]\\-])(?<!\w:)"
    r"(?:(?P<uuid>[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})|(?P<plain>[A-Za-z0-9]{24,128}+)"
    r"|(?P<groups>[A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8}){3,7})|[A-Za-z0-9][A-Za-z0-9_-]{31,127}+|[A-Za-z0-9+/]{32,128}+={0,2}+)"
    r"(?![\w/+=@#%&~$|\\-]|[.:][\w/])"
)
_ENCODED = re.compile(r"(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])(?=[^0-9]*[0-9])(?:[A-Za-z0-9]{0,40}[_+/=-])*?[A-Za-z0-9]{12}")
"""Base64 has capital letters, small letters and digits, and few characters between them."""
_PUBLIC = re.compile(r"AAAA[BCE]3|sha[0-9]{1,3}-|h1-|iVBOR|ey[IJ]|(?:.{0,80}?[/_-])??[A-Z]?[a-z]{3,}[/_-]")
"""Public keys, digests, pictures, what carries claims in the open, paths, and names of words."""
_IDENTIFYING = re.compile(
    r"""(?x)[0-9a-f]+ | [0-9A-F]+ | 0x[0-9a-fA-F]+ | [0-7][0-9A-HJKMNP-TV-Z]{25} | [a-z]{2,12}1[02-9ac-hj-np-z]{38,}
    | [13Tr][1-9A-HJ-NP-Za-km-z]{24,33} | (?=.{0,43}?[a-z])(?=.{0,43}?[A-Z])[1-9A-HJ-NP-Za-km-z]{32,44}"""
)
"""Digests, sortable identifiers, and the addresses of networks."""
_SPEAKER = re.compile(r"[\s<>*\[(]*(?:[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?[\])]?\s+)?(?:<?@?\w{1,20}(?::|>:?)|<)?\s+")
"""Who says a line of a chat, and when."""
_OF_LIST = re.compile(r"(?:\A|(?<=\s))[^\s:?]{20,}\s*\Z")
"""A line beside a token that is nothing but another one."""
_LAST_PART = re.compile(r".*['\u2019-]|.*(?=(?:schl\u00fcssel|passwort|kennwort|token)\Z)")
_FIELD = re.compile(r"(?:[a-z]I[Dd]|_(?:id|ID)|[Uu]uid|UUID)s?[\"'`]?[ ]?[:=][ ]?[\"'`]?\Z")
"""Names an identifier right before a token."""
_WORD = re.compile(
    r"(?<![\w-])(?:(?:log|sign) (?:in|on)(?!\w)|[^\W\d_]++(?:['\u2019-][^\W\d_]++)*+|sha-?[0-9]{1,3}|md5)(?![\w-])"
    r"|:(?=\s|\Z)|\u2192|->"
)
_CODE = re.compile(r"[{}|\\]|;(?:\S|$)|</?\w|=\S|\S=|://")
_SHORTEST = 24
_FEWEST_PLAIN = 0.85
_AROUND = 72
_MARKS = " \t>*`\"'<-"
_BEFORE = 8
_BEHIND = 4
_NEXT_TO = 2
_LEAST_WORDS = 2
_LEAST_OF_SENTENCE = 4
_FOR_ADDRESSES = str.maketrans("-_", "+/")


def is_drawn(word: str) -> bool:
    """Return whether a word is as long as a bare token and has letters and digits in no order of words."""
    return len(word) >= _SHORTEST and not word.isalpha() and not word.isdecimal() and not is_worded(word)


class _Surroundings(NamedTuple):
    """The text before and behind a token, and whether it has its line for itself; then the lines beside it."""

    before: str
    behind: str
    has_line: bool = False


def bare_tokens_in(text: str, runs: list[tuple[int, int]], is_field: Callable[[str], bool]) -> Iterator[Span]:
    """Yield tokens in sentences; `is_field` says whether a string is also a field of its own beside this one."""
    for at, (start, end) in enumerate(runs):
        # Behind a run only one character more has to be seen.
        found = _BARE.search(text, start, end + 2) if _SHORTEST <= end - start < len(text) - _LEAST_WORDS else None
        sort = None if found is None or _is_in_block(text, runs, at) else _sort_of(found)
        if found is None or sort is None:
            continue
        around = _around(text, *found.span())
        if _is_secret(sort, around) and not _is_code(around) and not is_field(found.group()):
            yield *found.span(), "token"


def _is_in_block(text: str, runs: list[tuple[int, int]], at: int) -> bool:
    """Return whether a run is one of the lines of a key file or a picture, each of them nothing but a run."""
    start, end = runs[at]
    above = at > 0 and runs[at - 1][1] == start - 1 and text[start - 1] == "\n"
    below = at + 1 < len(runs) and runs[at + 1][0] == end + 1 and text[end] == "\n"
    return (above and text[end : end + 1] in ("\n", "")) or (below and (start == 0 or text[start - 1] == "\n"))


def _is_code(around: _Surroundings) -> bool:
    before, behind, _ = around
    return any(sign.search(before) for sign in (_CODE, _FIELD)) or _CODE.search(behind) is not None


def _sort_of(found: re.Match[str]) -> Literal["uuid", "identifying", "drawn"] | None:
    """Return which sort of token was found; None if its characters follow each other as in words, or can be read."""
    token = found.group()
    if found["uuid"]:
        return "uuid"
    if found["groups"] or (found["plain"] and _IDENTIFYING.fullmatch(token)):
        return "identifying"
    is_random = is_drawn(token) if found["plain"] else _is_encoded(token)
    return "drawn" if is_random and _PUBLIC.match(token) is None and not _is_text(token) else None


def _is_encoded(token: str) -> bool:
    """Return whether the characters of a token are mixed as in base64, and not as in paths and slugs."""
    plain = sum(map(str.isalnum, token))
    return plain >= _FEWEST_PLAIN * len(token) and _ENCODED.match(token) is not None and not is_worded(token)


def _is_text(token: str) -> bool:
    signs = token.translate(_FOR_ADDRESSES).rstrip("=")
    try:
        return base64.b64decode(signs + "=" * (-len(signs) % 4)).isascii()
    except binascii.Error:
        return False


def _around(text: str, start: int, end: int) -> _Surroundings:
    before, behind = text[max(start - _AROUND, 0) : start], text[end : end + _AROUND]
    above, _, left = before.rpartition("\n")
    right, _, below = behind.partition("\n")
    is_first = not above.strip()
    if right.strip(_MARKS) or (is_first and left.strip(_MARKS)):
        return _Surroundings(left, right)
    above = above.rstrip(f"\n{_MARKS}").rpartition("\n")[2]
    if above.endswith("?") and _SPEAKER.fullmatch(left):
        return _Surroundings(_SPEAKER.sub("", above, count=1), "", has_line=True)
    if left.strip(_MARKS):
        return _Surroundings(left, right)
    below = below.lstrip(f"\n{_MARKS}").partition("\n")[0]
    if _OF_LIST.fullmatch(below) or _OF_LIST.search(above):
        return _Surroundings("", "")
    return _Surroundings(above, below, has_line=True)


def _is_secret(sort: str, around: _Surroundings) -> bool:
    """Return what the words before and behind a token say of it."""
    before = _WORD.findall(around.before.lower())[: -_BEFORE - 1 : -1]
    told = _is_called_secret(before)
    # A line of a log begins with a digest and may go on with anything.
    if sort == "identifying" and (told is not True or tells_of_work(before)):
        return False
    behind = _WORD.findall(around.behind.lower())[:_BEHIND]
    is_answer = around.has_line and around.before.endswith("?")
    if len(before) + len(behind) < (1 if is_answer else _LEAST_WORDS):
        return False
    if told is None:
        told = _is_said_to_be_secret(behind)
    if told is not None or not (around.has_line or sort == "uuid"):
        return told is not False
    # Of log lines and tables, which are not sentences, a UUID is an ordinary part, and of lists what has its own line.
    is_sentence = len(before) + len(behind) >= _LEAST_OF_SENTENCE and not _FUNCTION_WORDS.isdisjoint(before + behind)
    named = [*takewhile(lambda word: word not in _PLACING, behind)]
    return is_sentence and _THINGS.isdisjoint(before) and _NO_HOLDERS.isdisjoint(named)


def _is_said_to_be_secret(behind: list[str]) -> bool | None:
    """Return what the words behind a token say of it: `is an order`, `(order)`, but not `for an order` or `orders`."""
    near = takewhile(lambda word: word not in _JOINING, behind)
    if behind[:1] and behind[0] in _STATES:
        return False
    said = _THINGS | _STATES if behind[:1] and behind[0] in _COPULAS else frozenset[str]()
    return next((word in _CUES for word in near if word in _CUES or word in said), None)


def tells_of_work(before: list[str]) -> bool:
    """Return whether the words before a digest, the nearest first, say where work was done: `fixed in`, `docs:`."""
    return before[0] in _PLACING or before[0] in _WORK or (before[0] in _COPULAS and not _WORK.isdisjoint(before[1:2]))


def _is_called_secret(words: list[str]) -> bool | None:
    """Return what the nearest word that tells says of a token: `the order is`, `order`, but not `order of Ana`."""
    if not words:
        return None
    told = [_tells(words, at) for at in range(len(words))]
    if words[0] in _COPULAS:
        # In "the key of the service is", what comes first is meant.
        return next((tells for tells in reversed(told) if tells is not None), None)
    # "They run it" has a verb, "Run it" at the beginning of a sentence does not.
    reach = 0 if words[0] in _HAVING and len(words) > 1 else _NEXT_TO
    return next((tells for away, tells in enumerate(told) if tells or (tells is False and away < reach)), None)


def _tells(words: list[str], at: int) -> bool | None:
    """Return whether a word calls something a secret or another thing: `key`, but not `primary key`, `key rotation`."""
    whole = words[at]
    word = whole if whole in _CUES else _LAST_PART.sub("", whole)
    if word not in _CUES:
        return False if whole in _THINGS else None
    if not _OPENS_NOTHING.get(word, frozenset()).isdisjoint([whole[: -len(word)].rstrip("-"), *words[at + 1 : at + 2]]):
        return False
    return None if at and words[at - 1] in _WORK else True
