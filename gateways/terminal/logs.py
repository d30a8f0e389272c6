"""The command `logs`: read what `backstay dev` and its parts have logged, line by line."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from backstay.errors import TaskInvalid
from backstay.settings import Settings
from gateways.terminal.exit_codes import DONE
from gateways.terminal.terminal import Terminal

Part = Literal["worker", "sandbox", "page", "temporal"]
_TICK_S = 0.5
_BLOCK = 64 * 1024
_FIRST = ("timestamp", "level", "event", "name", "text")
"""What a line of a log begins with, in this order; the rest follows as it is named there."""
_LEFT_OUT = frozenset({"logger", "n", "at", "mcp_name"})


async def logs(
    part: Annotated[Part, Parameter(help="Whose log.")] = "worker",
    /,
    *,
    lines: Annotated[int, Parameter(help="How many of the last lines to show first.")] = 50,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], help="Go on with new lines until Ctrl-C.")] = False,
    raw: Annotated[bool, Parameter(help="Print lines as they are in the file, which is mostly JSON.")] = False,
) -> int:
    """Show the log of a part of `backstay dev`; with --follow, go on with new lines as they come."""
    if lines < 0:
        raise TaskInvalid("--lines: must be 0 or more")
    terminal, file = Terminal(), Settings.load().home / "logs" / f"{part}.log"
    if not file.exists():
        raise TaskInvalid(f"{file}: there is no such log; `backstay dev`, started in this folder, writes it")

    log = LogFile(file)
    for line in log.last(lines):
        terminal.result(line if raw else told(line))
    while follow:
        await asyncio.sleep(_TICK_S)
        for line in log.new():
            terminal.result(line if raw else told(line))
    return DONE


class LogFile:
    """Read the end of a log, and then what is added to it, also when a new file takes its place."""

    def __init__(self, file: Path) -> None:
        """Open the log."""
        self._file = file
        self._stream = file.open("rb")
        self._rest = b""

    def last(self, count: int) -> list[str]:
        """Return its last lines; only the end of the file is read."""
        end, found = self._stream.seek(0, 2), b""
        while end > 0 and found.count(b"\n") <= count:
            begin = max(end - _BLOCK, 0)
            self._stream.seek(begin)
            found = self._stream.read(end - begin) + found
            end = begin
        self._stream.seek(0, 2)
        *whole, self._rest = found.split(b"\n")
        return [_text(line) for line in whole[max(len(whole) - count, 0) :]]

    def new(self) -> Iterator[str]:
        """Yield the lines that were added since the last look."""
        *whole, self._rest = (self._rest + self._stream.read()).split(b"\n")
        yield from map(_text, whole)
        if self._is_replaced():
            self._stream.close()
            self._stream, self._rest = self._file.open("rb"), b""

    def _is_replaced(self) -> bool:
        try:
            now = self._file.stat()
        except FileNotFoundError:
            return False
        before = os.fstat(self._stream.fileno())
        return (now.st_dev, now.st_ino) != (before.st_dev, before.st_ino) or now.st_size < self._stream.tell()


def told(line: str) -> str:
    """Return a line of a log for people: when, how bad, what happened, and then what belongs to it."""
    try:
        said: Any = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(said, dict):
        return line
    nested = {name for name, value in said.items() if isinstance(value, dict | list)}
    first = [str(said[name]) for name in _FIRST if name not in nested and said.get(name) not in (None, "")]
    rest = [
        f"{name}={_short(value)}"
        for name, value in said.items()
        if name not in _LEFT_OUT and (name not in _FIRST or name in nested)
    ]
    return "  ".join([*first, " ".join(rest)]).rstrip()


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")
