"""Put a workspace back to what a snapshot says."""

import errno
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress

from backstay.errors import WorkspaceChanging
from sandbox.snapshots.blobs import SnapshotBlobs
from sandbox.snapshots.files import (
    DIRECTORY,
    FILE,
    HANDLE,
    OWNER_ALL,
    at_once,
    change_mode,
    empty,
    names_in,
    unlock,
)
from sandbox.snapshots.manifest import STATUS_TIME, TOP, Facts, SnapshotManifest, facts_of
from sandbox.snapshots.restoring_plan import RestoringPlan
from sandbox.snapshots.types import LeftAlone, Node
from sandbox.snapshots.walk import Walk
from system.files import NEW_FILE

STAGING = ".backstay-restoring-"
"""How directories begin that a restore works in; one that a killed restore left is removed by the next."""

# The errors of a disk without space, and of an operation when the tree is no longer the one that was looked at.
_FULL = {errno.ENOSPC, errno.EDQUOT}
_OTHERS = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ELOOP, errno.ENOENT, errno.EISDIR}


class Restoring:
    """Carry out one plan.

    Every file is written anew beside the tree and renamed into place, so that nothing is ever written through an inode
    that may have another name, and so that each path holds the old bytes or the new ones. All bytes are on the disk,
    and their hashes were compared, before the first path is touched. Where there is no space for them, what was added
    goes first, since it may be what fills the disk.
    """

    def __init__(
        self, root: int, blobs: SnapshotBlobs, plan: RestoringPlan, manifest: SnapshotManifest, walk: Walk
    ) -> None:
        """Take what was decided on, and what was found on the way."""
        self.done: list[str] = []
        self.conflicts: list[LeftAlone] = list(plan.conflicts)
        self.failed: list[LeftAlone] = list(plan.failed)
        self._root = root
        self._blobs = blobs
        self._paths = plan.paths
        self._planned = frozenset(plan.paths)
        self._wanted = manifest.nodes
        self._twins = {path: paths for paths in manifest.links for path in paths}
        self._current = dict(walk.nodes)
        self._facts = dict(walk.facts)
        self._opened = dict(walk.opened)
        self._staged: dict[str, str] = {}
        self._linked: set[str] = set()
        self._skipped: set[str] = set()
        self._touched: set[str] = set()
        self._open_directories: list[tuple[str, int]] = []
        self._staging = -1

    def run(self) -> None:
        """Do it. Raises SnapshotDamaged, with nothing changed, when a blob is not what it was."""
        name = STAGING + secrets.token_hex(8)
        try:
            if self._paths:
                try:
                    self._stage(name)
                except OSError as error:
                    if error.errno not in _FULL:
                        raise
                    self._make_room()
                    self._stage(name)
                self._put_back()
        finally:
            if self._staging >= 0:
                with suppress(OSError):
                    empty(self._staging)
                    os.rmdir(name, dir_fd=self._root)
                os.close(self._staging)
            # Last of all: it may take from this user the right to change anything more.
            self._set_modes()
            self._return_to_root()

    def _make_room(self) -> None:
        """Remove the files that were added, once all that is to be put back has been read whole."""
        for path in self._paths:
            node = self._wanted.get(path)
            if node is not None and node.kind == "file":
                self._blobs.require(node.content)
        for path in self._paths:
            node = self._current.get(path)
            if node is not None and node.kind != "directory" and self._wanted.get(path) is None:
                self._attempt(self._make_way, path)
                del self._current[path], self._facts[path]
        self._return_to_root()

    def _stage(self, name: str) -> None:
        """Write all files and links into a staging directory, anew if it was begun."""
        if self._staging < 0:
            os.mkdir(name, OWNER_ALL, dir_fd=self._root)
            self._staging = os.open(name, DIRECTORY, dir_fd=self._root)
        empty(self._staging)
        self._staged.clear()
        self._linked.clear()
        for path in self._paths:
            node = self._wanted.get(path)
            if node is None or node.kind == "directory":
                continue
            if self._link(path, str(len(self._staged))):
                continue
            name = self._staged[path] = str(len(self._staged))
            if node.kind == "symlink":
                os.symlink(node.content, name, dir_fd=self._staging)
                if os.geteuid() == 0:
                    os.chown(name, node.uid, node.gid, dir_fd=self._staging, follow_symlinks=False)
                continue
            opened = os.open(name, NEW_FILE, 0o600, dir_fd=self._staging)
            try:
                self._blobs.copy(node.content, opened)
                if os.geteuid() == 0:
                    os.fchown(opened, node.uid, node.gid)
            finally:
                os.close(opened)
        files = [path for path in self._staged if self._wanted[path].kind == "file"]
        at_once(self._finish, [path for path in files if path not in self._linked])

    def _link(self, path: str, name: str) -> bool:
        """Stage another name of the same file, if one is staged or in its place as wanted; return whether it is."""
        for twin in self._twins.get(path, ()):
            staged = self._staged.get(twin)
            if staged is None and (twin in self._planned or self._current.get(twin) != self._wanted[path]):
                continue
            with suppress(OSError):
                above, _, last = twin.rpartition("/")
                folder = self._directory(above) if staged is None else self._staging
                os.link(staged or last, name, src_dir_fd=folder, dst_dir_fd=self._staging, follow_symlinks=False)
                found = facts_of(os.stat(name, dir_fd=self._staging, follow_symlinks=False))
                if staged is not None or _identity(found) == _identity(self._facts[twin]):
                    self._staged[path] = name
                    self._linked.add(path)
                    return True
                # Somebody has changed it meanwhile.
                os.unlink(name, dir_fd=self._staging)
        return False

    def _finish(self, path: str) -> None:
        """Wait for the disk; the mode comes last, since it may close the file even to its owner."""
        opened = os.open(self._staged[path], FILE, dir_fd=self._staging)
        try:
            os.fchmod(opened, self._wanted[path].restorable().mode)
            os.fsync(opened)
        finally:
            os.close(opened)

    def _put_back(self) -> None:
        for path in reversed(self._paths):
            self._attempt(self._make_way, path)
        # Directories may have been replaced: none of those that were open counts any more.
        self._return_to_root()
        for path in self._paths:
            self._attempt(self._put, path)
        self.done = [path for path in self._paths if path not in self._skipped]
        for above in sorted(self._touched):
            with suppress(OSError):
                os.fsync(self._directory(above))

    def _attempt(self, act: Callable[[str], None], path: str) -> None:
        if path in self._skipped:
            return
        try:
            act(path)
        except WorkspaceChanging:
            self._skip(self.conflicts, path, "somebody changed it during the restore")
        except OSError as error:
            if error.errno in _OTHERS:
                why = f"somebody else changed what is in it or above it: {error.strerror}"
                self._skip(self.conflicts, path, why)
            else:
                self._skip(self.failed, path, f"{error.strerror}")

    def _skip(self, among: list[LeftAlone], path: str, why: str) -> None:
        self._skipped.add(path)
        among.append(LeftAlone(path, why))

    def _make_way(self, path: str) -> None:
        """Remove what may not stay, or stands where something of another shape must go."""
        current, wanted = self._current.get(path), self._wanted.get(path)
        if current is None or (wanted and (wanted.kind == "directory") == (current.kind == "directory")):
            return
        parent, name = self._parent(path)
        self._check_unchanged(parent, name, path)
        if current.kind != "directory":
            os.unlink(name, dir_fd=parent)
        elif current.lacks:
            # Nobody could look into it, or not to its end, so it goes as a whole.
            os.rename(name, f"gone-{secrets.token_hex(8)}", src_dir_fd=parent, dst_dir_fd=self._staging)
        else:
            os.rmdir(name, dir_fd=parent)

    def _put(self, path: str) -> None:
        """Bring what is wanted to its place; the modes of directories come last."""
        wanted, current = self._wanted.get(path), self._current.get(path)
        if wanted is None or path == TOP:
            return
        was_directory = current is not None and current.kind == "directory"
        parent, name = self._parent(path)
        if path in self._staged:
            if not was_directory:
                self._check_unchanged(parent, name, path)
            os.rename(self._staged[path], name, src_dir_fd=self._staging, dst_dir_fd=parent)
        elif not was_directory:
            os.mkdir(name, OWNER_ALL, dir_fd=parent)

    def _check_unchanged(self, parent: int, name: str, path: str) -> None:
        """Raise WorkspaceChanging when something else is there than when the plan was made."""
        was = self._facts.get(path)
        try:
            now = facts_of(os.stat(name, dir_fd=parent, follow_symlinks=False))
        except FileNotFoundError:
            now = None
        if (was and _identity(was)) != (now and _identity(now)):
            raise WorkspaceChanging

    def _set_modes(self) -> None:
        """Set the final mode and owner of directories, the deepest ones first."""
        wanted = {
            path: node.restorable()
            for path in self.done
            if (node := self._wanted.get(path)) is not None and node.kind == "directory"
        }
        for path in wanted.keys() - {TOP}:
            # On the way to them more directories may have to be unlocked.
            with suppress(OSError):
                self._parent(path)
        gone = set(self.done) - wanted.keys()
        for path in sorted({*wanted, *self._opened} - gone, reverse=True):
            if path in wanted:
                self._attempt(lambda path: self._set_mode(path, wanted[path]), path)
            else:
                with suppress(OSError):
                    self._set_mode(path, None)
        self.done = [path for path in self.done if path not in self._skipped]

    def _set_mode(self, path: str, wanted: Node | None) -> None:
        if path == TOP:
            handle = os.dup(self._root)
        else:
            parent, name = self._parent(path)
            handle = os.open(name, HANDLE | os.O_DIRECTORY, dir_fd=parent)
        try:
            found = os.fstat(handle)
            if wanted and os.geteuid() == 0 and (found.st_uid, found.st_gid) != (wanted.uid, wanted.gid):
                os.chown(f"/proc/self/fd/{handle}", wanted.uid, wanted.gid)
            change_mode(handle, wanted.mode if wanted else self._opened[path])
        finally:
            os.close(handle)

    def _parent(self, path: str) -> tuple[int, str]:
        above, _, name = path.rpartition("/")
        self._touched.add(above)
        return self._directory(above), name

    def _directory(self, path: str) -> int:
        """Open a directory name by name from the root, following no link; the way to the last one stays open."""
        names = path.split("/") if path else []
        same = 0
        while same < min(len(names), len(self._open_directories)) and self._open_directories[same][0] == names[same]:
            same += 1
        while len(self._open_directories) > same:
            os.close(self._open_directories.pop()[1])
        for at in range(same, len(names)):
            above = self._open_directories[-1][1] if self._open_directories else self._root
            self._open_directories.append((names[at], self._enter(above, names[at], "/".join(names[: at + 1]))))
        return self._open_directories[-1][1] if self._open_directories else self._root

    def _enter(self, above: int, name: str, path: str) -> int:
        """Open one directory, with all rights for its owner when that is this user and no root."""
        try:
            opened = os.open(name, DIRECTORY, dir_fd=above)
        except PermissionError:
            self._opened.setdefault(path, unlock(name, above))
            opened = os.open(name, DIRECTORY, dir_fd=above)
        found = os.fstat(opened)
        if found.st_mode & OWNER_ALL != OWNER_ALL and found.st_uid == os.geteuid() != 0:
            self._opened.setdefault(path, stat.S_IMODE(found.st_mode))
            os.fchmod(opened, stat.S_IMODE(found.st_mode) | OWNER_ALL)
        return opened

    def _return_to_root(self) -> None:
        while self._open_directories:
            os.close(self._open_directories.pop()[1])


def sweep_staging(root: int) -> None:
    """Remove what restores left behind that were killed."""
    for name in names_in(root):
        if name.startswith(STAGING):
            with suppress(OSError):
                unlock(name, root)
                opened = os.open(name, DIRECTORY, dir_fd=root)
                try:
                    empty(opened)
                finally:
                    os.close(opened)
                os.rmdir(name, dir_fd=root)


def _identity(facts: Facts) -> list[int]:
    """Return what stays the same of a file while one of its other names is replaced."""
    if len(facts) <= STATUS_TIME:
        return [stat.S_IFMT(facts[0])]
    return [*facts[:STATUS_TIME], facts[-1]]
