"""Cut the value behind a sign out of settings and code."""

import re

_BARE = re.compile(r"""(?:(?:bearer|basic|digest|token|apikey|key)[ \t]{1,4})?[^\s"'`,;&<>{}\[\]\\|]+""", re.IGNORECASE)
_OPENING = re.compile(r"""[\\]{0,8}["'`]""")
_REST_OF_LINE = re.compile(r"""[^\r\n"'`<>{}\[\]\\|]+""")
WHOLE_LINE = frozenset(("authorization", "cookie", "session_cookie"))
"""Kinds whose values go on to the end of the line."""


def value_at(text: str, at: int, *, whole_line: bool) -> tuple[int, int]:
    """Return where the value behind a sign begins and ends."""
    opening = _OPENING.match(text, at)
    if opening is None:
        bare = (_REST_OF_LINE if whole_line else _BARE).match(text, at)
        end = len(text[: bare.end()].rstrip()) if bare and whole_line else (bare.end() if bare else at)
        return at, end
    quote, start = opening.group(), opening.end()
    if text.startswith(quote * 2, start) and len(quote) == 1:
        # Three quotes hold a text of many lines.
        start += 2
        end = text.find(quote * 3, start)
        return start, end if end >= 0 else len(text)
    end = start
    while (end := text.find(quote, end)) >= 0 and len(quote) == 1 and text[end - 1] == "\\" and end > start:
        end += 1
    if end < 0:
        line = _REST_OF_LINE.match(text, start)
        end = line.end() if line else start
    return start, end
