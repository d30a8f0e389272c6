"""Small files that are there whole or not at all, also after the machine was switched off."""

import fcntl
import json
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


def write_durably(place: Path, value: Any) -> None:
    """Put a JSON value in place of what is in the file."""
    beside = place.with_name(f".{place.name}-{secrets.token_hex(4)}")
    with beside.open("w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    beside.rename(place)
    _settle(place.parent)


def read_json(place: Path) -> Any | None:
    """Return the JSON value of a file, or None when there is none."""
    try:
        return json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def remove_durably(place: Path) -> None:
    """Remove a file, if it is there."""
    with suppress(FileNotFoundError):
        place.unlink()
        _settle(place.parent)


@contextmanager
def held(place: Path, *, wait: bool = True) -> Generator[bool]:
    """Hold the lock of a file while the block runs, and say whether it is held; it ends with the process."""
    with place.open("a", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def _settle(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
