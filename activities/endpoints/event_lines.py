"""Read the lines of a streamed body, in whichever of the legal ways they are ended and the data of an event parted."""

import re
from codecs import BOM_UTF8
from collections.abc import AsyncIterator

from activities.endpoints.client import ANSWER_BYTES, BodyRefused

MOST_LINES = 1_000_000
_ENDS = re.compile(rb"\r?\n|\r(?=[^\n])")
"""What ends a line; a carriage return with nothing behind it may be half of an end."""
_DATA = b"data:"
_GOES_ON = (b"{", b"[", b",", b":")
"""With these no JSON ends, so that the next line of data belongs to the same event."""


async def lines_of(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines of a body that are not empty, and the data of an event that has several lines as one.

    A body that begins as JSON is a single line.
    """
    held = bytearray()
    async for line in _each_line(parts):
        if held and line.startswith(_DATA):
            held += line.removeprefix(_DATA)
            _require_bounded(held)
            continue
        if held:
            yield bytes(held)
            held.clear()
        if line.startswith(_DATA) and line.removeprefix(_DATA).rstrip().endswith(_GOES_ON):
            held += line
        elif line:
            yield line
    if held:
        yield bytes(held)


async def _each_line(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    waiting, is_json, is_first, left = b"", False, True, MOST_LINES
    async for part in parts:
        if not is_json and waiting.endswith(b"\r"):
            waiting, part = waiting[:-1], b"\r" + part  # noqa: PLW2901  # the end of a line may be in two parts
        if not is_json and _ENDS.search(part) is not None:
            *lines, part = _ENDS.split(part)  # noqa: PLW2901  # what is left of it
            lines[0] = waiting + lines[0]
            if is_first:
                lines[0] = lines[0].removeprefix(BOM_UTF8)
            waiting = b""
            is_json = is_first and _begins_json(lines)
            is_first = is_first and not any(map(bytes.strip, lines))
            if is_json:
                waiting = b"\n".join([*lines, b""])
            else:
                left -= len(lines)
                if left < 0:
                    raise BodyRefused(f"it answers with more than {MOST_LINES} lines")
                for line in lines:
                    yield line
        waiting += part
        _require_bounded(waiting)
    yield waiting.removeprefix(BOM_UTF8) if is_first else waiting


def _require_bounded(body: bytes | bytearray) -> None:
    if len(body) > ANSWER_BYTES:
        raise BodyRefused(f"it answers with more than {ANSWER_BYTES} bytes")


def _begins_json(lines: list[bytes]) -> bool:
    return next((line.lstrip() for line in lines if line.strip()), b"").startswith(b"{")
