"""Find secrets in the columns of tables: CSV, Markdown, rows of lists, and SQL inserts."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from backstay.redaction.harmless import is_placeholder
from backstay.redaction.sensitive_names import SensitiveNames
from backstay.redaction.vendor_tokens import Span

TITLE_FIELDS = ("columns", "headers", "header", "fields", "fieldnames", "columnnames", "cols")
ROW_FIELDS = ("rows", "values", "data", "records")
_SEPARATORS = (",", "\t", ";", "|")
_MOST_COLUMNS = 60
_LONGEST_HEADER = 2000
_LONGEST_TITLE = 60
_MOST_SIGNS = frozenset("_- .")
_BARS = str.maketrans(dict.fromkeys("\u2502\u2503\u2551", "|"))
"""What drawn tables have between their columns."""
_LINES = frozenset("-=" + "".join(map(chr, range(0x2500, 0x2580))))
_PLAIN = frozenset("-= :\t\u2500\u2501\u2550")
"""What a rule has between the joints of several columns."""
_IN_RULES = _LINES | frozenset(" \t|:+\r")
_INSERTED = re.compile(r"\(([^()]{1,600})\)\s{0,9}values?\s{0,9}((?:\([^()]{1,4000}\)[,\s]{0,9}){1,50})", re.IGNORECASE)
_TUPLE = re.compile(r"\(([^()]{1,4000})\)")
_CELL = re.compile(r"""\s*(?:'((?:[^']|'')*)'|"([^"]*)"|([^,'"]*))\s*(?:,|$)""")


def is_titles(items: list[Any]) -> bool:
    """Return whether a list of rows begins with the titles of its columns."""
    if len(items) < 2 or not all(isinstance(row, list) for row in items[:2]):
        return False
    first, second = items[0], items[1]
    return (
        len(first) == len(second)
        and len(first) > 1
        and all(isinstance(cell, str) and _is_title(cell) for cell in first)
    )


def sensitive_columns(titles: Iterable[str], read: Callable[[str], tuple[str | None, bool]]) -> dict[int, str]:
    """Return the kind of secret in each column whose title certainly names one."""
    found = enumerate(map(read, titles))
    return {column: kind for column, (kind, certain) in found if kind and certain}


def columns_in(text: str, cues: list[tuple[int, int]], names: SensitiveNames) -> Iterator[Span]:
    """Yield the cells of sensitive columns, in tables with a separator and in SQL."""
    if "\n" in text:
        yield from _tables(text, cues, names)
    if "(" in text and ("values" in text or "VALUES" in text or "Values" in text):
        for found in _INSERTED.finditer(text):
            yield from _inserted(text, found, names)


def _tables(text: str, cues: list[tuple[int, int]], names: SensitiveNames) -> Iterator[Span]:
    done = 0
    for cue, _ in cues:
        if cue < done:
            continue
        # A longer line is not a header.
        start = text.rfind("\n", max(cue - _LONGEST_HEADER, 0), cue) + 1
        done = _line_end(text, cue)
        short = done - start <= _LONGEST_HEADER
        sensitive, sign, width = _header(_with_bars(text[start:done]), names) if short else ({}, "", 0)
        at, was_rule, is_first = done + 1, False, True
        while sensitive and at < len(text):
            line = _with_bars(text[at : _line_end(text, at)])
            is_rule = _IN_RULES.issuperset(line) and not _LINES.isdisjoint(line)
            goes_on = is_rule and sign == "|" and (is_first or _goes_on(line, was_rule=was_rule))
            if line.count(sign) != width - 1 and not goes_on:
                break
            if not is_rule:
                yield from _cells(line.rstrip("\r"), at, sign, sensitive)
            was_rule, is_first = is_rule, False
            done = at = at + len(line) + 1


def _goes_on(rule: str, *, was_rule: bool) -> bool:
    """Return whether a table goes on with a rule: two in succession end one and begin another, as does a plain one."""
    return not was_rule and any(sign not in _PLAIN for sign in rule.strip())


def _with_bars(line: str) -> str:
    return line if line.isascii() else line.translate(_BARS)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _header(line: str, names: SensitiveNames) -> tuple[dict[int, str], str, int]:
    for sign in _SEPARATORS:
        cells = line.rstrip("\r").split(sign)
        inner = cells[1:-1] if sign == "|" and len(cells) > 2 and not cells[0].strip() else cells
        if 2 <= len(cells) <= _MOST_COLUMNS and inner and all(_is_title(cell.strip().strip('"`*')) for cell in inner):
            sensitive = sensitive_columns((cell.strip().strip('"`*') for cell in cells), names.read)
            if sensitive:
                return sensitive, sign, len(cells)
    return {}, "", 0


def _is_title(bare: str) -> bool:
    return (
        0 < len(bare) <= _LONGEST_TITLE
        and bare[0].isalpha()
        and all(sign.isalnum() or sign in _MOST_SIGNS for sign in bare)
    )


def _cells(line: str, at: int, sign: str, sensitive: dict[int, str]) -> Iterator[Span]:
    start = at
    for column, cell in enumerate(line.split(sign)):
        bare = cell.strip().strip('"`')
        if column in sensitive and bare and not is_placeholder(bare):
            from_ = start + cell.index(bare)
            yield from_, from_ + len(bare), sensitive[column]
        start += len(cell) + len(sign)


def _inserted(text: str, found: re.Match[str], names: SensitiveNames) -> Iterator[Span]:
    """Yield the values that SQL inserts into sensitive columns."""
    sensitive = sensitive_columns((title.strip().strip('`"[]') for title in found[1].split(",")), names.read)
    for row in _TUPLE.finditer(text, *found.span(2)) if sensitive else ():
        at, column = row.start(1), 0
        while at < row.end(1) and (cell := _CELL.match(text, at, row.end(1))) is not None and cell.end() > at:
            group = next((number for number in (1, 2) if cell.group(number)), 0)
            if group and column in sensitive and not is_placeholder(cell.group(group)):
                yield *cell.span(group), sensitive[column]
            at, column = cell.end(), column + 1
