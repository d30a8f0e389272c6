"""Tell whether the files of a folder have changed."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

_CHUNK = 1024 * 1024
_NEVER = ("__pycache__",)
_CODE = (".py", ".pyc", ".so")
"""What Python imports from a folder; what lies in `__pycache__` is never loaded."""


def is_plugin(folder: Path) -> bool:
    """Return whether a folder is that of a plugin: it holds a cli.py."""
    try:
        return (folder / "cli.py").is_file()
    except OSError:
        return False  # a folder of another user leaves the others alone


def outermost(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that lie in no other one of them, sorted."""
    found: list[Path] = []
    for path in sorted(set(paths)):
        if not any(path.is_relative_to(other) for other in found):
            found.append(path)
    return found


def code_hash(folder: Path) -> str:
    """Return a hash of the Python modules of a folder; other files that programs write beside them do not count."""
    return _hash_of(folder, _code_of(folder))


def code_state(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return a value that changes whenever one of the Python modules of a folder is written; nothing is read."""
    return tuple((str(path.relative_to(folder)), *_seen(path)) for path in _code_of(folder))


def folder_hash(folder: Path, leave_out: Sequence[str] = ()) -> str:
    """Return a hash of all files of a folder but those that match a glob, by name or by path within the folder."""
    kept = [path for path in _files(folder) if not _is_left_out(path.relative_to(folder), leave_out)]
    return _hash_of(folder, kept)


def _is_left_out(path: Path, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(path.as_posix(), glob) or fnmatchcase(path.name, glob) for glob in globs)


def _files(folder: Path, only: tuple[str, ...] = ("",)) -> Iterator[Path]:
    """Yield the files whose names end in one of these."""
    for place, folders, names in os.walk(folder):
        # Those that are links to folders are told apart by where they lead.
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in _NEVER and name not in links)
        yield from (Path(place) / name for name in sorted([*names, *links]) if name.endswith(only))


def _code_of(folder: Path) -> list[Path]:
    return sorted(_files(folder, only=_CODE))


def _seen(path: Path) -> tuple[int, int]:
    """Return the size of a file and when it was written; zeros for what is not a file, or is being removed."""
    try:
        seen = path.stat()
    except OSError:
        return 0, 0
    return (seen.st_size, seen.st_mtime_ns) if stat.S_ISREG(seen.st_mode) else (0, 0)


def _hash_of(folder: Path, paths: Sequence[Path]) -> str:
    found = hashlib.sha256()
    for path in sorted(paths):
        name = os.fsencode(path.relative_to(folder))
        found.update(b"%d:%s" % (len(name), name))
        found.update(_content_of(path))
    return found.hexdigest()


def _content_of(path: Path) -> bytes:
    """Return a digest of what a file holds and where a link leads; other or unreadable entries are named so."""
    found = hashlib.sha256(os.fsencode(path.readlink()) if path.is_symlink() else b"")
    try:
        if not path.is_file():
            return b"no file" + found.digest()
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
    except OSError as error:
        return f"unreadable {error.errno}".encode() + found.digest()
    return found.digest()
