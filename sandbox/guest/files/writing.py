"""Write, edit, move and delete; each change is described first, so that it can be shown before it is made."""

import base64
import binascii
import difflib
import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.guest.files.places import (
    FileToolRefused,
    NoSuchFolder,
    Parts,
    demand_file,
    kind_of,
    look,
    parent,
    parts_of,
    shown,
    shown_path,
    walk,
)
from sandbox.guest.files.reading import ENCODINGS, content_of, lines_of

MOST_EDITED = 16 << 20
_SHOWN_FILES = 50
_MOST_BYTES = 1 << 20
_MOST_LINES = 6000
_MOST_SHOWN = 20_000


def difference(before: bytes | None, after: bytes | None, path: str) -> str:
    """Return a unified diff; a file that is missing on one side is /dev/null there."""
    sizes = f"{_size(before)} -> {_size(after)}"
    # Before it is taken apart, which takes many times its size.
    if len(before or b"") + len(after or b"") > _MOST_BYTES:
        return f"{path}: {sizes}; too large for a diff\n"
    old, new = _lines(before), _lines(after)
    if old is None or new is None:
        return f"binary file {path}: {sizes}\n"
    if len(old) + len(new) > _MOST_LINES:
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
        return lines_of(data.decode())
    except UnicodeDecodeError:
        return None


def _size(data: bytes | None) -> str:
    return "nothing" if data is None else f"{len(data)} bytes"


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


@dataclass(frozen=True)
class Change:
    """Hold a change that has not been made: its diff, and the function that makes it.

    Refusals come before there is a change, so that the diff and the deed refuse the same.
    """

    diff: Callable[[], str]
    do: Callable[[], dict[str, Any]]

    def shown(self) -> str:
        """Return the diff, or why there is none: the change may be made all the same."""
        try:
            return self.diff()
        except (FileToolRefused, OSError, MemoryError, RecursionError) as error:
            return f"(no diff: {error or type(error).__name__})\n"


def write_file(path: str, content: str, encoding: str = "utf-8", *, overwrite: bool = True) -> Change:
    """Make a file, or replace what is in it; folders on the way are made."""
    parts, data = parts_of(path), _encoded(content, encoding)
    before = _content(parts)
    if before is not None and not overwrite:
        raise FileToolRefused(f"{shown_path(parts)}: it exists already; allow `overwrite`, or choose another name")
    return Change(lambda: difference(before, data, shown_path(parts)), lambda: _replace(parts, data))


def edit_file(path: str, old: str, new: str, count: int = 1) -> Change:
    """Replace a string by another, exactly as often as `count` says."""
    parts = parts_of(path)
    with parent(parts) as (fd, name):
        demand_file(fd, name, parts)
        before = content_of(fd, name, MOST_EDITED)
    wanted = old.encode()
    if not wanted:
        raise FileToolRefused("`old` is empty; use write_file to write a whole file")
    found = before.count(wanted)
    if found != count:
        raise FileToolRefused(f"{shown_path(parts)}: `old` occurs {found} times, not {count}; nothing was changed")
    after = before.replace(wanted, new.encode())
    return Change(
        lambda: difference(before, after, shown_path(parts)), lambda: _replace(parts, after) | {"replaced": found}
    )


def move(source: str, destination: str, *, overwrite: bool = False) -> Change:
    """Move a file or folder; folders on the way are made."""
    from_, to = parts_of(source), parts_of(destination)
    facts = _existing(from_)
    if to[: len(from_)] == from_:
        raise FileToolRefused(f"{shown_path(from_)} cannot be moved into itself")
    there = _facts(to)
    if there is not None and facts.st_nlink == 1 and os.path.samestat(facts, there):
        # Found under a name that differs in its case only, where that makes no difference: nothing is replaced.
        there = None
    folders = any(stat.S_ISDIR(each.st_mode) for each in (facts, there) if each is not None)
    if there is not None and (folders or not overwrite):
        raise FileToolRefused(f"{shown_path(to)}: there is a {kind_of(there)} already; choose another name")
    same = there is not None and os.path.samestat(facts, there)

    def do() -> dict[str, Any]:
        with parent(from_) as (fd, name), parent(to, make=True) as (other, target):
            if same:
                # The kernel leaves two names of one file as they are.
                os.unlink(name, dir_fd=fd)
            else:
                os.rename(name, target, src_dir_fd=fd, dst_dir_fd=other)
        return {"source": shown_path(from_), "destination": shown_path(to), "kind": kind_of(facts)}

    replaced = "" if there is None else f"replaces a file of {there.st_size} bytes\n"
    replaced = "both are names of one file\n" if same else replaced
    return Change(lambda: f"rename from {shown_path(from_)}\nrename to {shown_path(to)}\n{replaced}", do)


def delete(path: str, *, recursive: bool = False) -> Change:
    """Delete a file, a link, an empty folder, or a folder with all that is in it."""
    parts = parts_of(path)
    facts = _existing(parts)
    if stat.S_ISDIR(facts.st_mode):
        return _delete_folder(parts, recursive=recursive)

    def do() -> dict[str, Any]:
        with parent(parts) as (fd, name):
            os.unlink(name, dir_fd=fd)
        return {"path": shown_path(parts), "kind": kind_of(facts), "deleted": 1}

    return Change(lambda: _deleted(parts, facts), do)


def _delete_folder(parts: Parts, *, recursive: bool) -> Change:
    skipped: list[str] = []
    inside = sorted(names for names, _ in walk(parts, skipped))
    if inside and not recursive:
        raise FileToolRefused(
            f"{shown_path(parts)}: the folder is not empty; allow `recursive` to delete all that is in it"
        )

    def do() -> dict[str, Any]:
        with parent(parts) as (fd, name):
            return {"path": shown_path(parts), "kind": "directory", "deleted": _remove(fd, name)}

    lines = [f"- {shown_path(names)}" for names in inside[:_SHOWN_FILES]]
    more = [f"... and {len(inside) - _SHOWN_FILES} more"] if len(inside) > _SHOWN_FILES else []
    return Change(lambda: "\n".join([f"deleted folder {shown_path(parts)}", *lines, *more, ""]), do)


def _remove(fd: int, name: str) -> int:
    """Remove a whole folder and return how many names went; the working folder goes down and up, however deep."""
    os.fchdir(fd)
    os.chdir(name)
    files, folders = _emptied()
    removed, way, left = files, [name], [folders]
    while way:
        if left[-1]:
            way.append(left[-1].pop())
            os.chdir(way[-1])
            files, folders = _emptied()
            removed += files
            left.append(folders)
        else:
            left.pop()
            os.chdir("..")
            Path(way.pop()).rmdir()
            removed += 1
    return removed


def _emptied() -> tuple[int, list[str]]:
    """Remove what is not a folder from the working folder; return how many that were, and the folders."""
    names = os.listdir()  # noqa: PTH208 - of the folder that is worked in, whatever its path
    folders = [name for name in names if stat.S_ISDIR(os.lstat(name).st_mode)]
    for name in set(names) - set(folders):
        Path(name).unlink()
    return len(names) - len(folders), folders


def _deleted(parts: Parts, facts: os.stat_result) -> str:
    if not stat.S_ISREG(facts.st_mode):
        return f"deleted {kind_of(facts)} {shown_path(parts)}\n"
    try:
        return difference(_content(parts), None, shown_path(parts))
    except (FileToolRefused, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else "too large for a diff"
        return f"deleted file {shown_path(parts)}: {facts.st_size} bytes; {why}\n"


def _facts(parts: Parts) -> os.stat_result | None:
    """Return what is at a place; a way that does not exist yet leads to nothing."""
    try:
        with parent(parts) as (fd, name):
            return look(fd, name)
    except NoSuchFolder:
        return None


def _existing(parts: Parts) -> os.stat_result:
    with parent(parts) as (fd, name):
        facts = look(fd, name)
    if facts is None:
        raise FileToolRefused(f"{shown_path(parts)}: there is no such file")
    return facts


def _content(parts: Parts) -> bytes | None:
    """Return what is in a file that is to be replaced, or None when there is none."""
    if _facts(parts) is None:
        return None
    with parent(parts) as (fd, name):
        demand_file(fd, name, parts)
        return content_of(fd, name, MOST_EDITED)


def _encoded(content: str, encoding: str) -> bytes:
    if encoding not in ENCODINGS:
        raise FileToolRefused(f"{shown(encoding[:40])}: unknown encoding; there is: {', '.join(ENCODINGS)}")
    try:
        return base64.b64decode(content, validate=True) if encoding == "base64" else content.encode(encoding)
    except (binascii.Error, ValueError):
        raise FileToolRefused(f"the content cannot be written as {encoding}") from None


def _replace(parts: Parts, data: bytes) -> dict[str, Any]:
    """Write beside the file, then rename: nobody sees half of it, and other links to the old content keep that."""
    with parent(parts, make=True) as (fd, name):
        facts = look(fd, name)
        mode = 0o666 if facts is None else stat.S_IMODE(facts.st_mode) & 0o777
        beside = f".backstay-{secrets.token_hex(8)}"
        opened = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=fd)
        try:
            with os.fdopen(opened, "wb") as file:
                file.write(data)
                if facts is not None:
                    os.fchmod(file.fileno(), mode)
            os.rename(beside, name, src_dir_fd=fd, dst_dir_fd=fd)
        except BaseException:
            os.unlink(beside, dir_fd=fd)
            raise
    return {"path": shown_path(parts), "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
