"""Set the owner of a workspace: jails run as a user that owns what they write, and never as root."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from backstay.errors import WorkspaceInvalid
from sandbox.isolation.profile import outside_uid
from sandbox.isolation.way import can_open_ways
from sandbox.snapshots.files import DIRECTORY, HANDLE
from sandbox.snapshots.types import SnapshotLimits

_DEEPEST = 2 * SnapshotLimits().depth


def owner_of(root: Path) -> int:
    """Return the user id, on the host, that jails of this workspace run as.

    It is the worker's own, unless the worker is root; then it is a user without rights.
    """
    if os.geteuid() != 0:
        return os.geteuid()
    return root.stat().st_uid or outside_uid()


def prepare(root: Path) -> int:
    """Give everything in the workspace that belongs to root to the jail's user, and return that user.

    A file with several hard links keeps its owner, because one of them may be elsewhere. No link is followed, whoever
    puts one there meanwhile. Raises WorkspaceInvalid when that user cannot reach the folder.
    """
    uid = owner_of(root)
    if os.geteuid() == 0:
        with suppress(OSError):
            _give(os.open(root, HANDLE), uid)
        for folder, entries in _folders(root):
            for entry in entries:
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid == 0:
                        _give(os.open(entry.name, HANDLE, dir_fd=folder), uid)
        _require_way(root, uid)
    elif not os.access(root, os.R_OK | os.X_OK):
        raise WorkspaceInvalid(f"the worker may not read {root}; let user {uid} read and enter it")
    return uid


def _give(handle: int, uid: int) -> None:
    """Give away what an open handle stands for, and close the handle."""
    try:
        facts = os.fstat(handle)
        if facts.st_uid == 0 and (stat.S_ISDIR(facts.st_mode) or facts.st_nlink == 1):
            os.chown(f"/proc/self/fd/{handle}", uid, uid if facts.st_gid == 0 else -1)
    finally:
        os.close(handle)


def _folders(root: Path) -> Iterator[tuple[int, list[os.DirEntry[str]]]]:
    """Yield a folder and all below it, opened; folders that lie too deep for any call that writes are left out."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with suppress(OSError):
            opened = _opened(root, below)
            try:
                with os.scandir(opened) as found:
                    entries = list(found)
                yield opened, entries
                if below.count("/") < _DEEPEST:
                    waiting += [f"{below}{entry.name}/" for entry in entries if entry.is_dir(follow_symlinks=False)]
            finally:
                os.close(opened)


def _opened(root: Path, below: str) -> int:
    """Open a folder name by name."""
    opened = os.open(root, DIRECTORY)
    for name in below.split("/")[:-1]:
        try:
            inner = os.open(name, DIRECTORY, dir_fd=opened)
        finally:
            os.close(opened)
        opened = inner
    return opened


def _require_way(root: Path, uid: int) -> None:
    above = () if can_open_ways() else reversed(root.parents)
    for folder in (*above, root):
        facts = folder.stat()
        enters = 0o100 if facts.st_uid == uid else 0o001
        if not facts.st_mode & enters:
            raise WorkspaceInvalid(
                f"{folder} is closed to user id {uid}, which jails run as; chmod o+x {folder}, "
                "or keep workspaces elsewhere (BACKSTAY_WORKSPACES)"
            )
