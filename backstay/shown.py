"""Show untrusted text to people safely: on one line, without invisible characters or active markup."""

import errno
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from backstay.canonical import canonical
from backstay.lookalikes import lookalikes
from backstay.stored_texts import REF, is_stored_text

MASKED = (
    "Masked: text such as ⟦secret:…⟧ or [REDACTED:…] stands for a value that is shown to nobody; a call to the "
    "provider that a ⟦secret:…⟧ names gets the value itself."
)
"""What people are told once about a request with masked values."""
_MASKS = ("⟦secret:", "[REDACTED:")  # as backstay.redaction writes them
CLIPPED = "…"
"""Stands where something is left out."""
LINE_BREAK = "⏎"
MINUTE = "%Y-%m-%d %H:%M UTC"
"""How people read a time, in the format of `strftime`."""
_OWN_SIGN = "<U+23CE>"
_UNUSABLE_PATH = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP})
"""Faults of a path that another path, or another user, does not have; a full disk and a lack of files are none."""
_DEEPEST = 20
_BRIEF_VALUE = 80
_BRIEF_BYTES = 400
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]()<>#|~&!"})
_AT_THE_START = frozenset("-+=0123456789")
_PLAIN_IN_SHELLS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@+:,./-")

NOBODY = "singleton"
"""The user of a task that names none."""

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

    An invisible character is written as its code, such as `<U+202E>`, and so is one that passes for another; a line
    break becomes `⏎`.
    """
    return shown_line(text, limit)[0]


def shown_line(text: str, limit: int) -> tuple[str, int]:
    """Return the text as `one_line` does, and how many of its characters are left out."""
    line, taken = _fill(text, limit)
    if taken == len(text):
        return line, 0
    line, taken = _fill(text, max(limit - len(CLIPPED), 0))
    return (line + CLIPPED)[:limit], len(text) - taken


def is_visible(text: str) -> bool:
    """Return whether every character of a string, apart from its line breaks, is shown as it is."""
    return all(one_line(part, 16 * len(part) + 16) == part for part in text.replace("\r\n", "\n").split("\n"))


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as "1 effect" and "2 effects"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def money(amount: float, *, exact: bool = False) -> str:
    """Return US dollars in digits: to four places, or `exact` with two at least; never zero for a sum that is not."""
    shown = f"{amount:.2f}" if exact else f"{amount:.4f}"
    if float(shown) == amount or (float(shown) and not exact):
        return shown
    return f"{Decimal(repr(amount) if exact else f'{amount:.2g}'):f}"


def for_user(user_id: str) -> str:
    """Return whom a run is for, such as "for ana@example.com"; empty when its task names nobody."""
    return "" if user_id in {"", NOBODY} else f"for {one_line(user_id, 80)}"


def file_line(error: OSError) -> str:
    """Return which file or folder cannot be used, why, and what to do; empty where the path is not at fault."""
    if not isinstance(error.filename, str) or error.errno not in _UNUSABLE_PATH:
        return ""
    fix = "give this user access to it, or, if it is in the home, set BACKSTAY_HOME to another folder"
    return f"{one_line(error.filename, 500)}: {error.strerror}; {fix}"


def message_line(text: str, limit: int = 500) -> str:
    """Return an error message as `one_line` does, with each run of white space as one space."""
    return one_line(" ".join(text[: 8 * limit].split()), limit)


def message_block(text: str, limit: int = 4000) -> str:
    """Return an error message with its line breaks, each line as `one_line` shows it, from its start and its end.

    It is for places where a block is quoted, so that no line of it can pass for one of the engine's own.
    """
    if len(text) > 2 * limit:
        text = f"{text[:limit]}\n{CLIPPED}\n{text[-limit:]}"
    lines = [one_line(line.rstrip(), 2 * limit) for line in text.expandtabs(4).splitlines()]
    block = "\n".join(line for place, line in enumerate(lines) if line or any(lines[max(place - 1, 0) : place])).strip(
        "\n"
    )
    half = (limit - len(CLIPPED)) // 2 - 1
    return block if len(block) <= limit else f"{block[:half]}\n{CLIPPED}\n{block[-half:]}"


def markdown_line(text: str, limit: int = 1000) -> str:
    """Return the text as one line that Markdown shows literally: no link, image, code, table, heading or list.

    It says how many characters are left out, if any.
    """
    line, hidden = shown_line(text, limit)
    # Some renderers link bare addresses even when their characters are escaped, so a space goes into each.
    line = line.replace("://", ": //").replace("www.", "www .").replace("WWW.", "WWW .")
    return _escape_start(line.translate(_MARKDOWN).lstrip(" ")) + (f" ({clipped_words(hidden)})" if hidden else "")


def markdown_code(text: str) -> str:
    """Return a command as code within a line of Markdown, which no backtick in it can end."""
    longest = max(map(len, "".join(sign if sign == "`" else " " for sign in text).split()), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"`{text}`"


def markdown_link(text: str, address: str) -> str:
    """Return a link of Markdown to an address of the operator's, which no sign in it can end early."""
    signs = {" ": "%20", "(": "%28", ")": "%29", "<": "%3C", ">": "%3E", "\\": "%5C"}
    return f"[{markdown_line(text)}]({''.join(signs.get(sign, sign) for sign in address)})"


def clipped_words(characters: int) -> str:
    """Return how people are told that a number of characters are not shown."""
    return f"{characters:,} characters clipped"


def unseen_words(hidden: int, arguments: int, characters: int, kept: int, lines: int = 0) -> str:
    """Return how people are told what they do not see of a call; empty when they see everything.

    `kept` is how many bytes of it the request only refers to, `lines` how many lines of a diff are not shown.
    """
    said = [f"{hidden} of {arguments} arguments not shown"] if hidden else []
    said += [clipped_words(characters)] if characters else []
    said += [f"{kept:,} bytes kept apart and not shown"] if kept else []
    said += [f"{lines} lines of what would change not shown"] if lines else []
    return ", ".join(said)


def shell_words(*texts: str) -> str:
    """Return the texts as words that a shell takes literally, on one line and without invisible characters.

    Before words that would be taken for flags stands the `--` that ends the flags.
    """
    words = " ".join(map(_shell_word, texts))
    return f"-- {words}" if any(text.startswith("-") for text in texts) else words


def _shell_word(text: str) -> str:
    if text and _PLAIN_IN_SHELLS.issuperset(text):
        return text
    if shown_line(text, 2 * len(text))[0] == text:
        return "'" + text.replace("'", "'\"'\"'") + "'"
    # A character that cannot be seen, or passes for something else, is written byte by byte.
    return "$'" + "".join(_octal(byte) for byte in text.encode("utf-8", "replace")) + "'"


class ShownArguments(NamedTuple):
    """Hold arguments as people see them, and count what they do not see."""

    arguments: dict[str, Any]
    clipped: int
    """How many characters are not shown."""
    left_out: int
    """How many arguments are not shown at all."""


def shown_arguments(arguments: dict[str, Any], limit: int = 2000) -> ShownArguments:
    """Return the arguments with every string as `one_line` shows it.

    All names and values together take at most about `limit` characters.
    """
    view = _View(limit)
    shown = view.mapping(arguments, 0)
    return ShownArguments(shown, view.hidden, view.left_out)


def brief_arguments(arguments: dict[str, Any]) -> ShownArguments:
    """Return the beginning of each argument, in shown form, as events and effects keep it.

    As JSON, all of it takes about 400 bytes at most.
    """
    brief: dict[str, Any] = {}
    left, clipped = _BRIEF_BYTES, 0
    for name, value in arguments.items():
        shown, hidden, _ = shown_arguments({name: value}, _BRIEF_VALUE)
        left -= len(canonical(shown).encode())
        if left < 0:
            break
        brief |= {_unique(told, brief): item for told, item in shown.items()}
        clipped += hidden
    more = len(arguments) - len(brief)
    if more:
        brief[_unique(CLIPPED, brief)] = f"{more} more"
    return ShownArguments(brief, clipped, more)


def holds_mask(value: Any) -> bool:
    """Return whether a JSON value, names included, holds a mask or a handle in place of a value."""
    return any(isinstance(item, str) and any(mask in item for mask in _MASKS) for item in _items(value))


def kept_bytes(value: Any) -> int:
    """Return how many bytes of long texts a JSON value only refers to."""
    return sum(size for _, size in kept_texts(value))


def kept_texts(value: Any) -> Iterator[tuple[str, int]]:
    """Yield the ref and the bytes of each long text that a JSON value only refers to."""
    for item in _items(value):
        if is_stored_text(item):
            yield item[REF], item["bytes"]


def _items(value: Any) -> Iterator[Any]:
    """Yield the value and all names and values in it."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        yield item
        match item:
            case dict() as items:
                waiting.extend(items)
                waiting.extend(items.values())
            case list() | tuple() as items:
                waiting.extend(items)
            case _:
                pass


class _View:
    """Show a JSON value in a limited number of characters, and count what is left out."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.hidden = 0
        self.left_out = 0

    def mapping(self, items: dict[str, Any], depth: int) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for key, item in items.items():
            if self.left <= 0:
                self.hidden += max(len(str(key)) + _weight(item), 1)
                continue
            # Two names may look the same once shown; keep both.
            name = _unique(self._text(str(key)), shown)
            shown[name] = self.value(item, depth + 1)
        if (more := len(items) - len(shown)) > 0:
            shown[_unique(CLIPPED, shown)] = f"{more} more"
            self.left_out = more if depth == 0 else self.left_out
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
            shown.append(f"{CLIPPED} {len(items) - len(shown)} more")
        return shown

    def value(self, item: Any, depth: int) -> Any:
        match item:
            case dict() | list() | tuple() if depth > _DEEPEST:
                self.hidden += max(_weight(item), 1)
                return CLIPPED
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
        # So that people can be shown lines, the symbol of a line break stands for nothing else.
        line, hidden = shown_line(text.replace(LINE_BREAK, _OWN_SIGN), max(self.left, 1))
        self.left -= max(len(line), 1)
        self.hidden += hidden
        return line


def _unique(name: str, taken: dict[str, Any]) -> str:
    unique = name
    while unique in taken:
        unique = f"{name}#{len(taken)}"
    return unique


def _fill(text: str, limit: int) -> tuple[str, int]:
    """Return as many whole characters as fit, and their count."""
    start = text[:limit]
    if start.isascii() and start.isprintable():
        return start, len(start)
    marked = lookalikes(start)
    if not marked and start.translate(_SIGNS) == start:
        return start, len(start)
    shown: list[str] = []
    room, at = limit, 0
    while at < len(text):
        step = 2 if text.startswith("\r\n", at) else 1
        sign = _code(text[at]) if at in marked else _sign(text[at])
        if step == 2 or text[at] == "\n":
            sign = LINE_BREAK
        if len(sign) > room:
            break
        shown.append(sign)
        room -= len(sign)
        at += step
    return "".join(shown), at


_MOST_SIGNS = 8192


class _Signs(dict[int, str]):
    """Hold how each character is shown, by its code, for `str.translate`."""

    def __missing__(self, code: int) -> str:
        if len(self) >= _MOST_SIGNS:
            self.clear()
        self[code] = _sign(chr(code))
        return self[code]


_SIGNS = _Signs()


def _sign(character: str) -> str:
    code = ord(character)
    if 0x20 <= code < 0x7F:
        return character
    at = bisect_right(_STARTS, code) - 1
    return _code(character) if code <= _UNSEEN[at][1] else character


def _code(character: str) -> str:
    return f"<U+{ord(character):04X}>"


def _octal(byte: int) -> str:
    sign = chr(byte)
    return sign if sign in _PLAIN_IN_SHELLS else f"\\{byte:03o}"


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
    total = 0
    for item in _items(value):
        match item:
            case dict() | list() | tuple():
                pass
            case str() as text:
                total += len(text)
            case int() | float() as number:
                total += len(_number(number))
            case _:
                total += 4
    return total


def minute(at: str) -> str:
    """Return an ISO time as people read it, to the minute; anything else is returned as it is, on one line."""
    try:
        return datetime.fromisoformat(at).astimezone(UTC).strftime(MINUTE)
    except ValueError:
        return one_line(at, 40)
