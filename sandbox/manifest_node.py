"""One thing in a workspace, as a snapshot remembers it."""

from typing import Literal, NamedTuple

Kind = Literal["file", "directory", "symlink", "special"]

READABLE_MODES = 0o777
DIRECTORY_MODES = 0o3777


class Node(NamedTuple):
    """Say what lies at a path; equal nodes look the same to every program."""

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
    """Why the content of a file or directory was not kept; empty when it was."""

    def restorable(self) -> "Node":
        """Return what a restore makes of it: never setuid, and setgid and sticky for directories only.

        A file that is written anew belongs to another moment, and perhaps to another user: nothing shall run with that
        user's rights because of an undo.
        """
        bits = DIRECTORY_MODES if self.kind == "directory" else READABLE_MODES
        return self._replace(mode=self.mode & bits)
