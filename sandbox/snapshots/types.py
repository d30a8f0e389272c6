"""One thing in a workspace, as a snapshot remembers it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from sandbox.snapshots.files import shown

Kind = Literal["file", "directory", "symlink", "special"]

READABLE_MODES = 0o777
DIRECTORY_MODES = 0o3777


class Node(NamedTuple):
    """Describe what is at a path; equal nodes look the same to every program."""

    kind: Kind
    mode: int
    """The permission bits with setuid, setgid and sticky; 0 for a symlink, which has none of its own."""
    uid: int
    gid: int
    size: int
    """Bytes of a file; 0 for everything else."""
    content: str
    """The sha256 of a file, the target of a symlink, what a special is; empty for a directory."""
    lacks: str = ""
    """Why the content of a file or directory is not known; always empty in a snapshot."""

    def restorable(self) -> "Node":
        """Return what a restore makes of it: never setuid, and setgid and sticky for directories only.

        A file that is written anew belongs to another moment, and perhaps to another user: nothing may run with that
        user's rights because of an undo.
        """
        bits = DIRECTORY_MODES if self.kind == "directory" else READABLE_MODES
        return self._replace(mode=self.mode & bits)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Name what a workspace held at one moment."""

    id: str
    """The hash of its manifest: a workspace that holds the same has the same id."""
    files: int
    size: int
    """Bytes of all files together."""
    outside: Mapping[str, tuple[int, Node]] = field(
        default_factory=dict[str, tuple[int, Node]], compare=False, repr=False
    )
    """The files that have another name outside of the workspace, by path, with their inodes."""
    of_root: bool = field(default=False, compare=False)
    """Whether root owns something in it that has no other name."""


ChangeKind = Literal["added", "removed", "edited", "mode"]


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """Describe how one path changed between two snapshots."""

    path: str
    """As it is, which may hold anything but NUL; `shown` is for people."""
    kind: ChangeKind
    """`edited` says that something else is there, also of another kind; `mode` that only mode or owner differ."""
    before: Node | None
    after: Node | None

    @property
    def shown(self) -> str:
        """The path as one line, with nothing invisible in it."""
        return shown(self.path)


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """Bound what one snapshot keeps, so that a workspace can fill neither the disk nor the memory of its worker."""

    file_bytes: int = 200_000_000
    total_bytes: int = 2_000_000_000
    entries: int = 200_000
    """Files, directories and everything else together."""
    depth: int = 100
    """Directories inside each other; each one costs an open descriptor."""


class LeftAlone(NamedTuple):
    """Say why a path was not restored; `path` is exact, `why` is one line for people."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """Describe the outcome of a restore; nothing else was touched."""

    id: str
    """The snapshot that was restored."""
    paths: tuple[str, ...]
    """What was written, removed, or given its mode; empty when all was as wanted already."""
    conflicts: tuple[LeftAlone, ...] = ()
    """What somebody else changed since; it is as they left it."""
    failed: tuple[LeftAlone, ...] = ()
    """What could not be put back, because the snapshot or this user lacks something."""
    outside: tuple[str, ...] = ()
    """Which of the paths held a file that has another name outside of the workspace, and keeps there what it held.

    A file that was moved onto a path that held another one is among them: a snapshot does not tell files apart.
    """
