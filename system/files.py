"""Files that appear whole or not at all, and that outlast a power failure."""

import json
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags that create a file, and never open one that exists."""


def write_whole(
    path: Path, data: bytes, *, durable: bool = True, mode: int = 0o600, unfinished_in: Path | None = None
) -> None:
    """Put the bytes in place of what the file holds; readers see the old file or the new one.

    With `durable` it is on the disk when this returns. The unfinished file lies beside the path, or in another folder
    of the same file system.
    """
    unfinished = (unfinished_in or path.parent) / f".{path.name}-{secrets.token_hex(8)}"
    try:
        with os.fdopen(os.open(unfinished, NEW_FILE, mode), "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    if durable:
        sync(path.parent)


def read_json(path: Path) -> Any | None:
    """Return the JSON value of a file, or None when there is no file."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None


def remove_durably(path: Path) -> None:
    """Remove a file if it exists, and wait until that is on the disk."""
    with suppress(FileNotFoundError):
        path.unlink()
        sync(path.parent)


def sync(path: str | Path) -> None:
    """Wait until a file or directory is on the disk."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def database_files(file: Path) -> list[Path]:
    """Return where the files of a SQLite database are that belong to it, itself first; they need not be there."""
    return [file, *(file.with_name(f"{file.name}{end}") for end in ("-wal", "-shm", "-journal", ".lock"))]


def close_to_others(path: Path, mode: int = 0o700) -> bool:
    """Take from a file or folder of this user the rights that the mode does not allow.

    Return whether other users could read or write it until now.

    A file that somebody has opened to a group on purpose, by letting it write, stays open to that group.
    """
    try:
        facts = path.lstat()
        shared = 0o060 if facts.st_mode & 0o020 else 0
        kept = stat.S_IMODE(facts.st_mode) & (mode | shared)
        if stat.S_ISLNK(facts.st_mode) or facts.st_uid != os.geteuid() or kept == stat.S_IMODE(facts.st_mode):
            return False
        path.chmod(kept)
        return bool(facts.st_mode & ~kept & 0o066)
    except OSError:
        # It is gone, or lies where rights cannot be changed; the code that opens it says what is wrong.
        return False


def make_private_directory(directory: Path) -> None:
    """Create a directory, and the missing ones above it, for this user only; leave existing ones as they are."""
    if not directory.is_dir():
        make_private_directory(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)
