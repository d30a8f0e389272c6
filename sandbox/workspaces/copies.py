"""Copies of a workspace in which something is rehearsed, and which are thrown away."""

import hashlib
from pathlib import Path

from backstay.errors import SnapshotRefused
from sandbox.snapshots.files import empty, opened_root
from sandbox.snapshots.snapshots import Snapshots
from sandbox.workspaces.workspace import COPIES, Workspace

_UNFINISHED = ".new"


class Copies:
    """Make copies of one workspace, each for one rehearsal, and remove them; whoever does so holds its lock."""

    def __init__(self, workspace: Workspace, snapshots: Snapshots, folder: Path, state: Path) -> None:
        """Keep the copies beside the workspaces, where jails can reach them, and what is known of them in `state`."""
        self._workspace = workspace
        self._snapshots = snapshots
        self._folder = folder.resolve() / COPIES / workspace.key
        self._state = state / "rehearsals" / workspace.key

    def copy(self, rehearsal: str) -> Workspace:
        """Return the copy of a rehearsal, and make it from the workspace as it is now when there is none.

        Raises SnapshotRefused for a workspace that cannot be copied whole.
        """
        root = self._folder / _name(rehearsal)
        if not root.is_dir():
            taken = self._snapshots.take(self._workspace.root)
            # A copy that was begun when its host died is not one: only a whole one gets its name.
            begun = root.with_suffix(_UNFINISHED)
            _remove(begun)
            begun.mkdir(parents=True)
            begun.chmod(self._workspace.root.stat().st_mode & 0o777)
            if lacking := self._snapshots.restore(begun, taken.id).failed:
                raise SnapshotRefused(f"{lacking[0].path!a}: {lacking[0].why}")
            begun.rename(root)
        return Workspace(name=f"a copy of {self._workspace.name}", root=root)

    def records(self, rehearsal: str) -> Path:
        """Return the folder of what was done in the copy of a rehearsal."""
        return self._state / _name(rehearsal)

    def remove(self) -> int:
        """Throw all copies of the workspace away, with what is known of them; return how many there were."""
        found = sorted(self._folder.iterdir()) if self._folder.is_dir() else []
        for path in [*found, self._folder, self._state]:
            _remove(path)
        return len(found)


def _name(rehearsal: str) -> str:
    return hashlib.sha256(rehearsal.encode("utf-8", "replace")).hexdigest()[:32]


def _remove(path: Path) -> None:
    if not path.is_dir():
        return
    with opened_root(path, unlocking=True) as top:
        empty(top)
    path.rmdir()
