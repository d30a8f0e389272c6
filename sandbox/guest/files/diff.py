"""Say how a file would change, for a person to read."""

import difflib

_MOST_BYTES = 1 << 20
_MOST_LINES = 6000
_MOST_SHOWN = 20_000


def difference(before: bytes | None, after: bytes | None, path: str) -> str:
    """Return a unified diff; a file that is missing on one side is /dev/null there."""
    old, new = _lines(before), _lines(after)
    sizes = f"{_size(before)} -> {_size(after)}"
    if old is None or new is None:
        return f"binary file {path}: {sizes}\n"
    if len(before or b"") + len(after or b"") > _MOST_BYTES or len(old) + len(new) > _MOST_LINES:
        return f"{path}: {sizes}; too large for a diff\n"
    sides = (f"a/{path}" if before is not None else "/dev/null", f"b/{path}" if after is not None else "/dev/null")
    text = "".join(_ended(line) for line in difflib.unified_diff(old, new, *sides))
    if not text:
        return f"{path}: nothing changes\n" if before is not None else f"new empty file {path}\n"
    left = len(text) - _MOST_SHOWN
    return text if left <= 0 else f"{text[:_MOST_SHOWN]}\n... {left} more characters of this diff are left out\n"


def _lines(data: bytes | None) -> list[str] | None:
    if data is None:
        return []
    if b"\0" in data:
        return None
    try:
        return data.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        return None


def _size(data: bytes | None) -> str:
    return "nothing" if data is None else f"{len(data)} bytes"


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
