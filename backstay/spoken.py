"""Find secrets that a text speaks of: in sentences, tables, and lists of names and values."""

import re
from collections.abc import Iterator

from backstay.placeholder import is_placeholder
from backstay.sensitive import SensitiveNames
from backstay.shapes import Span

_CUE = re.compile(
    r"(?:key|secret|token|password|passphrase|passcode|passwd|pwd|credential)s?(?![A-Za-z0-9])", re.IGNORECASE
)
_BEFORE = re.compile(r"(?:[A-Za-z][\w-]{0,30}[ \t]){0,3}[\w-]{0,60}$")
_LONGEST_NAME = 100
_VALUE = re.compile(
    r"""[*`"')]{0,3}[ \t]{0,3}(?:\b(?:is|was|are|to|as|with)\b[ \t]{0,3}(?:now[ \t]|set[ \t]to[ \t])?:?|:|=|->|\u2192)
        \s{1,4}[*`"'(<\[]{0,3}([^\s"'`<>]{8,512})""",
    re.VERBOSE,
)
_PAIR = re.compile(
    r"""["'](?P<name>[A-Za-z][\w.-]{1,60})["'][ \t]{0,3},[ \t]{0,3}(?P<quote>["'])(?P<value>[^"'\n]{8,512})(?P=quote)"""
)
_ATTRIBUTES = re.compile(
    r"""<[^<>]{0,200}?\b(?:name|key|id)=["'](?P<name>[\w.:-]{1,80})["'][^<>]{0,120}?\bvalue=["'](?P<value>[^"'<>]{8,512})"""
)
_CELLS = re.compile(
    r"\|[ \t]{0,9}[`*]{0,2}(?P<name>[A-Za-z][\w. -]{1,60}?)[`*]{0,2}[ \t]{0,9}\|[ \t]{0,9}`?(?P<value>[^\s|`]{8,512})"
)
_TRAILING = ".,;:!?)]}*`\"'>"
_SEPARATORS = (",", "\t", ";")
_MOST_COLUMNS = 60
_LONGEST_HEADER = 2000


def spoken_in(text: str, names: SensitiveNames) -> Iterator[Span]:
    """Yield what follows a sensitive name in a sentence, in a pair of quoted texts, in a row, or beneath it."""
    cues = [found.span() for found in _CUE.finditer(text)]
    if not cues:
        return
    for start, end in cues:
        value = _VALUE.match(text, end)
        if value is not None:
            name = _BEFORE.search(text, max(start - _LONGEST_NAME, 0), start)
            yield from _told(text, (name.group() if name else "") + text[start:end], value.span(1), names)
    for form, sign in ((_PAIR, ","), (_CELLS, "|"), (_ATTRIBUTES, "value=")):
        for found in form.finditer(text) if sign in text else ():
            yield from _told(text, found.group("name"), found.span("value"), names)
    if "\n" in text:
        yield from _columns_in(text, [start for start, _ in cues], names)


def _told(text: str, name: str, place: tuple[int, int], names: SensitiveNames) -> Iterator[Span]:
    kind = names.kind_of(name)
    start, end = place
    end = start + len(text[start:end].rstrip(_TRAILING))
    if kind is not None and is_telling(text[start:end]):
        yield start, end, kind


def is_telling(value: str) -> bool:
    """Say whether a text is too mixed to be a word, a number, a date or an address."""
    if len(value) < 8 or is_placeholder(value) or "://" in value or value.startswith(("/", "./", "$", "http")):
        return False
    digits = sum(map(str.isdecimal, value))
    letters = sum(map(str.isalpha, value))
    return digits > 0 and letters > 0 and not _looks_dated(value) and "(" not in value


def _looks_dated(value: str) -> bool:
    return value[:4].isdecimal() and value[4:5] == "-" and value[5:7].isdecimal() and value[7:8] == "-"


def _columns_in(text: str, cues: list[int], names: SensitiveNames) -> Iterator[Span]:
    """Yield the cells beneath the sensitive names of a table whose cells are parted by one sign."""
    done = 0
    for cue in cues:
        if cue < done:
            continue
        # What is far from the line's edges is not looked for: a line of a megabyte is no header.
        start, done = text.rfind("\n", max(cue - _LONGEST_HEADER, 0), cue) + 1, _line_end(text, cue)
        short = done - start <= _LONGEST_HEADER
        sensitive, sign, width = _header(text[start:done], names) if short else ({}, "", 0)
        at = done + 1
        while sensitive and at < len(text):
            line = text[at : _line_end(text, at)]
            if line.count(sign) != width - 1:
                break
            yield from _cells(line.rstrip("\r"), at, sign, sensitive)
            done = at = at + len(line) + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _header(line: str, names: SensitiveNames) -> tuple[dict[int, str], str, int]:
    for sign in _SEPARATORS:
        cells = line.rstrip("\r").split(sign)
        if 2 <= len(cells) <= _MOST_COLUMNS and all(_is_name(cell) for cell in cells):
            kinds = [names.kind_of(cell.strip().strip('"')) for cell in cells]
            sensitive = {column: kind for column, kind in enumerate(kinds) if kind}
            if sensitive:
                return sensitive, sign, len(cells)
    return {}, "", 0


def _is_name(cell: str) -> bool:
    bare = cell.strip().strip('"')
    return 0 < len(bare) <= 60 and bare[0].isalpha() and all(sign.isalnum() or sign in "_- ." for sign in bare)


def _cells(line: str, at: int, sign: str, sensitive: dict[int, str]) -> Iterator[Span]:
    start = at
    for column, cell in enumerate(line.split(sign)):
        if column in sensitive and (bare := cell.strip().strip('"')) and not is_placeholder(bare):
            from_ = start + cell.index(bare)
            yield from_, from_ + len(bare), sensitive[column]
        start += len(cell) + len(sign)
