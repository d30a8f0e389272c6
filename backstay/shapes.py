"""Find secrets in a text by what they look like; every pattern runs in time linear in the text."""

import base64
import binascii
import re
from collections.abc import Iterator

from backstay.forms import FORMS, INFIXES
from backstay.placeholder import is_placeholder, starts_as_no_secret
from backstay.sensitive import SensitiveNames

Span = tuple[int, int, str]
"""Where a secret begins and ends, and of which kind it is."""

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----))*(?:-----END[^\n-]{0,60}-----)?"
)
_WEBHOOK = re.compile(
    r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|/api/webhooks/|/hooks/catch/|/webhookb2/)([A-Za-z0-9/_@-]{8,})"
)
_USER_PASSWORD = re.compile(r"://[^\s/@:]{0,256}+:([^\s/]{1,256})@")
_USER_TOKEN = re.compile(r"://([^\s/@:]{16,256}+)@")
_SHORTEST_FORM = 12
_LONGEST_NAME = 200
_LONG = 200
_RUN = re.compile(r"[A-Za-z0-9_.+/=-]{12}")
"""Every form has such a run; few short texts have, so most are done with here."""
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}|\\[nrt]")
_SCHEME = re.compile(r"(?<![A-Za-z0-9])(bearer|basic|digest|token)[ \t]{1,4}([A-Za-z0-9._~+/=-]{8,}+)", re.IGNORECASE)
_NAMED = re.compile(
    r"""(?<![\w.-])(?:--(?P<flag>[A-Za-z][\w-]{0,40}+)[ \t]{1,3}(?=[^\s-])
      |(?P<name>[A-Za-z_-][\w.-]{0,63}+)(?:\[\])?[\\]{0,8}+["'`]?[ \t]{0,24}
       (?P<sign>=>|:=|:[ \t]{0,2}[&*]?(?:'static[ \t])?[A-Za-z_][\w.:<>\[\]?]{0,40}[ \t]{1,3}=(?!=)|[:=]|%3[AaDd])
       [ \t]{0,3})""",
    re.VERBOSE,
)
"""What stands between colon and equals sign is the type of a variable."""
_OPENING = re.compile(r"""[\\]{0,8}["'`]""")
_BARE = re.compile(r"""(?:(?:bearer|basic|digest|token|apikey)[ \t]{1,4})?[^\s"'`,;&<>{}\[\]\\|]+""", re.IGNORECASE)
_REST_OF_LINE = re.compile(r"""[^\r\n"'`<>{}\[\]\\|]+""")
_ELEMENT = re.compile(r"<([A-Za-z_][\w:.-]{0,63}+)(?:[ \t][^<>]{0,200})?>([^<>]{1,4096})(?=</)")
_AFTER_WORD = ")!?,;]}"
_NO_SECRET = frozenset((
    "none", "null", "nil", "true", "false", "undefined", "str", "string", "int", "integer", "float", "bool", "boolean",
    "bytes", "optional", "any", "required", "yes", "no", "secretstr",
))  # fmt: skip
_IN_QUERIES = frozenset(("sig", "signature", "key", "code", "x-amz-signature", "x-goog-signature", "sv_sig"))
_WHOLE_LINE = frozenset(("authorization", "cookie"))


def shapes_in(text: str) -> Iterator[Span]:
    """Yield tokens, keys and passwords that give themselves away by their form."""
    if len(text) < _SHORTEST_FORM:
        return
    if len(text) > _LONG or _RUN.search(text):
        for sign, forms in FORMS:
            for prefix, kind, form in forms if sign in text else ():
                if prefix in text:
                    yield from _tokens(text, prefix, kind, form)
        for kind, infix, form in INFIXES:
            if infix.search(text):
                yield from ((*found.span(), kind) for found in form.finditer(text))
    if "-----BEGIN " in text:
        yield from ((found.start(), found.end(), "private_key") for found in _PRIVATE_KEY.finditer(text))
    if "hook" in text:
        yield from ((*found.span(1), "webhook_url") for found in _WEBHOOK.finditer(text))
    if "://" in text and "@" in text:
        for found in _USER_PASSWORD.finditer(text):
            if not is_placeholder(found.group(1)):
                yield *found.span(1), "url_password"
        yield from ((*found.span(1), "url_token") for found in _USER_TOKEN.finditer(text))


def _tokens(text: str, prefix: str, kind: str, form: re.Pattern[str]) -> Iterator[Span]:
    at = 0
    while (at := text.find(prefix, at)) >= 0:
        # Only at the left edge of a word: otherwise one long word would be scanned once per letter.
        before = text[at - 1] if at else " "
        inside = (before.isascii() and before.isalnum()) or (kind == "jwt" and before in "_-")
        inside = inside and _ESCAPED.match(text, max(at - 3, 0)) is None
        found = None if inside else form.match(text, at)
        if found is not None:
            yield at, found.end(), kind
        at = found.end() if found is not None else at + len(prefix)


def schemes_in(text: str) -> Iterator[Span]:
    """Yield what follows `Bearer`, `Basic` and the like, where it is no ordinary word."""
    for found in _SCHEME.finditer(text):
        scheme, token = found.group(1).lower(), found.group(2)
        if _is_basic(token) if scheme == "basic" else (len(token) >= 20 or any(map(str.isdecimal, token))):
            yield found.start(2), found.end(2), f"{scheme}_token"


def named_in(text: str, names: SensitiveNames) -> Iterator[Span]:
    """Yield values that stand after a sensitive name: `name=value`, `"name": "value"`, `--name value`."""
    at = 0
    while found := _NAMED.search(text, at):
        name = found.group("flag") or found.group("name")
        at = found.end()
        in_query = found.group("sign") == "=" and text[max(found.start() - 1, 0)] in "?&;"
        kind = names.kind_of(name) or ("signature" if in_query and name.lower() in _IN_QUERIES else None)
        if kind is None or _in_resource_name(text, found.start()):
            continue
        start, end, at = _value_at(text, at, kind)
        if end > start and not _is_plain(text, start, end, name):
            yield start, end, kind


def _in_resource_name(text: str, at: int) -> bool:
    """Say whether a place is inside a name such as `arn:aws:secretsmanager:...:secret:checkout`."""
    start = text.rfind("arn:", max(at - _LONGEST_NAME, 0), at)
    return start >= 0 and not any(map(str.isspace, text[start:at]))


def elements_in(text: str, names: SensitiveNames) -> Iterator[Span]:
    """Yield the content of elements with a sensitive name: `<password>value</password>`."""
    for found in _ELEMENT.finditer(text):
        kind = names.kind_of(found.group(1))
        if kind is not None and found.group(2).strip():
            yield found.start(2), found.end(2), kind


def _value_at(text: str, at: int, kind: str) -> tuple[int, int, int]:
    """Return where the value begins and ends, and where to look on."""
    opening = _OPENING.match(text, at)
    if opening is None:
        bare = (_REST_OF_LINE if kind in _WHOLE_LINE else _BARE).match(text, at)
        end = len(text[: bare.end()].rstrip()) if bare and kind in _WHOLE_LINE else (bare.end() if bare else at)
        return at, end, max(end, at)
    quote, start = opening.group(), opening.end()
    end = start
    while (end := text.find(quote, end)) >= 0 and len(quote) == 1 and text[end - 1] == "\\" and end > start:
        end += 1
    if end < 0:
        line = _REST_OF_LINE.match(text, start)
        end = line.end() if line else start
    return start, end, end


def _is_plain(text: str, start: int, end: int, name: str) -> bool:
    """Say whether the value is a word of a program or a form: a type, a constant, a call."""
    word = text[start:end].strip().rstrip(_AFTER_WORD).lower()
    return word in _NO_SECRET or starts_as_no_secret(text, start, name)


def _is_basic(token: str) -> bool:
    try:
        return b":" in base64.b64decode(token + "=" * (-len(token) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
