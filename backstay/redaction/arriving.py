"""Show text while it arrives, so that no secret in it is shown, wherever the pieces are cut.

What a redactor makes of a string is only certain when the text is whole: a name far behind may say that a word was a
password. So a piece is shown as soon as nothing that can follow makes a secret of it. That holds for most texts to
their end. From the first thing on that names a secret, or looks like one, the rest is held back until the text is
whole, and is then redacted as a whole.
"""

import re

from backstay.redaction.assignments import first_name
from backstay.redaction.bare_tokens import is_drawn
from backstay.redaction.entropy import looks_secret
from backstay.redaction.redactor import Redactor
from backstay.strict_json import clean_text

MOST_SHOWN = 20_000
"""Of a longer text only the beginning is shown while it arrives."""
_BEFORE = 600
"""How much of what was shown is looked at again for what comes behind it."""
_LONGEST = 300
_WORDS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.~+/=:@$!%^-]{7,}")
_END = re.compile("[\\s\u2e80-\U0003ffff]")
"""Behind white space, and behind each character of scripts that are written without it, no word goes on."""


class ArrivingText:
    """Take a string piece by piece, and give out what may be shown of it."""

    def __init__(self, redactor: Redactor) -> None:
        """Hold back what this redactor would mask."""
        self._redactor = redactor
        self._text = ""
        self._shown = 0
        self._held = False
        self._is_cut = False

    def add(self, piece: str) -> None:
        """Take what comes next; costs next to nothing."""
        room = MOST_SHOWN - len(self._text)
        self._is_cut = self._is_cut or len(piece) > room
        self._text += clean_text(piece[:room])

    def ready(self) -> str:
        """Return what may be shown beyond what was returned before; takes milliseconds."""
        if self._held or len(self._text) == self._shown:
            return ""
        end = self._end()
        self._shown, ready = max(end, self._shown), self._text[self._shown : end]
        return ready

    def rest(self) -> str:
        """Return what is left to show when the text has ended; where a part must not be shown, it says so."""
        if self._is_cut:
            more = "" if self._held else self.ready()
            return f"{more}\n[the rest is not shown while it arrives]"
        whole = self._redactor.text(self._text)
        before, self._held = self._text[: self._shown], True
        if whole.startswith(before):
            self._shown = len(self._text)
            return whole[len(before) :]
        return "\n[withheld: the text as a whole holds a secret]"

    def _end(self) -> int:
        """Return the end of what may be shown; holds back the rest for good where it may hold a secret."""
        text, start = self._text, max(self._shown - _BEFORE, 0)
        if text.lstrip()[:1] in ("{", "["):
            # Whether it is JSON, and what is a name in it, can be seen at its end.
            self._held = True
            return 0
        ends = [found.end() for found in _END.finditer(text, self._shown)]
        around = text[start:]
        suspects = [
            first_name(around, self._redactor.names),
            _first_suspect(around),
            _first_change(around, self._redactor.text(around)),
        ]
        suspect = min((start + at for at in suspects if at is not None), default=len(text))
        self._held = bool(ends) and suspect < ends[-1]
        certain = min(suspect, self._redactor.known.opening_in(around) + start)
        return max((end for end in ends if end <= certain), default=self._shown)


def _first_suspect(text: str) -> int | None:
    """Return where the first word begins that looks like a secret by itself."""
    for found in _WORDS.finditer(text):
        word = found.group().rstrip(".,:!")
        if len(found.group()) > _LONGEST or looks_secret(word) or (word.isalnum() and is_drawn(word)):
            return found.start()
    return None


def _first_change(text: str, redacted: str) -> int | None:
    if text == redacted:
        return None
    changed = (at for at, (sign, shown) in enumerate(zip(text, redacted, strict=False)) if sign != shown)
    return next(changed, min(len(text), len(redacted)))
