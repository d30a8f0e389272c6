"""Find secrets in a text by what they look like; every pattern runs in time linear in the text."""

import base64
import binascii
import re
from collections.abc import Iterator

from backstay.redaction.entropy import is_name, is_random, is_uuid
from backstay.redaction.forms import FORMS, INFIXES
from backstay.redaction.placeholders import is_placeholder

Span = tuple[int, int, str]
"""Where a secret begins and ends, and of which kind it is."""


_PRIVATE_KEY = re.compile(
    r"-{4,5} ?BEGIN [A-Za-z0-9 ]{0,40}(?:PRIVATE|SECRET|[Ss]tatic) [Kk](?:EY|ey)(?: BLOCK| V[0-9])?[ ]?-{4,5}"
    r"(?:[^-]|-(?!---))*(?:-{4,5} ?END[^\n-]{0,60}-{4,5})?"
)
_PUTTY_KEY = re.compile(
    r"PuTTY-User-Key-File-[0-9](?s:.){0,8000}?Private-Lines: ?[0-9]{1,4}(?s:.){0,8000}?Private-MAC: ?[0-9a-f]{0,64}"
)
_PUBLIC_BLOCK = re.compile(r"-----BEGIN (?![A-Z0-9 ]{0,40}PRIVATE)[A-Z0-9 ]{1,60}-----[^-]{0,200000}-----END")
_KEY_OF_SET = re.compile(r"""\\{0,4}["'](?:d|p|q|dp|dq|qi|k)\\{0,4}["'][ ]?:[ ]?\\{0,4}["']([A-Za-z0-9_-]{16,})""")
_HOOK = re.compile(
    r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|/api/webhooks/|/hooks/catch/|/webhookb2/|/with/key/)([A-Za-z0-9/_@-]{6,})"
)
_LIKE_HOOK = re.compile(
    r"/(?:(?:incoming-?webhooks?|webhooks?|hooks?|services/hooks|triggers?)/|bot(?=[0-9]+:))([A-Za-z0-9/_@:.-]{16,})"
)
_USER_PASSWORD = re.compile(r"://([^\s/@:\"'<>]{0,256}+):([^\s/]{1,256})@")
_USER_TOKEN = re.compile(r"://([^\s/@:]{16,256}+)@")
_BEFORE_AT = re.compile(r"(?<![\w.-])[A-Za-z][\w.-]{0,60}[/:]([^\s@/:\"'<>]{3,128})$")
_PLACE = re.compile(r"@(?!sha[0-9])(?:(?:tcp|udp|unix)\(|//|[\w.-]{3,80}:[0-9]{2,5}(?![0-9]))")
_TELEGRAM = re.compile(r"(?<![0-9])[0-9]{8,10}:AA[\w-]{32,}+")
_LOOSE = frozenset((
    "eyJ", "s.", "b.", "r.", "b_", "live_", "test_", "sandbox_", "md-", "pa-", "fc-", "ak_", "mt_", "re_", "fw_",
    "api-",
    "sdk-", "mob-", "rel-", "reg-", "key-", "pub", "ak-", "as-", "wk-", "ws-", "sk_", "pk_", "ek_", "rk_", "t1.",
))  # fmt: skip
"""Prefixes that also end the names of other things."""
_SHORTEST = 12
_LEAST_SEGMENT = 16
RUN = re.compile(r"(?<![A-Za-z0-9_.+/=~$|-])[A-Za-z0-9_.+/=~$|-]{14,}")
"""Every form holds such a run; few texts do, so most are done with here."""
_EDGE = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))[A-Za-z0-9_].")
_SCHEMES = ("bearer ", "basic ", "digest ", "token ", "apikey ", "bearer\t", "basic\t", "token\t")
_SCHEME = re.compile(r"(?<![a-z0-9])(?:bearer|basic|digest|token|apikey)[ \t]{1,4}(?=[a-z0-9._~+/=-]{8})")
_CREDENTIALS = re.compile(r"[A-Za-z0-9._~+/=:-]{8,}+")


def shapes_in(text: str) -> Iterator[Span]:
    """Yield tokens, keys and passwords that give themselves away by their form."""
    yield from tokens_in(text, [found.span() for found in RUN.finditer(text)])
    yield from places_in(text)


def tokens_in(text: str, runs: list[tuple[int, int]]) -> Iterator[Span]:
    """Yield tokens of known issuers in the runs of a text."""
    harmless = [found.span() for found in _PUBLIC_BLOCK.finditer(text)] if "-----BEGIN " in text else []
    for start, end in runs:
        if not any(least <= start < most for least, most in harmless):
            yield from _tokens(text, start, end)


def places_in(text: str) -> Iterator[Span]:
    """Yield private keys, and what stands at a place of an address where secrets stand."""
    if len(text) < _SHORTEST:
        return
    if "BEGIN " in text or "PuTTY-" in text:
        yield from ((found.start(), found.end(), "private_key") for found in _PRIVATE_KEY.finditer(text))
        yield from ((found.start(), found.end(), "private_key") for found in _PUTTY_KEY.finditer(text))
    if ":AA" in text:
        yield from ((*found.span(), "telegram_token") for found in _TELEGRAM.finditer(text))
    if '"kty' in text or "'kty" in text or 'kty\\"' in text:
        yield from ((*found.span(1), "private_key") for found in _KEY_OF_SET.finditer(text))
    if "/" in text:
        yield from _in_addresses(text)


def _tokens(text: str, start: int, end: int) -> Iterator[Span]:
    at = start
    for edge in _EDGE.finditer(text, start, end):
        if edge.start() < at or (edge.group() not in FORMS):
            continue
        for prefix, kind, form in FORMS[edge.group()]:
            if not text.startswith(prefix, edge.start()) or _is_inside(text, edge.start(), prefix):
                continue
            found = form.match(text, edge.start())
            if found is not None:
                yield edge.start(), found.end(), kind
                at = found.end()
                break
    for kind, infix, form in INFIXES:
        if infix.search(text, start, end):
            yield from ((*found.span(), kind) for found in form.finditer(text, start, min(end + 80, len(text))))


def _is_inside(text: str, at: int, prefix: str) -> bool:
    """Say whether a place is in the midst of a longer run of base64, where any prefix comes up by chance."""
    before = text[at - 1 : at]
    if before in "_-":
        return bool(before) and prefix in _LOOSE
    if before not in "/+" or not all(sign.isalnum() or sign in "/+" for sign in prefix):
        return False
    run = text[max(at - 24, 0) : at]
    return (
        len(run) == 24 and all(sign.isalnum() or sign in "+/" for sign in run) and is_random(run[:-1].replace("/", "x"))
    )


def _in_addresses(text: str) -> Iterator[Span]:
    if "hook" in text or "/key/" in text:
        yield from ((*found.span(1), "webhook_url") for found in _HOOK.finditer(text))
    for found in _LIKE_HOOK.finditer(text):
        segments = found.group(1).split("/")
        if any(is_random(segment) and len(segment) >= _LEAST_SEGMENT and not is_uuid(segment) for segment in segments):
            yield *found.span(1), "webhook_url"
    if "@" not in text:
        return
    if "://" in text:
        for found in _USER_PASSWORD.finditer(text):
            user, password = found.groups()
            if not is_placeholder(password):
                yield *found.span(2), "url_password"
            if len(user) >= _LEAST_SEGMENT and is_random(user):
                yield *found.span(1), "url_token"
        yield from ((*found.span(1), "url_token") for found in _USER_TOKEN.finditer(text))
    for place in _PLACE.finditer(text):
        found = _BEFORE_AT.search(text, max(place.start() - 200, 0), place.start())
        if found is not None and not is_placeholder(found.group(1)):
            yield *found.span(1), "url_password"


def schemes_in(text: str, lowered: str) -> Iterator[Span]:
    """Yield what follows `Bearer`, `Basic` and the like, where it is no ordinary word."""
    if not any(scheme in lowered for scheme in _SCHEMES):
        return
    for found in _SCHEME.finditer(lowered):
        scheme = found.group().rstrip()
        token = _CREDENTIALS.match(text, found.end())
        if token is None or is_placeholder(token.group()):
            continue
        told = token.group()
        if (
            _is_basic(told)
            if scheme == "basic"
            else ((len(told) >= 20 and not is_name(told)) or (any(map(str.isdecimal, told)) and not is_name(told)))
        ):
            yield token.start(), token.end(), f"{scheme}_token"


def _is_basic(token: str) -> bool:
    try:
        return b":" in base64.b64decode(token + "=" * (-len(token) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
