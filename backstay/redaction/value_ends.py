"""Find where the value behind an operator ends: at a quotation mark, at a blank, or with its line."""

import re
from typing import NamedTuple

from backstay.redaction.entropy import is_worded, looks_secret
from backstay.redaction.harmless import PASSWORDS, has_function_words, is_sentence

_BARE = re.compile(
    r"""(?:(?:bearer|basic|digest|token|apikey|key)[ \t]{1,4})?
    (?:[^\s"'`,;&<>{}\[\]\\|]+|\\u002[bf]|\\u003d|\\/)+""",
    re.VERBOSE | re.IGNORECASE,
)
_CHOSEN = re.compile(r"[^\s\"'`,{}\[\]<>]+")
"""What a person chose ends at a blank."""
_OPENING = re.compile(r"""[\\]{0,8}["'`]""")
_REST_OF_LINE = re.compile(r"""[^\r\n"'`<>{}\[\]\\|]+""")
WHOLE_LINE = frozenset(("authorization", "cookie", "session_cookie"))
"""Kinds whose values continue to the end of the line."""
_BEFORE_SETTING = re.compile(
    r"""(?:[\w./-]{0,80}:)?(?:[0-9]{1,6}[:\t])?[ \t]{0,80}(?:[-+*\#\u2022][ \t]{0,4})?
    (?:(?:export|set|setx|ENV|(?:declare|typeset)[ ]-x)[ \t]{1,4}|Environment=)?""",
    re.VERBOSE,
)
"""What a line may have before its setting: a mark of a list, a command, or where the line was found."""
_LONGEST_BEFORE = 200
_ENDS = {'"': re.compile('"'), "'": re.compile("'"), ";": re.compile(r"""[;"'`\s]""")}
"""What ends the string, or the part of a connection string, that a setting has for itself, by what it begins with."""
_COMMAND = r"[;&|]{1,2}(?:\.{0,2}/)?[a-z][a-z-]{1,30}(?:[\s;&|/]|\Z)"
_SETTING = r"""(?![{\[][\s"'{\[%\\]|\{[\w-]{1,40}:)
    (?:(?! [;&,|]{1,2}[ \t]{0,4}[A-Za-z_][\w.-]{1,40}=[^=\s] | ,[ \t]{0,4}["']?[A-Za-z_][\w-]{1,40}["']?:[ \t]
         | [;&,|]{1,4}(?:\s|\Z) | COMMAND
         | ["'\\]{1,4}[;,)}\]]{0,4}(?:\s|\Z) | \\[nrtu"'] | \$[({] | [%\#]\{[A-Za-z_][\w.]{0,80}\} | </[A-Za-z] | <!
         | <[A-Za-z][^<>\s]{0,80}(?:[ ][^<>\r\n]{0,200})?> )
      [^\s`]){1,4096}"""
"""All of a line, to where another setting, a command or markup begins."""
_OF_SHELL, _OF_FILE = (re.compile(_SETTING.replace("COMMAND", end), re.VERBOSE) for end in (_COMMAND, r"\Z"))
_LISTED = re.compile(r"""[ \t]{0,80}-[ \t]{1,4}["']?""")
"""What is before a setting in a list of YAML, where nothing is a command."""
_LEAST_SETTING = 6
_GROUPS = re.compile(
    r"""(?:[a-z]{4}(?:[ \u00a0][a-z]{4}){3} | [A-Za-z0-9]{4}(?:[ \u00a0][A-Za-z0-9]{4}){5})
    (?=["',;.)]{0,3}[ \t]{0,9}(?:[\r\n]|\Z))""",
    re.VERBOSE,
)
"""A password for one program, as Google and WordPress show it."""
_BLANKS = (" ", "\u00a0")
_IN_BRACES = re.compile(
    r"""\{(?!\{[^{}]{0,200}\}\}|\s{0,4}["']?[A-Za-z_][\w-]{0,40}["']?\s{0,4}:)(?P<value>(?:[^}\r\n]|\}\}){1,512})\}(?!\})
    (?=[ \t]{0,9}(?P<end>;|["'`\r\n]|\Z))""",
    re.VERBOSE,
)
"""A value of a connection string, in which `}}` is a brace."""
_TAG = re.compile(r"(?:!(?:unsafe|!?(?:str|binary))|!<[^>\s]{1,100}>|&[A-Za-z][\w-]{0,40})[ \t]{1,9}")
"""What YAML has before a value and does not change it; other tags refer to a value elsewhere."""
_BLOCK = re.compile(r"[|>][0-9+-]{0,2}[ \t]{0,40}(?:\#[^\r\n]*)?\r?\n")
_BLOCK_LINE = re.compile(r"(?P<indent>[ ]{0,400}+)(?P<text>[^\r\n]{0,4096}+)(?P<end>\r?\n|\Z)?")
_NO_PHRASE = re.compile(r"""(?:^|[\s"'])\$[A-Za-z_({]|^[\w.-]{1,80}:(?:\s|$)""")
"""A variable, or another key."""
_BEFORE_BLOCK = frozenset(" -?\"'")
_MOST_LINES = 200
_VARIABLE = re.compile(r"[A-Za-z_][\w.]{0,80}")
_NO_WORD = str.maketrans(dict.fromkeys(";&|{}[]'\"<>", ","))


class Operator(NamedTuple):
    """Say what is before a value: where its name begins, the kind of secret that it names, and how they are joined."""

    name_start: int
    kind: str
    spaced: bool
    """Whether it is a colon with a blank behind it, as in YAML and in sentences."""
    upper: bool
    """Whether the name is in capitals, as those of variables are."""


def value_at(text: str, at: int, operator: Operator) -> tuple[int, int]:
    """Return where the value behind an operator begins and ends."""
    if operator.spaced:
        tag = _TAG.match(text, at)
        at = tag.end() if tag else at
        if (block := _BLOCK.match(text, at)) is not None:
            return _in_block(text, block.end(), operator)
    opening = _OPENING.match(text, at)
    if opening is None:
        return _in_braces(text, at, operator) or (at, _bare_end(text, at, operator))
    quote, start = opening.group(), opening.end()
    if text.startswith(quote * 2, start) and len(quote) == 1:
        # Three quotes hold a string of many lines.
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


def _in_block(text: str, at: int, operator: Operator) -> tuple[int, int]:
    """Return where a block of YAML begins and ends that may be a secret; nothing of what is prose."""
    line = text.rfind("\n", max(operator.name_start - _LONGEST_BEFORE, 0), operator.name_start) + 1
    column = operator.name_start - line
    if column > _LONGEST_BEFORE or not _BEFORE_BLOCK.issuperset(text[line : operator.name_start]):
        return at, at
    lines: list[re.Match[str]] = []
    here = at
    for _ in range(_MOST_LINES):
        found = _BLOCK_LINE.match(text, here)
        if found is None or here == len(text):
            break
        if found["end"] is None:
            return at, at
        here = found.end()
        if not found["text"].strip():
            continue
        if len(found["indent"]) <= column:
            break
        lines.append(found)
        # Blocks within blocks would be looked at over and over, so the first line that is none of a secret ends it.
        if not (_is_plain(found) or (len(lines) == 1 and _is_phrase(found, operator))):
            return at, at
        if len(lines) > 1 and not _is_plain(lines[0]):
            return at, at
    if not lines or (len(lines) > 1 and not _is_secret(lines, operator)):
        return at, at
    return lines[0].start("text"), lines[-1].start("text") + len(lines[-1]["text"].rstrip())


def _is_plain(line: re.Match[str]) -> bool:
    """Return whether a line of a block is a single word."""
    return len(line["text"].split()) == 1


def _is_phrase(line: re.Match[str], operator: Operator) -> bool:
    """Return whether a line of several words may be a password."""
    text = line["text"]
    if operator.kind not in PASSWORDS or _NO_PHRASE.search(text) or is_sentence(text):
        return False
    return looks_secret("".join(text.split()))


def _is_secret(lines: list[re.Match[str]], operator: Operator) -> bool:
    """Return whether several lines of a block are a secret and not words."""
    joined = "".join(line["text"] for line in lines)
    return any(map(str.isdecimal, joined)) if operator.kind in PASSWORDS else looks_secret(joined)


def _in_braces(text: str, at: int, operator: Operator) -> tuple[int, int] | None:
    """Return where the value of a connection string is within braces; None for none, and for a variable to fill in."""
    if not text.startswith("{", at) or operator.kind not in PASSWORDS or operator.spaced:
        return None
    found = _IN_BRACES.match(text, at)
    if found is None or ";" not in (found["end"], text[operator.name_start - 1 : operator.name_start]):
        return None
    is_variable = _VARIABLE.fullmatch(found["value"]) is not None and not looks_secret(found["value"])
    return None if is_variable else found.span("value")


def _bare_end(text: str, at: int, operator: Operator) -> int:
    if operator.kind in WHOLE_LINE:
        rest = _REST_OF_LINE.match(text, at)
        return len(text[: rest.end()].rstrip()) if rest else at
    is_password = operator.kind in PASSWORDS
    groups = _GROUPS.match(text, at) if is_password and text[at + 4 : at + 5] in _BLANKS else None
    if groups is not None and not has_function_words(groups.group()) and not _is_worded(groups.group()):
        return groups.end()
    bare = (_CHOSEN if operator.spaced and is_password else _BARE).match(text, at)
    end = bare.end() if bare else at
    if end < len(text) and not text[end].isspace() and (is_password or operator.upper):
        return max(end, _setting_end(text, at, operator))
    return end


def _is_worded(groups: str) -> bool:
    plain = "".join(groups.split())
    return plain.isalpha() and is_worded(plain)


def _setting_end(text: str, at: int, operator: Operator) -> int:
    """Return where the value of a setting ends that has a line or a string for itself; 0 for what looks like words."""
    line = text.rfind("\n", max(operator.name_start - _LONGEST_BEFORE, 0), operator.name_start) + 1
    is_listed = _LISTED.fullmatch(text, line, operator.name_start) is not None
    setting = _OF_FILE if operator.spaced or is_listed else _OF_SHELL
    found = setting.match(text, at, _farthest(text, at, operator.name_start))
    if found is None or (operator.spaced and text[at] in "{["):
        return 0
    value = found.group()
    mixed = any(map(str.isdecimal, value)) and any(map(str.isalpha, value)) and len(value) >= _LEAST_SETTING
    is_secret = mixed if operator.kind in PASSWORDS else looks_secret(value.translate(_NO_WORD))
    return found.end() if is_secret else 0


def _farthest(text: str, at: int, name_start: int) -> int:
    """Return how far a setting may reach whose value begins at a place; that place for what is none."""
    before = text[name_start - 1 : name_start]
    if before in _ENDS:
        end = _ENDS[before].search(text, at)
        return end.start() if end else len(text)
    line = text.rfind("\n", max(name_start - _LONGEST_BEFORE, 0), name_start) + 1
    is_first = name_start - line <= _LONGEST_BEFORE and _BEFORE_SETTING.fullmatch(text, line, name_start)
    return len(text) if is_first else at
