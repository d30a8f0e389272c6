"""Look at everything in a workspace once, without leaving it."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from backstay.errors import SnapshotRefused, WorkspaceChanging
from sandbox.snapshots.files import DIRECTORY, FILE, OWNER_ALL, shown, steady, unlock
from sandbox.snapshots.manifest import TOP, Facts, ManifestIndex, facts_of
from sandbox.snapshots.types import Node, SnapshotLimits

Read = Callable[[int, int], str]
"""Take an open file and its size, and return the sha256 of its bytes."""
Listing = list[tuple[str, os.stat_result]]

_LONGEST_PATH = 4096
_CLOSED = "this user may not look into it"


class Walk:
    """Collect a node for every path below an open directory.

    Every open is relative to the directory above and follows no link, so that what is swapped meanwhile leads nowhere.
    """

    def __init__(
        self,
        root: int,
        *,
        index: ManifestIndex,
        read: Read,
        limits: SnapshotLimits,
        restoring: bool,
    ) -> None:
        """Walk at once. A restore notes what cannot be kept instead of refusing it, and unlocks directories."""
        self.nodes: dict[str, Node] = {}
        self.facts: dict[str, Facts] = {}
        self.opened: dict[str, int] = {}
        """The modes of directories that were unlocked on the way."""
        self.fresh = 0
        """How many nodes the index did not know."""
        self.of_root = False
        """Whether root owns something that has no other name."""
        self._known = index.known
        self._read = read
        self._limits = limits
        self._restoring = restoring
        self._bytes = 0
        self._names: dict[int, tuple[int, list[str]]] = {}
        found = os.fstat(root)
        self._device = found.st_dev
        mode = stat.S_IMODE(found.st_mode)
        self._note(TOP, facts_of(found), Node("directory", mode, found.st_uid, found.st_gid, 0, ""))
        if restoring and mode & OWNER_ALL != OWNER_ALL and found.st_uid == os.geteuid():
            self.opened[TOP] = mode
            os.fchmod(root, mode | OWNER_ALL)
        try:
            listed = self._list(root, TOP)
        except PermissionError:
            self._lack(TOP, _CLOSED)
        else:
            self._inside(root, "", listed, 1)

    @property
    def links(self) -> list[list[str]]:
        """The paths of each file that has several here."""
        return sorted(sorted(paths) for _, paths in self._names.values() if len(paths) > 1)

    @property
    def outside(self) -> dict[str, tuple[int, Node]]:
        """The files that have more names than were found here, by path, with their inodes."""
        return {
            path: (inode, self.nodes[path])
            for inode, (count, paths) in self._names.items()
            if count > len(paths)
            for path in paths
        }

    def _inside(self, folder: int, above: str, listed: Listing, depth: int) -> None:
        """Take in what was listed in one directory, and what lies below it."""
        known = self._known
        if not self._restoring and len(self.nodes) + len(listed) > self._limits.entries:
            raise SnapshotRefused(
                f"{shown(above or TOP)}: the workspace holds more than {self._limits.entries} files and directories;"
                " remove what is not needed"
            )
        for name, found in listed:
            path = above + name
            self.of_root |= found.st_uid == 0 and (found.st_nlink == 1 or stat.S_ISDIR(found.st_mode))
            facts = facts_of(found)
            before = known.get(path)
            if before is not None and before[0] == facts:
                node = before[1]
                self.nodes[path] = node
                self.facts[path] = facts
                self._bytes += node.size
            else:
                node = self._look(folder, name, path, found)
            if node.kind == "directory":
                self._enter(folder, name, path, found, depth)
            elif node.kind == "file" and found.st_nlink > 1:
                self._names.setdefault(found.st_ino, (found.st_nlink, []))[1].append(path)
        if self._bytes > self._limits.total_bytes and not self._restoring:
            raise SnapshotRefused(
                f"{shown(above or TOP)}: the workspace holds more than {self._limits.total_bytes} bytes;"
                " remove what is not needed"
            )

    def _look(self, folder: int, name: str, path: str, found: os.stat_result) -> Node:
        """Make the node of something the index does not know."""
        mode, uid, gid = stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid
        if stat.S_ISREG(found.st_mode):
            return self._file(folder, name, path, found)
        if stat.S_ISDIR(found.st_mode):
            node = Node("directory", mode, uid, gid, 0, "")
        elif stat.S_ISLNK(found.st_mode):
            with steady(path):
                node = Node("symlink", 0, uid, gid, 0, os.readlink(name, dir_fd=folder))
        else:
            node = Node("special", mode, uid, gid, 0, _special(found.st_mode))
        self._note(path, facts_of(found), node)
        return node

    def _file(self, folder: int, name: str, path: str, found: os.stat_result) -> Node:
        bare = Node("file", stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, found.st_size, "")
        self._note(path, facts_of(found), bare)
        if found.st_size > self._limits.file_bytes:
            most = self._limits.file_bytes
            return self._lack(path, f"its {found.st_size} bytes are over the limit of {most} for one file")
        if self._bytes + found.st_size > self._limits.total_bytes:
            return self._lack(path, f"with it the workspace is over the limit of {self._limits.total_bytes} bytes")
        try:
            with steady(path):
                opened = os.open(name, FILE, dir_fd=folder)
        except PermissionError:
            return self._lack(path, "this user may not read it")
        try:
            before = facts_of(os.fstat(opened))
            # The file that was listed, whole: anything else on this descriptor is not even read.
            digest = self._read(opened, found.st_size) if before == facts_of(found) else ""
            if not digest or facts_of(os.fstat(opened)) != before:
                raise WorkspaceChanging(
                    f"{shown(path)} is being changed while it is read; end what writes to it and try again"
                )
        finally:
            os.close(opened)
        self._bytes += found.st_size
        self.nodes[path] = bare._replace(content=digest)
        return self.nodes[path]

    def _enter(self, folder: int, name: str, path: str, found: os.stat_result, depth: int) -> None:
        if found.st_dev != self._device:
            self._lack(path, "another file system is mounted there")
            return
        if depth > self._limits.depth or len(os.fsencode(path)) > _LONGEST_PATH:
            self._lack(path, f"it lies deeper than {self._limits.depth} directories or {_LONGEST_PATH} bytes of path")
            return
        found_in = self._opened(folder, name, path)
        if found_in is None:
            self._lack(path, _CLOSED)
            return
        opened, listed = found_in
        try:
            if os.fstat(opened).st_dev != self._device:
                raise WorkspaceChanging(f"{shown(path)} is being mounted over; end that and try again")
            self._inside(opened, path + "/", listed, depth + 1)
        finally:
            os.close(opened)

    def _opened(self, folder: int, name: str, path: str) -> tuple[int, Listing] | None:
        """Open and list a directory, giving its owner all rights where that is wanted and needed; None when closed."""
        for may_unlock in (self._restoring, False):
            try:
                return self._open(folder, name, path)
            except PermissionError:
                if not may_unlock:
                    return None
            with suppress(PermissionError), steady(path):
                self.opened.setdefault(path, unlock(name, folder))
        return None

    def _open(self, folder: int, name: str, path: str) -> tuple[int, Listing]:
        with steady(path):
            opened = os.open(name, DIRECTORY, dir_fd=folder)
        try:
            return opened, self._list(opened, path)
        except BaseException:
            os.close(opened)
            raise

    def _list(self, folder: int, path: str) -> Listing:
        # One more than allowed is enough to refuse, and a directory may hold millions.
        most = None if self._restoring else self._limits.entries + 1
        with steady(path), os.scandir(folder) as found:
            return [(entry.name, entry.stat(follow_symlinks=False)) for entry in islice(found, most)]

    def _note(self, path: str, facts: Facts, node: Node) -> None:
        self.nodes[path] = node
        self.facts[path] = facts
        self.fresh += self._known.get(path) != (facts, node)

    def _lack(self, path: str, why: str) -> Node:
        """Note that something is there whose content is not kept, or refuse the whole snapshot."""
        if not self._restoring:
            raise SnapshotRefused(f"{shown(path)} cannot be kept in a snapshot: {why}; remove it or change that")
        # An entry that is lacking is never taken from the index, so that it is tried anew each time.
        self.fresh += 1
        self.nodes[path] = self.nodes[path]._replace(lacks=why)
        return self.nodes[path]


def _special(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "FIFO"
    return "socket" if stat.S_ISSOCK(mode) else "device"
