"""Frames between processes: four bytes that tell a length, then that many bytes."""

import asyncio
import json
from typing import Any

PREFIX = 4


def framed(body: bytes) -> bytes:
    """Return the bytes as one frame."""
    return len(body).to_bytes(PREFIX, "big") + body


def announced_size(data: bytes | bytearray) -> int:
    """Return how long the body is that the first bytes of a frame announce."""
    return int.from_bytes(data[:PREFIX], "big")


def unframed(data: bytes, most: int) -> bytes:
    """Return the body of exactly one whole frame of at most `most` bytes. Raises ValueError for anything else."""
    if len(data) < PREFIX or announced_size(data) != len(data) - PREFIX or len(data) - PREFIX > most:
        raise ValueError("it is not one whole frame")
    return data[PREFIX:]


def json_frame(value: Any) -> bytes:
    """Return a JSON value as one frame."""
    return framed(json.dumps(value).encode())


async def read_json_frame(stream: asyncio.StreamReader, most: int) -> dict[str, Any] | None:
    """Return the JSON object of the next frame, or None when the stream has ended.

    Raises ValueError for anything else, and for a frame of more than `most` bytes.
    """
    try:
        size = announced_size(await stream.readexactly(PREFIX))
        if size > most:
            raise ValueError(f"a frame of {size} bytes is larger than {most}")
        value = json.loads(await stream.readexactly(size))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    if not isinstance(value, dict):
        raise ValueError("a frame is an object")  # noqa: TRY004 - it is data from a pipe
    return value
