"""Show untrusted text to people safely: on one line, without invisible characters or active markup."""

from bisect import bisect_right
from typing import Any

_MORE = "…"
_DEEPEST = 20
_MARKDOWN = frozenset("\\`*_{}[]()<>#|~&!")
_AT_THE_START = frozenset("-+=0123456789")

_UNSEEN = (
    # Listed here instead of taken from unicodedata, so that every Python version shows the same: controls, separators,
    # unusual spaces, format and bidi marks, invisible fillers, variation selectors, surrogates, private use, tags.
    (0x00, 0x1F), (0x7F, 0xA0), (0xAD, 0xAD), (0x34F, 0x34F), (0x600, 0x605), (0x61C, 0x61C), (0x6DD, 0x6DD),
    (0x70F, 0x70F), (0x890, 0x891), (0x8E2, 0x8E2), (0x115F, 0x1160), (0x1680, 0x1680), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x2000, 0x200F), (0x2028, 0x202F), (0x205F, 0x206F), (0x2800, 0x2800), (0x3000, 0x3000),
    (0x3164, 0x3164), (0xD800, 0xF8FF), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB),
    (0xFFFE, 0xFFFF), (0x110BD, 0x110BD), (0x110CD, 0x110CD), (0x13430, 0x1345F), (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A), (0xE0000, 0x10FFFF),
)  # fmt: skip
_STARTS = tuple(start for start, _ in _UNSEEN)


def one_line(text: str, limit: int) -> str:
    """Return the text as one line of at most `limit` characters.

    An invisible character is written as its code, such as `<U+202E>`; a line break becomes `⏎`.
    """
    return shown_line(text, limit)[0]


def shown_line(text: str, limit: int) -> tuple[str, int]:
    """Return the text as `one_line` does, and how many of its characters are left out."""
    line, taken = _fill(text, limit)
    if taken == len(text):
        return line, 0
    line, taken = _fill(text, max(limit - len(_MORE), 0))
    return (line + _MORE)[:limit], len(text) - taken


def message_line(text: str, limit: int = 500) -> str:
    """Return an error message as `one_line` does, with each run of white space as one space."""
    return one_line(" ".join(text[: 8 * limit].split()), limit)


def markdown_line(text: str, limit: int = 1000) -> str:
    """Return the text as one line that Markdown shows literally: no link, image, code, table, heading or list."""
    # Some renderers link bare addresses even when their characters are escaped, so a space goes into each.
    line = one_line(text, limit).replace("://", ": //").replace("www.", "www .").replace("WWW.", "WWW .")
    escaped = "".join(f"\\{sign}" if sign in _MARKDOWN else sign for sign in line).lstrip(" ")
    return _escape_start(escaped)


def shown_arguments(arguments: dict[str, Any], limit: int = 2000) -> tuple[dict[str, Any], int]:
    """Return the arguments with every string as `one_line` shows it, and how many characters are left out.

    All names and values together take at most about `limit` characters.
    """
    view = _View(limit)
    return view.mapping(arguments, 0), view.hidden


class _View:
    """Show a JSON value in a limited number of characters, and count what is left out."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.hidden = 0

    def mapping(self, items: dict[str, Any], depth: int) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for key, item in items.items():
            if self.left <= 0:
                self.hidden += max(len(str(key)) + _weight(item), 1)
                continue
            # Two names may look the same once shown; keep both.
            name = unique = self._text(str(key))
            while unique in shown:
                unique = f"{name}#{len(shown)}"
            shown[unique] = self.value(item, depth + 1)
        if len(shown) < len(items):
            shown[_MORE] = f"{len(items) - len(shown)} more"
        return shown

    def sequence(self, items: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        shown: list[Any] = []
        for item in items:
            if self.left <= 0:
                self.hidden += max(_weight(item), 1)
                continue
            self.left -= 1
            shown.append(self.value(item, depth + 1))
        if len(shown) < len(items):
            shown.append(f"{_MORE} {len(items) - len(shown)} more")
        return shown

    def value(self, item: Any, depth: int) -> Any:
        match item:
            case dict() | list() | tuple() if depth > _DEEPEST:
                self.hidden += max(_weight(item), 1)
                return _MORE
            case dict():
                return self.mapping(item, depth)
            case list() | tuple():
                return self.sequence(item, depth)
            case bool() | None:
                self.left -= 4
                return item
            case int() | float():
                text = _number(item)
                self.left -= len(text)
                # A number that JSON readers may read differently is shown as text.
                return item if len(text) <= 20 and item - item == 0 else self._text(text)
            case _:
                return self._text(item if isinstance(item, str) else str(type(item).__name__))

    def _text(self, text: str) -> str:
        line, hidden = shown_line(text, max(self.left, 1))
        self.left -= max(len(line), 1)
        self.hidden += hidden
        return line


def _fill(text: str, limit: int) -> tuple[str, int]:
    """Return as many whole characters as fit, and their count."""
    shown: list[str] = []
    room, at = limit, 0
    while at < len(text):
        step = 2 if text.startswith("\r\n", at) else 1
        sign = "⏎" if step == 2 or text[at] == "\n" else _sign(text[at])
        if len(sign) > room:
            break
        shown.append(sign)
        room -= len(sign)
        at += step
    return "".join(shown), at


def _sign(character: str) -> str:
    code = ord(character)
    if 0x20 <= code < 0x7F:
        return character
    at = bisect_right(_STARTS, code) - 1
    return f"<U+{code:04X}>" if code <= _UNSEEN[at][1] else character


def _escape_start(line: str) -> str:
    """Escape the start of a line that Markdown would read as a list or as the underline of a heading."""
    if not line or line[0] not in _AT_THE_START:
        return line
    if not line[0].isdecimal():
        return f"\\{line}"
    digits = len(line) - len(line.lstrip("0123456789"))
    return f"{line[:digits]}\\{line[digits:]}" if line[digits : digits + 1] in (".", ")") else line


def _number(value: float) -> str:
    if isinstance(value, int) and value.bit_length() > 1000:
        return f"a number of {value.bit_length()} bits"
    return repr(value)


def _weight(value: Any) -> int:
    """Count the characters of all names and values, at any depth."""
    total, waiting = 0, [value]
    while waiting:
        match waiting.pop():
            case dict() as items:
                waiting.extend(items)
                waiting.extend(items.values())
            case list() | tuple() as items:
                waiting.extend(items)
            case str() as text:
                total += len(text)
            case int() | float() as number:
                total += len(_number(number))
            case _:
                total += 4
    return total
