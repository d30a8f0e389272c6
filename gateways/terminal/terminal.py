"""Write text for people to stderr and results to stdout, and read what a person types."""

import asyncio
import contextlib
import json
import os
import select
import shutil
import sys
import termios
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from backstay.shown import counted, one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_LINE = 10_000_000
"""Longer than any argument: what is clipped, and counted, is so before it comes here."""
_GOES_ON = "┆"
_DEEPEST = 20
"""How far in that mark is at most."""
_CUT_AT = 4095
"""Linux cuts a line that is typed at a terminal after that many bytes, and says nothing."""
_PASTE_S = 0.05
"""How long the rest of a paste takes to come."""
LINK = "underline"
"""The style of an address of our own making, which stays in one piece so that it can be followed."""


class Terminal:
    """Print text so that hostile text cannot act: one line each, nothing invisible, no markup."""

    has_asked: ClassVar[bool] = False
    """Whether a person was asked anything in this process."""

    def __init__(self) -> None:
        """Use the streams of this process."""
        self._typed = b""

    @cached_property
    def console(self) -> "Console":
        """Return what prints for people; a command that only prints a result loads none."""
        from rich.console import Console

        return Console(stderr=True, highlight=False, markup=False, emoji=False)

    @property
    def interactive(self) -> bool:
        """Return whether a person can be asked."""
        return sys.stdin.isatty() and self.console.is_terminal

    def ring(self) -> None:
        """Let the terminal ring, for a person who looks elsewhere."""
        if self.interactive:
            sys.stderr.write("\a")
            sys.stderr.flush()

    def say(self, text: str = "", style: str = "") -> None:
        """Print one line for people."""
        self.console.print(safe(text, style), soft_wrap=True)

    def show(self, lines: Iterable[tuple[str, str]]) -> None:
        """Print lines with their styles; a line wider than the terminal goes on behind a mark of its own.

        A terminal would let it go on at the margin, where it could pass for a line of its own.
        """
        from rich.text import Text

        width = self.console.width if self.console.is_terminal else None
        for line, style in lines:
            for part in _wrapped(one_line(line, _LINE), None if style == LINK else width):
                self.console.print(Text(part, style=style), soft_wrap=True)

    def wrapped(self, line: str) -> list[str]:
        """Return a line of a result as lines that fit the terminal, if it is shown on one; see `show`."""
        return _wrapped(one_line(line, _LINE), shutil.get_terminal_size().columns if sys.stdout.isatty() else None)

    def result(self, text: str) -> None:
        """Print a result, line by line."""
        for line in text.splitlines():
            sys.stdout.write(f"{one_line(line, _LINE)}\n")
        sys.stdout.flush()

    def results(self, output: Literal["text", "json", "ndjson"], data: Any, lines: Iterable[str]) -> None:
        """Print a result as JSON, as one JSON object per line, or as lines."""
        if output == "json":
            self.result_json(data)
        elif output == "ndjson":
            for item in data if isinstance(data, list) else [data]:
                sys.stdout.write(f"{json.dumps(item)}\n")
            sys.stdout.flush()
        else:
            for line in lines:
                self.result(line)

    def result_json(self, data: Any) -> None:
        """Print a result as JSON; other characters than ASCII are escaped."""
        sys.stdout.write(f"{json.dumps(data, indent=2)}\n")
        sys.stdout.flush()

    async def ask(self, question: str, before: Iterable[tuple[str, str]] = ()) -> str | None:
        """Return the line a person types; None when the input has ended.

        At a terminal nobody answers before the question is there: keys typed until then are dropped, and so are the
        lines that are pasted behind the answer. A line that the terminal has cut is asked for again. `before` are lines
        that belong to the question, such as why the last answer was not taken, with their styles.
        """
        Terminal.has_asked, notes = True, list(before)
        while True:
            self.forget_typed()
            for line, style in notes:
                self.say(line, style)
            self.console.print(safe(f"{question} ", "bold"), end="", soft_wrap=True)
            typed = await self._line()
            if typed is None or len(typed) < _CUT_AT or not sys.stdin.isatty():
                break
            much = f"not taken: a terminal cuts a line of {_CUT_AT:,} bytes or more"
            notes = [(f"{much}; type less, or give it to a command such as `backstay answer` with --answer", "yellow")]
        if more := await _left_lines():
            self.say(f"dropped, since an answer is one line: {counted(more, 'more line')}", "yellow")
        return None if typed is None else typed.decode("utf-8", "replace").strip()

    async def _line(self) -> bytes | None:
        while b"\n" not in self._typed:
            chunk = await _typed()
            if not chunk:
                return None
            self._typed += chunk
        line, _, self._typed = self._typed.partition(b"\n")
        return line

    def forget_typed(self) -> None:
        """Drop what was typed before now, at a terminal; the lines of a pipe wait for their turn."""
        if not sys.stdin.isatty():
            return
        self._typed = b""
        with contextlib.suppress(termios.error, OSError):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def leave() -> None:
    """Drop what was typed at a terminal where a person was asked: the shell would run the rest of a paste."""
    if Terminal.has_asked:
        Terminal().forget_typed()


def safe(text: str, style: str = "") -> "Text":
    """Return text that a terminal shows literally, as one line."""
    from rich.text import Text

    return Text(one_line(text, _LINE), style=style)


def _wrapped(line: str, width: int | None) -> list[str]:
    """Return a line in parts that fit, cut at spaces where a part has one in its second half."""
    if width is None:
        return [line]
    depth = min(len(line) - len(line.lstrip(" ")), _DEEPEST, width // 2)
    go_on = f"{' ' * depth}{_GOES_ON} "
    parts, head, at = list[str](), "", 0
    while True:
        piece = _fitting(line, at, max(width - len(head), 1))
        parts.append(f"{head}{piece}")
        head, at = go_on, at + len(piece)
        if at >= len(line):
            return parts


def _fitting(text: str, at: int, width: int) -> str:
    """Return what fits of a string from a place on, to its last space where words would be cut.

    It is a character at least, even where that alone does not fit.
    """
    from rich.cells import chop_cells

    # Only that much is looked at, or a long line would be measured again for each of its parts.
    near = text[at : at + 4 * width + 16]
    first = next(filter(None, chop_cells(near, width)), near)
    end = first.rfind(" ") + 1
    cuts = len(first) < len(text) - at and text[at + len(first)] != " "
    return first[:end] if cuts and end > len(first) // 2 else first


async def _left_lines() -> int:
    """Take the lines that were pasted at a terminal behind an answer; return how many."""
    if not sys.stdin.isatty():
        return 0
    await asyncio.sleep(_PASTE_S)
    lines, descriptor = 0, sys.stdin.fileno()
    with contextlib.suppress(OSError):
        while select.select([descriptor], [], [], 0)[0] and os.read(descriptor, 64 * 1024):
            lines += 1
    return lines


async def _typed() -> bytes:
    """Wait for input without a thread, which nothing could interrupt."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    descriptor = sys.stdin.fileno()
    loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, 64 * 1024)
