"""Tell cookies that open a session from those that remember a colour."""

import re

from backstay.placeholder import is_placeholder
from backstay.plausible import is_random, is_telling

_ATTRIBUTES = frozenset((
    "path", "domain", "expires", "max-age", "samesite", "secure", "httponly", "partitioned", "priority", "version",
    "comment",
))  # fmt: skip
_SESSIONS = re.compile(
    r"sess|sid\b|token|auth|login|secret|csrf|xsrf|jwt|remember|ticket|identity|credential|passw|sso|^sid|_sid|user_?id",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"_ga|_gid|_gat|_gcl|_fbp|theme|lang|locale|language|consent|tz|timezone|currency|country|color|cookieconsent"
    r"|visited|dark|font|region|cookie_?policy|optanon|experiment|variant|ab_?test|utm",
    re.IGNORECASE,
)
_GONE = frozenset(("", "deleted", "null", "none", "undefined", "expired", "0", "1", "true", "false", "yes", "no"))


def is_harmless_cookie(line: str) -> bool:
    """Say whether no cookie in the line of a header opens anything."""
    pairs = [part.strip().partition("=") for part in line.split(";")]
    held = [(name.strip(), value.strip().strip('"')) for name, sign, value in pairs if sign]
    if not held and len(pairs) == 1:
        return is_placeholder(line) or not (is_telling(line.strip()) or is_random(line.strip()))
    return all(_is_harmless(name, value) for name, value in held)


def _is_harmless(name: str, value: str) -> bool:
    if name.lower() in _ATTRIBUTES or value.lower() in _GONE or is_placeholder(value):
        return True
    if _HARMLESS.match(name):
        return True
    return not _SESSIONS.search(name) and not is_telling(value) and not is_random(value)
