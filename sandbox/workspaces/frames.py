"""The pipes between a worker and the host of its workspaces: each frame is a length and JSON."""

import asyncio
import json
from typing import Any

_PREFIX = 4
MOST = 64 << 20


def framed(value: Any) -> bytes:
    """Return a value as one frame."""
    text = json.dumps(value).encode()
    return len(text).to_bytes(_PREFIX, "big") + text


async def read_frame(stream: asyncio.StreamReader) -> dict[str, Any] | None:
    """Return the next frame, or None at the end.

    Raises ValueError for what is no frame.
    """
    try:
        size = int.from_bytes(await stream.readexactly(_PREFIX), "big")
        if size > MOST:
            raise ValueError(f"a frame of {size} bytes is larger than {MOST}")
        value = json.loads(await stream.readexactly(size))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    if not isinstance(value, dict):
        raise ValueError("a frame is an object")  # noqa: TRY004 - it is data from a pipe
    return value
