"""Find secrets that stand in a sentence without a name: by how unlike words they are, and by the words around them.

An identifier looks the same. So what a sentence calls an order, a file or an event is left alone, and so is what is
also a field of its own beside the sentence. A UUID is taken only from whole sentences, and a digest only if it is
called a secret.
"""

import re
from collections.abc import Callable, Iterator
from itertools import takewhile

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
_BARE = re.compile(
    r"(?<![\w./+=@#%&?~$|\]\\-])(?<!\w:)"
    r"(?:(?P<uuid>[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})|[A-Za-z0-9]{24,64})"
    r"(?![\w/+=@#%&~$|\\-]|[.:][\w/])"
)
_IDENTIFYING = re.compile(
    r"""(?x)[0-9a-f]+ | [0-9A-F]+ | 0x[0-9a-fA-F]+ | [0-7][0-9A-HJKMNP-TV-Z]{25} | [a-z]{2,12}1[02-9ac-hj-np-z]{38,}
    | [13Tr][1-9A-HJ-NP-Za-km-z]{24,33} | (?=.{0,43}?[a-z])(?=.{0,43}?[A-Z])[1-9A-HJ-NP-Za-km-z]{32,44}"""
)
"""Digests, sortable identifiers, and the addresses of networks."""
_WORD = re.compile(r":(?=\s)|(?:log|sign) (?:in|on)|(?<![\w-])[^\W\d_]+(?:['\u2019-][^\W\d_]+)*(?![\w-])")
_CODE = re.compile(r"[{}|\\]|;(?:\S|$)|</?\w|=\S|\S=|://")
_SHORTEST = 24
_AROUND = 72
_BEFORE = 6
_BEHIND = 4
_NEXT_TO = 2
_LEAST_WORDS = 2
_LEAST_OF_SENTENCE = 4


def is_drawn(word: str) -> bool:
    """Return whether a word is as long as a bare token and has letters and digits in no order of words."""
    return len(word) >= _SHORTEST and not word.isalpha() and not word.isdecimal() and not is_worded(word)


def bare_tokens_in(text: str, runs: list[tuple[int, int]], is_field: Callable[[str], bool]) -> Iterator[Span]:
    """Yield tokens in sentences; `is_field` says whether a text is also a field of its own beside this one."""
    for start, end in runs:
        # Behind a run only one sign more has to be seen.
        found = _BARE.search(text, start, end + 2) if _SHORTEST <= end - start < len(text) - _LEAST_WORDS else None
        if found is None:
            continue
        token, is_uuid = found.group(), found["uuid"] is not None
        before, behind = _around(text, *found.span())
        is_told = _is_secret(
            token,
            _WORD.findall(before.lower())[: -_BEFORE - 1 : -1],
            _WORD.findall(behind.lower())[:_BEHIND],
            is_uuid=is_uuid,
        )
        if is_told and not _CODE.search(before) and not _CODE.search(behind) and not is_field(token):
            yield *found.span(), "token"


def _around(text: str, start: int, end: int) -> tuple[str, str]:
    """Return what stands before and behind a token on its line."""
    least = max(start - _AROUND, 0)
    before = text[max(least, text.rfind("\n", least, start) + 1) : start]
    line_end = text.find("\n", end, end + _AROUND)
    return before, text[end : line_end if line_end >= 0 else end + _AROUND]


def _is_secret(token: str, before: list[str], behind: list[str], *, is_uuid: bool) -> bool:
    """Return what the words before and behind a token, the nearest first, say of it."""
    if len(before) + len(behind) < _LEAST_WORDS:
        return False
    told = _is_called_secret(before)
    if not is_uuid and _IDENTIFYING.fullmatch(token) is not None:
        # A line of a log begins with a digest and may go on with anything.
        return told is True
    if not is_uuid and not is_drawn(token):
        return False
    if told is None:
        told = _is_said_to_be_secret(behind)
    if told is not None or not is_uuid:
        return told is not False
    # Of log lines and tables, which are no sentences, a UUID is an ordinary part.
    is_sentence = len(before) + len(behind) >= _LEAST_OF_SENTENCE and not _FUNCTION_WORDS.isdisjoint(before + behind)
    named = [*takewhile(lambda word: word not in _PLACING, behind)]
    return is_sentence and _THINGS.isdisjoint(before) and _NO_HOLDERS.isdisjoint(named)


def _is_said_to_be_secret(behind: list[str]) -> bool | None:
    """Return what is said of a token behind it: `is an order`, `(order)`, but not `for an order` or `orders`."""
    near = takewhile(lambda word: word not in _JOINING, behind)
    said = behind[:1] and behind[0] in _COPULAS
    return next((word in _CUES for word in near if word in _CUES or (said and word in _THINGS)), None)


def _is_called_secret(words: list[str]) -> bool | None:
    """Return what the nearest word that tells says of a token: `the order is`, `order`, but not `order of Ana`."""
    if words and words[0] in _COPULAS:
        # In "the key of the service is", what comes first is meant.
        return next((word in _CUES for word in reversed(words) if word in _CUES or word in _THINGS), None)
    reach = 0 if words and words[0] in _HAVING else _NEXT_TO
    for away, word in enumerate(words):
        if word in _CUES:
            return True
        if word in _THINGS and away < reach:
            return False
    return None
