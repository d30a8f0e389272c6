"""Find files beneath the workspace: one name after the other, and never through a symbolic link."""

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager

ROOT = "/workspace"
MOST_DEPTH = 100
"""Folders deeper than this are counted and not entered."""
MOST_FOUND = 200_000
_LONGEST_NAME = 255
_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Parts = tuple[str, ...]
"""The names on the way from the workspace to a file or folder; without any, the workspace itself."""


class FileToolRefused(Exception):
    """The file tool does not do this; the text says why, in one line."""


class NoSuchFolder(FileToolRefused):
    """A folder on the way does not exist."""


def parts_of(path: str) -> Parts:
    """Return the names on the way to a file; a path is relative to the workspace, or begins with it.

    Raises Refused for a path that could lead elsewhere.
    """
    if "\0" in path:
        raise FileToolRefused("a path holds no NUL")
    inside = path
    if path.startswith("/"):
        if path != ROOT and not path.startswith(f"{ROOT}/"):
            raise FileToolRefused(f"{clip(path)}: only paths beneath {ROOT} can be reached; write them relative to it")
        inside = path[len(ROOT) :]
    names = tuple(name for name in inside.split("/") if name not in ("", "."))
    if ".." in names:
        raise FileToolRefused(f"{clip(path)}: '..' is not followed; write the path without it")
    if any(len(os.fsencode(name)) > _LONGEST_NAME for name in names):
        raise FileToolRefused(f"a name on the way is longer than {_LONGEST_NAME} bytes")
    return names


def shown(name: str) -> str:
    """Return a name as text; bytes that are no UTF-8 are written out."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def shown_path(parts: Parts) -> str:
    """Return the path as it is shown."""
    return shown("/".join(parts)) or "."


def clip(text: str) -> str:
    """Return the beginning of a string, as one line."""
    line = " ".join(shown(text[:200]).split())
    return line if len(line) <= 120 else line[:117] + "..."


def kind_of(facts: os.stat_result) -> str:
    """Return what kind of file it is."""
    return _KINDS.get(stat.S_IFMT(facts.st_mode), "unknown")


@contextmanager
def folder(parts: Parts, *, make: bool = False) -> Generator[int]:
    """Open the folder at the end of the way; folders that are missing are made when asked for.

    Raises Refused when a name on the way is not a folder.
    """
    fd = os.open(ROOT, _FOLDER)
    try:
        for number, name in enumerate(parts, 1):
            if make:
                _make(name, fd)
            try:
                inner = os.open(name, _FOLDER, dir_fd=fd)
            except NotADirectoryError:
                raise FileToolRefused(_no_folder(name, fd, parts[:number])) from None
            except FileNotFoundError:
                raise NoSuchFolder(f"{shown_path(parts[:number])}: there is no such folder") from None
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


@contextmanager
def parent(parts: Parts, *, make: bool = False) -> Generator[tuple[int, str]]:
    """Open the folder that holds a file; yield it with the name of the file.

    Raises Refused for the workspace itself, which nothing here holds.
    """
    if not parts:
        raise FileToolRefused("the workspace itself is not a file that can be written, moved or deleted")
    with folder(parts[:-1], make=make) as fd:
        yield fd, parts[-1]


def look(fd: int, name: str) -> os.stat_result | None:
    """Return the status of a name in a folder, or None; a symbolic link is not followed."""
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def demand_file(fd: int, name: str, parts: Parts) -> os.stat_result:
    """Return the status of a plain file.

    Raises Refused when there is none, or something else, which is not even opened.
    """
    facts = look(fd, name)
    if facts is None:
        raise FileToolRefused(f"{shown_path(parts)}: there is no such file")
    if not stat.S_ISREG(facts.st_mode):
        where = f" to {clip(os.readlink(name, dir_fd=fd))}" if stat.S_ISLNK(facts.st_mode) else ""
        raise FileToolRefused(f"{shown_path(parts)} is a {kind_of(facts)}{where}, and no plain file")
    return facts


def open_file(fd: int, name: str) -> int:
    """Open a plain file to read it; if something else has taken its place, it neither blocks nor is followed."""
    opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise FileToolRefused(f"{shown(name)} is not a plain file any more")
    return opened


def walk(parts: Parts, skipped: list[str]) -> Iterator[tuple[Parts, os.stat_result]]:
    """Yield everything beneath a folder, in no order; folders that cannot be entered are added to `skipped`."""
    waiting = [parts]
    found = 0
    while waiting:
        here = waiting.pop()
        try:
            for name, facts in _entries(here):
                found += 1
                if found > MOST_FOUND:
                    raise FileToolRefused(f"there are more than {MOST_FOUND} files; name a smaller folder")
                yield (*here, name), facts
                if stat.S_ISDIR(facts.st_mode) and len(here) - len(parts) < MOST_DEPTH:
                    waiting.append((*here, name))
                elif stat.S_ISDIR(facts.st_mode):
                    skipped.append(shown_path((*here, name)))
        except OSError:
            skipped.append(shown_path(here))


def _entries(parts: Parts) -> list[tuple[str, os.stat_result]]:
    with folder(parts) as fd:
        reading = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
        try:
            found = ((name, look(reading, name)) for name in os.listdir(reading))  # noqa: PTH208 - of an open folder
            return [(name, facts) for name, facts in found if facts is not None]
        finally:
            os.close(reading)


def _make(name: str, fd: int) -> None:
    try:
        os.mkdir(name, 0o777, dir_fd=fd)
    except FileExistsError:
        return


def _no_folder(name: str, fd: int, parts: Parts) -> str:
    facts = look(fd, name)
    what = "gone" if facts is None else f"a {kind_of(facts)}"
    more = "; symbolic links are not followed" if facts is not None and stat.S_ISLNK(facts.st_mode) else ""
    return f"{shown_path(parts)} is {what} and no folder{more}"
