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
    from sandbox.guest.files.refused import Refused  # noqa: PLC0415 - found through the packages made above

    try:
        return {"ok": _done(asked["tool"], asked["arguments"], show=asked["show"])}
    except Refused as refused:
        return {"error": str(refused)}
    except OSError as error:
        named = asked["arguments"].get("path") or asked["arguments"].get("source") or ""
        return {"error": f"{named[:200]}: {error.strerror or type(error).__name__}"}
    except (MemoryError, RecursionError) as error:
        return {"error": f"it is too large for the file tools ({type(error).__name__})"}


def _done(tool: str, arguments: dict[str, Any], *, show: bool) -> dict[str, Any]:
    from sandbox.guest.files import reading, writing  # noqa: PLC0415 - the same

    readers: dict[str, Callable[..., dict[str, Any]]] = {
        "read_file": reading.read_file,
        "list_directory": reading.list_directory,
        "search": reading.search,
    }
    writers: dict[str, Callable[..., writing.Change]] = {
        "write_file": writing.write_file,
        "edit_file": writing.edit_file,
        "move": writing.move,
        "delete": writing.delete,
    }
    if tool in readers:
        return readers[tool](**arguments)
    change = writers[tool](**arguments)
    return {"diff": change.diff()} if show else change.do()


def _read(size: int) -> bytes:
    data = bytearray()
    while len(data) < size and (came := os.read(0, size - len(data))):
        data += came
    return bytes(data)


if __name__ == "__main__":
    main()
