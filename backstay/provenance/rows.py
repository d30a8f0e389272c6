"""Read the rows of a listing that a tool answers as text, so that what it lists counts as it does in fields.

Only the answers of tools that are named for it are read so, and only up to the first text that may hold lines of its
own: behind it, a row may have been forged. Within a line, what is behind a string is not read either.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from backstay.data_files import data_beside
from backstay.provenance.words import name_words

MOST_LINES = 2000
MOST_WORDS = 20
"""A line with more words is prose, and may go on in the next line."""
_LISTING, _DOCUMENTS, _TEXTS, _WHOLE = (frozenset[str](names.split()) for names in data_beside(__file__).values())
_FIELD = re.compile(r"\s*(?:-\s+)?([A-Za-z][\w ]{0,30}):(?:\s+(\S.*))?")
_PAIR = re.compile(r"([A-Za-z]\w{0,30})=([\w#@-]+)(?=\s|$)")
_RULE = re.compile(r"[\s|:+=-]+")
_NUMBERED = re.compile(r"\s*(?:[-*]\s+|\[\d+\]\s+|\d+[.)]\s+)")
_BULLET = re.compile(r"\s*[-*]\s+[\w#@-]+\s*")
_FIRST = re.compile(r"\s*(?:[A-Za-z]{2,20}\s+)?(#?(?=[\w-]*\d)\w[\w-]*)(?=[\s,;:]|$)")
_COLUMNS = re.compile(r"\t|\s{2,}")
_QUOTED = re.compile(r"(['\"])(.*)\1")
_TITLE = re.compile(r"\S+(?: \S+)*")
_CELL = re.compile(r"\S+")
LEAST_COLUMNS = 3
"""A string of fewer words a line could as well be prose."""
Leaf = tuple[str, Any]


def lists_things(tool: str) -> bool:
    """Return whether a tool is named as one that lists what its provider has, such as `list_files` or `hotels`."""
    named = name_words(tool.partition(".")[2])
    if not named:
        return False
    is_plural = named[-1].endswith("s") and not named[-1].endswith("ss") and named[-1] not in _DOCUMENTS
    return is_plural or not _LISTING.isdisjoint(named)


def may_answer_a_table(tool: str) -> bool:
    """Return whether a tool is named only as one that gets what its arguments name, such as `get` or `kubectl_get`."""
    return name_words(tool)[-1:] == ("get",)


def is_table(text: str) -> bool:
    """Return whether a string is a table and nothing else: a line of titles, and rows whose cells are below these."""
    head, *rows = text.rstrip().splitlines()[: MOST_LINES + 1] or [""]
    starts = [title.start() for title in _TITLE.finditer(head)]
    if len(starts) < LEAST_COLUMNS or head != head.upper() or not rows or len(rows) >= MOST_LINES:
        return False
    return all(_fills(row, starts) for row in rows)


def _fills(row: str, starts: list[int]) -> bool:
    """Return whether each cell of a row is one word that begins where its title does."""
    return [cell.start() for cell in _CELL.finditer(row)] == starts


def only_text(payload: Any) -> str | None:
    """Return the text that is all of an answer; None where it has fields."""
    while isinstance(payload, dict | list) and len(payload) == 1:
        name, payload = next(iter(payload.items())) if isinstance(payload, dict) else ("result", payload[0])
        if name not in _WHOLE:
            return None
    return payload if isinstance(payload, str) else None


def parsed(text: str) -> Any:
    """Return what a string says as JSON; None where it is none."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def leaves_of_rows(text: str) -> Iterator[Leaf]:
    """Yield the fields of the rows of a string with their names; anything else bears the name `text`."""
    lines = text.splitlines()
    if len(lines) < MOST_LINES and all(map(_BULLET.fullmatch, lines)):
        # Nothing but names, such as those of channels.
        yield from (("names", line.lstrip()[1:].strip()) for line in lines)
        return
    header: list[str] = []
    name = "text"
    for number, line in enumerate(lines):
        if number >= MOST_LINES or _may_go_on(line):
            yield from (("text", rest) for rest in lines[number:])
            return
        if not line.strip() or _RULE.fullmatch(line):
            continue
        if "|" in line:
            cells = _cells(line)
            if number + 1 < len(lines) and "|" in lines[number + 1] and _RULE.fullmatch(lines[number + 1]):
                header = cells
                continue
            yield from zip(header, cells, strict=True) if len(header) == len(cells) else _row(cells)
        elif field := _FIELD.fullmatch(line):
            name = field[1]
            yield name, _unquoted(field[2] or "")
        else:
            # A list may go on below the name that it bears.
            yield from _plain(line, name)


def _plain(line: str, name: str) -> Iterator[Leaf]:
    """Yield what a line without a frame holds."""
    rest = line[begun.end() :] if (begun := _NUMBERED.match(line)) else line
    if pair := _PAIR.match(rest):
        yield pair[1], pair[2]
        yield "text", rest[pair.end() :]
        return
    cells = _COLUMNS.split(rest.strip())
    if len(cells) > 1 or _FIRST.match(rest):
        yield from _row(cells)
        return
    yield name, rest.strip()


def _row(cells: list[str]) -> Iterator[Leaf]:
    """Yield the identifier with which a row begins, and the rest of it."""
    rest = cells[0][begun.end() :] if (begun := _NUMBERED.match(cells[0])) else cells[0]
    if pair := _PAIR.fullmatch(rest):
        yield pair[1], pair[2]
        cells = cells[1:]
    elif found := _FIRST.match(cells[0]):
        yield "id", found[1]
        yield "text", cells[0][found.end() :]
        cells = cells[1:]
    for cell in cells:
        yield "text", cell


def _may_go_on(line: str) -> bool:
    """Return whether a line is the beginning of a string that may have lines of its own."""
    if len(line.split()) > MOST_WORDS:
        return True
    field = _FIELD.fullmatch(line)
    if field is None:
        return False
    said = (field[2] or "").strip()
    is_open = said[:1] in {"|", ">"} or (said[:1] in {"'", '"'} and not _QUOTED.fullmatch(said))
    return is_open or bool(_TEXTS.intersection(name_words(field[1])))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _unquoted(text: str) -> str:
    found = _QUOTED.fullmatch(text.strip())
    return found[2] if found else text.strip()
