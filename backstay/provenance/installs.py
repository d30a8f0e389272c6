"""Find what a string gets installed or run: packages in a list of dependencies, images, actions of a build, commands.

Naming one of these says whose code runs, as naming a host says where text leads.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from backstay.data_files import data_beside
from backstay.provenance.targets import MOST_WITHIN
from backstay.provenance.words import name_words

MOST_LETTERS = 100_000
"""Of a longer text the rest is not read; somebody must vouch for it as for many."""
_LONGEST = 214
_DATA = data_beside(__file__)
_ANYWHERE = tuple((kind["hints"], re.compile(kind["name"], re.MULTILINE)) for kind in _DATA["anywhere"])
_HINTS, _COMMANDS = tuple[str, ...](_DATA["hints"]), re.compile(_DATA["commands"].strip())
_SENTENCE, _KEYS, _READING, _TALK = (
    frozenset[str](_DATA[names].split()) for names in ("sentence", "keys", "reading", "talk")
)
_FILES = tuple(
    (re.compile(kind["name"]), tuple(re.compile(pattern, re.MULTILINE) for pattern in kind["names"]))
    for kind in _DATA["files"]
)
_BEFORE, _BEHIND = "\"'([ \t\r\n", "\"'.,:)] \t\r\n"


def installed_by(text: str, beside: Iterable[Any]) -> list[str]:
    """Return the names of what a string gets installed; `beside` holds the other arguments, which may name a file.

    Anything named by a path of the same machine is left out.
    """
    found = (_bare(name) for name in _named_in(text[:MOST_LETTERS] if len(text) > MOST_LETTERS else text, beside))
    return list(islice(dict.fromkeys(name for name in found if name and name.lower() not in _KEYS), MOST_WITHIN))


def _named_in(text: str, beside: Iterable[Any]) -> Iterator[str]:
    for hints, pattern in _ANYWHERE:
        if any(hint in text for hint in hints):
            yield from pattern.findall(text)
    for pattern in _patterns_for(beside) if "\n" in text or len(text) <= _LONGEST else ():
        yield from pattern.findall(text)
    for groups in _COMMANDS.findall(text) if any(hint in text for hint in _HINTS) else ():
        yield from _after_command("".join(groups))


def _patterns_for(beside: Iterable[Any]) -> Iterator[re.Pattern[str]]:
    """Yield the patterns of a file that another argument names."""
    for value in beside:
        if isinstance(value, str) and len(value) <= _LONGEST and "\n" not in value:
            yield from _patterns_of(value)


@lru_cache(maxsize=256)
def _patterns_of(path: str) -> tuple[re.Pattern[str], ...]:
    last = path.strip().replace("\\", "/").rpartition("/")[2]
    return tuple(pattern for name, patterns in _FILES if name.fullmatch(last) for pattern in patterns)


def _after_command(rest: str) -> Iterator[str]:
    """Yield the names that are behind a command, up to a word of a sentence."""
    for token in rest.split():
        if token.lower() in _SENTENCE:
            return
        if not token.startswith("-"):
            yield token
        if token[-1] in ".,:)" and len(token) > 1:
            return


def _bare(name: str) -> str:
    """Return a name without its version and what surrounds it; empty for a path of the same machine."""
    name = name.lstrip(_BEFORE).rstrip(_BEHIND)
    if name.startswith((".", "/", "~", "-", "$")) or len(name) > _LONGEST or not any(map(str.isalpha, name)):
        return ""
    bare = re.split(r"(?<=\w)(?:\[|[=<>~!]=?|@(?=[\dv^~]))", name, maxsplit=1)[0]
    return "" if re.fullmatch(r"[\w.-]+\.(?:txt|in|whl|toml|json)", bare) else bare


def reads_files(tool: str, *, like: str) -> bool:
    """Return whether a tool of the same provider as another one is named as one that reads files."""
    provider, _, name = tool.partition(".")
    named = {*name_words(name)}
    return provider == like.partition(".")[0] and bool(named & _READING) and not named & _TALK
