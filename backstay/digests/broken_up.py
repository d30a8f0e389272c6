"""Break up, in the words of others, what a model could take for the words of the engine or of its own template.

An invisible character after the first character does it. In what the model writes, it is taken out again, so that a
file that holds such words can be read and written.
"""

import re
from functools import cache
from typing import Any

from backstay.canonical import with_texts
from backstay.data_files import data_beside

JOINER = "\u2060"
_ENGINE = r"[^\w⟦]{0,20}(?i:text\W|end\W{1,20}of\W|left\W{1,20}out)"
"""What the engine's own lines in an answer go on with after their bracket, and what a model may take for it."""

_THOUGHT = re.compile(r"/?think>")


@cache
def _words() -> re.Pattern[str]:
    known = data_beside(__file__)
    after: dict[str, list[str]] = {sign: list(patterns) for sign, patterns in known["patterns"].items()}
    after.setdefault("⟦", []).append(_ENGINE)
    for word in known["literal"]:
        after.setdefault(word[0], []).append(re.escape(word[1:]))
    ways = (f"{re.escape(sign)}{JOINER}*(?={'|'.join(rests)})" for sign, rests in after.items())
    return re.compile("|".join(ways))


def break_up(text: str) -> str:
    """Return a string with those words broken up; those that were broken up before are told apart."""
    return _words().sub(lambda found: f"{found[0]}{JOINER}", text)


def break_up_own(text: str) -> str:
    """Return what a model wrote with those words broken up that are not yet; it may mark its thoughts."""
    return _words().sub(_broken_once, text)


def _broken_once(found: re.Match[str]) -> str:
    stays = JOINER in found[0] or _THOUGHT.match(found.string, found.end())
    return found[0] if stays else f"{found[0]}{JOINER}"


def put_together(value: Any) -> Any:
    """Return what a model wrote, a JSON value, with those words as they were before they were broken up."""
    return with_texts(value, _put_together, names=True)


def _put_together(text: str) -> str:
    return _words().sub(lambda found: found[0].removesuffix(JOINER), text) if JOINER in text else text
