"""Find tokens by the format that their issuer gives them: a prefix or infix, then random characters."""

import re
from collections.abc import Iterator

from backstay.data_files import data_beside
from backstay.redaction.entropy import is_random, is_uuid

Span = tuple[int, int, str]
"""Where a secret begins and ends, and its kind."""

_FORMATS = data_beside(__file__)
_LOOSE_PREFIXES = frozenset[str](_FORMATS["loose_prefixes"])
_SECRET_PREFIXES = frozenset[str](_FORMATS["secret_prefixes"])
_THING_PREFIXES = frozenset[str](_FORMATS["thing_prefixes"])
_INFIXED: list[tuple[str, re.Pattern[str], re.Pattern[str]]] = [
    (kind, re.compile(infix, re.ASCII), re.compile(rf"(?<![\w~.-]){pattern}(?![\w-])", re.ASCII))
    for kind, infix, pattern in _FORMATS["infixed"]
]
_PREFIXED: dict[str, list[tuple[str, str, re.Pattern[str]]]] = {}
"""Prefix, kind and pattern, by the first two characters of the prefix."""
for _kind, _prefixes, _pattern in _FORMATS["prefixed"]:
    for _prefix in _prefixes.split():
        _PREFIXED.setdefault(_prefix[:2], []).append((_prefix, _kind, re.compile(_pattern, re.ASCII)))

_RUN = re.compile(r"(?<![A-Za-z0-9_.+/=~$|-])[A-Za-z0-9_.+/=~$|-]{14,}")
"""Every token is part of such a run."""
_PUBLIC_BLOCK = re.compile(r"-----BEGIN (?![A-Z0-9 ]{0,40}PRIVATE)[A-Z0-9 ]{1,60}-----[^-]{0,200000}-----END")
_EDGE = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))(?=([A-Za-z0-9_].))")
"""It takes up nothing, since another one may begin a character later, as behind `_` or the `n` of a line break."""
_WORD = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z][A-Za-z0-9_-]{22,}+(?![/+.][A-Za-z0-9+/]{8}|\.[a-z]{2,4}[0-9]?\b)")
"""The name of a file is none."""
_UNKNOWN_ISSUER = re.compile(r"([A-Za-z]{2,14}[0-9]?(?:[_-][A-Za-z]{2,12}[0-9]?){0,2})[_-]([A-Za-z0-9_-]{20,})\Z")
_LEAST_BEHIND_ANY_PREFIX = 32


def runs_in(text: str) -> list[tuple[int, int]]:
    """Return where the long runs of the characters of tokens are; few texts have any, so most are done with here."""
    return [found.span() for found in _RUN.finditer(text)]


def tokens_in(text: str, runs: list[tuple[int, int]], *, unknown_issuers: bool = True) -> Iterator[Span]:
    """Yield tokens of known issuers, and random text behind a prefix as unknown issuers hand it out."""
    public = [found.span() for found in _PUBLIC_BLOCK.finditer(text)] if "-----BEGIN " in text else []
    for start, end in runs:
        if not any(least <= start < most for least, most in public):
            yield from _with_prefix(text, start, end)
            yield from _with_infix(text, start, end)
    for start, end in runs if unknown_issuers else ():
        for word in _WORD.finditer(text, start, end):
            found = _UNKNOWN_ISSUER.match(word.group())
            if found is not None and _is_issued(*found.groups()):
                yield *word.span(), "token"


def _with_prefix(text: str, start: int, end: int) -> Iterator[Span]:
    at = start
    for edge in _EDGE.finditer(text, start, end):
        if edge.start() < at or edge[1] not in _PREFIXED:
            continue
        for prefix, kind, pattern in _PREFIXED[edge[1]]:
            if not text.startswith(prefix, edge.start()) or _is_inside(text, edge.start(), prefix):
                continue
            found = pattern.match(text, edge.start())
            if found is not None:
                yield edge.start(), found.end(), kind
                at = found.end()
                break


def _with_infix(text: str, start: int, end: int) -> Iterator[Span]:
    for kind, infix, pattern in _INFIXED:
        if infix.search(text, start, end):
            yield from ((*found.span(), kind) for found in pattern.finditer(text, start, min(end + 80, len(text))))


def _is_inside(text: str, at: int, prefix: str) -> bool:
    """Return whether a prefix stands inside a longer run of base64, where any prefix comes up by chance."""
    before = text[at - 1 : at]
    if before in "_-":
        return bool(before) and prefix in _LOOSE_PREFIXES
    run = text[max(at - 24, 0) : at]
    if before not in "/+" or len(run) < 24 or not all(sign.isalnum() or sign in "/+" for sign in prefix + run):
        return False
    return is_random(run[:-1].replace("/", "x"))


def _is_issued(prefix: str, body: str) -> bool:
    """Return whether a random text behind a prefix is a token and no identifier."""
    words = re.split(r"[_-]", prefix.lower())
    if not is_random(body) or words[0] in _THING_PREFIXES or prefix.lower() in _THING_PREFIXES:
        return False
    if not _SECRET_PREFIXES.isdisjoint(words):
        return True
    mixed = any(map(str.islower, body)) and any(map(str.isupper, body)) and any(map(str.isdecimal, body))
    return len(body) >= _LEAST_BEHIND_ANY_PREFIX and mixed and prefix.islower() and not is_uuid(body)
