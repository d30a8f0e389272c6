"""Open what lies in a hostile tree, never following a link, never waiting, never touching a device."""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from backstay.errors import SnapshotRefused, WorkspaceChanging
from backstay.shown import one_line

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
HANDLE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
"""Stands for something without opening it, so that it needs no right to it."""
OWNER_ALL = 0o700

# The errors of an open, a stat or a readlink when something else is there than a moment ago.
_MOVED = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.EINVAL, errno.ENXIO, errno.ENODEV, errno.ESTALE}
_CHUNK = 1 << 20
_BLOCK = 4096
_HOLE = bytes(_BLOCK)
_SYNCS_AT_ONCE = 16
Item = TypeVar("Item")


def shown(path: str) -> str:
    """Return a path as people may see it."""
    return one_line(path, 300)


@contextmanager
def steady(path: str) -> Generator[None]:
    """Turn the errors that a moving tree causes into WorkspaceChanging."""
    try:
        yield
    except OSError as error:
        if error.errno not in _MOVED:
            raise
        raise WorkspaceChanging(
            f"{shown(path)} is being changed while it is read; end what writes to the workspace and try again"
        ) from error


@contextmanager
def opened_root(root: Path, *, unlocking: bool) -> Generator[int]:
    """Open the directory of a workspace. Raises SnapshotRefused when it is none, or is a link."""
    try:
        try:
            opened = os.open(root, DIRECTORY)
        except PermissionError:
            if not unlocking:
                raise
            unlock(os.fspath(root), None)
            opened = os.open(root, DIRECTORY)
    except OSError as error:
        raise SnapshotRefused(
            f"workspace {shown(str(root))}: {error.strerror}; name a directory that this user can open, not a link"
        ) from error
    try:
        yield opened
    finally:
        os.close(opened)


def unlock(name: str, parent: int | None) -> int:
    """Give the owner of a directory all rights to it and return the mode it had."""
    handle = os.open(name, HANDLE | os.O_DIRECTORY, dir_fd=parent)
    try:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        change_mode(handle, mode | OWNER_ALL)
    finally:
        os.close(handle)
    return mode


def change_mode(opened: int, mode: int) -> None:
    """Set the mode of what a descriptor stands for, also when it may not be read."""
    Path(f"/proc/self/fd/{opened}").chmod(mode)


def chunks(opened: int, size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes of a file."""
    left = size
    while left > 0:
        data = os.read(opened, min(left, _CHUNK))
        if not data:
            return
        left -= len(data)
        yield data


def write_sparse(into: int, data: Iterable[bytes]) -> None:
    """Write a new file without its blocks of zeros: the holes of a sparse file take no space in a copy either."""
    size = end = 0
    for part in data:
        view = memoryview(part)
        for hole, blocks in groupby(range(0, len(part), _BLOCK), key=partial(part.startswith, _HOLE)):
            starts = list(blocks)
            at, until = starts[0], min(starts[-1] + _BLOCK, len(part))
            while not hole and at < until:
                at += os.pwrite(into, view[at:until], size + at)
                end = size + at
        size += len(part)
    if end < size:
        os.ftruncate(into, size)


def at_once(work: Callable[[Item], None], items: Collection[Item]) -> None:
    """Do the same to many files at a time: a journal commits what waits for the disk together."""
    with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:
        list(pool.map(work, items))


def names_in(folder: int) -> list[str]:
    """List an open directory."""
    with os.scandir(folder) as found:
        return [entry.name for entry in found]


def empty(folder: int) -> None:
    """Remove everything in a directory, however deep it goes, with two descriptors.

    Directories are moved up beside their parents before they are looked into, so no path gets long.
    """
    while names := names_in(folder):
        for name in names:
            if _unlinked(name, folder):
                continue
            unlock(name, folder)
            inside = os.open(name, DIRECTORY, dir_fd=folder)
            try:
                for child in names_in(inside):
                    if not _unlinked(child, inside):
                        unlock(child, inside)
                        os.rename(child, f"moved-{secrets.token_hex(8)}", src_dir_fd=inside, dst_dir_fd=folder)
            finally:
                os.close(inside)
            os.rmdir(name, dir_fd=folder)


def _unlinked(name: str, folder: int) -> bool:
    with suppress(IsADirectoryError):
        os.unlink(name, dir_fd=folder)
        return True
    return False
