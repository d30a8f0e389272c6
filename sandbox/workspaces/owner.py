"""Set the owner of a workspace: jails run as a user that owns what they write, and never as root."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from backstay.errors import WorkspaceInvalid
from sandbox.isolation.profile import outside_uid
from sandbox.isolation.way import can_open_ways


def owner_of(root: Path) -> int:
    """Return the user id, on the host, that jails of this workspace run as.

    It is the worker's own, unless the worker is root; then it is a user without rights.
    """
    if os.geteuid() != 0:
        return os.geteuid()
    return root.stat().st_uid or outside_uid()


def prepare(root: Path) -> int:
    """Give everything in the workspace that belongs to root to the jail's user, and return that user.

    A file with several hard links keeps its owner, because one of them may be elsewhere. Raises WorkspaceInvalid when
    that user cannot reach the folder.
    """
    uid = owner_of(root)
    if os.geteuid() == 0:
        for path, facts in [(root, root.lstat()), *_inside(root)]:
            if facts.st_uid == 0 and (stat.S_ISDIR(facts.st_mode) or facts.st_nlink == 1):
                with suppress(OSError):
                    os.lchown(path, uid, uid if facts.st_gid == 0 else -1)
        _require_way(root, uid)
    elif not os.access(root, os.R_OK | os.X_OK):
        raise WorkspaceInvalid(f"the worker may not read {root}; let user {uid} read and enter it")
    return uid


def _inside(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield everything below a folder. Paths too deep to open were made by a jail, so its user owns them already."""
    waiting = [str(root)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    facts = entry.stat(follow_symlinks=False)
                    yield entry.path, facts
                    if stat.S_ISDIR(facts.st_mode):
                        waiting.append(entry.path)
        except OSError:
            continue


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
