"""Find secrets by the format around them: key files, URLs, commands with a password, Authorization schemes."""

import base64
import binascii
import re
import sys
from collections.abc import Callable, Iterator

from backstay.data_files import data_beside
from backstay.redaction.entropy import is_name, is_random, is_uuid, looks_secret
from backstay.redaction.harmless import is_harmless_cookie, is_placeholder
from backstay.redaction.vendor_tokens import Span

_SHORTEST = 12
_LEAST_SEGMENT = 16
_HOST = re.compile(r"@(?!sha[0-9])(?:(?:tcp|udp|unix)\(|//|[\w.-]{3,80}:[0-9]{2,5}(?![0-9]))")
_BEFORE_HOST = re.compile(r"(?<![\w.-])[A-Za-z][\w.-]{0,60}[/:]([^\s@/:\"'<>]{3,128})$")
_ESCAPED = re.compile(r"%[0-9A-F]{2}|\\u00[23][0-9A-Fa-f]|\\(?=/)")
_SCHEME = re.compile(r"(?<![a-z0-9])(?:bearer|basic|token|apikey)[ \t]{1,4}(?=[a-z0-9._~+/=-]{8})")
_SCHEME_SIGNS = ("bearer ", "basic ", "token ", "apikey ", "bearer\t", "basic\t", "token\t")
_CREDENTIALS = re.compile(r"[A-Za-z0-9._~+/=:-]{8,}+")


def _is_no_variable(found: str) -> bool:
    return not is_placeholder(found) and not found.startswith(("$", "%", "<"))


def _has_random_segment(path: str) -> bool:
    return any(len(part) >= _LEAST_SEGMENT and is_random(part) and not is_uuid(part) for part in path.split("/"))


_CHECKS: dict[str, Callable[[str], bool]] = {
    "anything": lambda _found: True,
    "literal": lambda found: not is_placeholder(found),
    "no_variable": _is_no_variable,
    "mixed": lambda found: _is_no_variable(found) and any(map(str.isdecimal, found)) and any(map(str.isalpha, found)),
    "cookies": lambda found: "=" in found and not is_harmless_cookie(found),
    "signature": lambda found: is_random(_ESCAPED.sub("", found)),
    "random": is_random,
    "random_segment": _has_random_segment,
    "looks_secret": looks_secret,
}
_CURL_COMMAND = re.compile(
    r"""(?<![\w-])curl(?![\w-])
    (?: \^"(?:\\\^"|(?!\^").){0,100000}+\^" | '[^']{0,100000}+' | "(?:[^"\\]|\\.){0,100000}+"
      | \\[^\r\n] | [^;|&\r\n] | &(?!&)
      | (?<=[\\^`])\r?\n | \r?\n(?=[ \t]{0,40}-) ){0,2000}+""",
    re.VERBOSE | re.DOTALL,
)
"""A command of curl to its end: a line continues behind a mark, or with an option."""
_Patterns = list[tuple[list[str], str, re.Pattern[str], Callable[[str], bool]]]
_KEYS_AND_URLS, _COMMANDS, _CURL = (
    [(row["signs"], row["kind"], re.compile(row["pattern"]), _CHECKS[row["secret"]]) for row in rows]
    for rows in data_beside(__file__).values()
)


def keys_and_urls_in(text: str) -> Iterator[Span]:
    """Yield private keys, and the passwords, tokens and webhooks in URLs."""
    if len(text) < _SHORTEST:
        return
    yield from _matches(text, _KEYS_AND_URLS)
    if "@" in text and "/" in text:
        yield from _before_hosts(text)


def commands_in(text: str) -> Iterator[Span]:
    """Yield the passwords that commands pass to programs, and the signatures of URLs."""
    yield from _matches(text, _COMMANDS)
    if "curl" in text:
        for command in _CURL_COMMAND.finditer(text):
            yield from _matches(text, _CURL, *command.span())


def _matches(text: str, patterns: _Patterns, start: int = 0, end: int = sys.maxsize) -> Iterator[Span]:
    for signs, kind, pattern, is_secret in patterns:
        if _has_any(text, signs):
            for found in pattern.finditer(text, start, end):
                if is_secret(found[1]):
                    yield *found.span(1), kind


def _has_any(text: str, signs: list[str]) -> bool:
    for sign in signs:  # noqa: SIM110 - most texts are short and have none: a generator costs more than the search
        if sign in text:
            return True
    return False


def _before_hosts(text: str) -> Iterator[Span]:
    """Yield passwords before a host that has no URL scheme: `root:secret@tcp(db:3306)`."""
    for host in _HOST.finditer(text):
        found = _BEFORE_HOST.search(text, max(host.start() - 200, 0), host.start())
        if found is not None and not is_placeholder(found[1]):
            yield *found.span(1), "url_password"


def schemes_in(text: str, lowered: str) -> Iterator[Span]:
    """Yield what follows `Bearer`, `Basic` and other schemes where it is not an ordinary word."""
    if not any(sign in lowered for sign in _SCHEME_SIGNS):
        return
    for found in _SCHEME.finditer(lowered):
        scheme = found.group().rstrip()
        token = _CREDENTIALS.match(text, found.end())
        if token is None or is_placeholder(token.group()):
            continue
        told = token.group()
        long_or_numbered = len(told) >= 20 or any(map(str.isdecimal, told))
        if _is_basic(told) if scheme == "basic" else long_or_numbered and not is_name(told):
            yield *token.span(), f"{scheme}_token"


def _is_basic(token: str) -> bool:
    try:
        return b":" in base64.b64decode(token + "=" * (-len(token) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
