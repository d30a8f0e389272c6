"""Do one thing with files: the request comes as one frame on fd 0, the answer goes as one frame to fd 1."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

HERE = __file__.rpartition("/")[0]
_PREFIX = 4


def main() -> None:
    """Serve one request."""
    for name in ("sandbox", "sandbox.guest", "sandbox.guest.files"):
        package = type(sys)(name)
        package.__path__ = [HERE] if name.endswith(".files") else []
        sys.modules[name] = package
    os.umask(0o022)
    size = int.from_bytes(_read(_PREFIX), "big")
    text = json.dumps(_answered(json.loads(_read(size))), ensure_ascii=True).encode()
    left = memoryview(len(text).to_bytes(_PREFIX, "big") + text)
    while left:
        left = left[os.write(1, left) :]


def _answered(asked: dict[str, Any]) -> dict[str, Any]:
    from sandbox.guest.files import reading, writing  # noqa: PLC0415 - found through the packages made above
    from sandbox.guest.files.places import FileToolRefused  # noqa: PLC0415 - the same

    looking = (reading.read_file, reading.list_directory, reading.search, reading.measure)
    readers: dict[str, Callable[..., dict[str, Any]]] = {tool.__name__: tool for tool in looking}
    changes = (writing.write_file, writing.edit_file, writing.move, writing.delete)
    writers: dict[str, Callable[..., writing.Change]] = {tool.__name__: tool for tool in changes}
    tool, arguments = asked["tool"], asked["arguments"]
    try:
        if tool in readers:
            return {"ok": readers[tool](**arguments)}
        change = writers[tool](**arguments)
        return {"ok": {"diff": change.shown()} if asked["show"] else change.do()}
    except FileToolRefused as refused:
        return {"error": str(refused)}
    except OSError as error:
        named = arguments.get("path") or arguments.get("source") or ""
        return {"error": f"{named[:200]}: {error.strerror or type(error).__name__}"}
    except (MemoryError, RecursionError) as error:
        return {"error": f"it is too large for the file tools ({type(error).__name__})"}


def _read(size: int) -> bytes:
    data = bytearray()
    while len(data) < size and (came := os.read(0, size - len(data))):
        data += came
    return bytes(data)


if __name__ == "__main__":
    main()
