"""What a workspace needs of snapshots."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class Taken(Protocol):
    """Name what a workspace held at one moment."""

    @property
    def id(self) -> str:
        """By this it is found again."""
        ...


class Held(Protocol):
    """Tell what stood at one path."""

    @property
    def kind(self) -> str:
        """`file`, or something else."""
        ...

    @property
    def size(self) -> int:
        """Of a file, in bytes."""
        ...

    @property
    def content(self) -> str:
        """Of a file, the SHA-256 of its bytes."""
        ...


class Changed(Protocol):
    """Say what became of one path between two snapshots."""

    @property
    def path(self) -> str:
        """As it is, which may be no text."""
        ...

    @property
    def shown(self) -> str:
        """The path as one line of text."""
        ...

    @property
    def kind(self) -> str:
        """`added`, `removed`, `edited` or `mode`."""
        ...

    @property
    def after(self) -> Held | None:
        """What stands there now."""
        ...


class Left(Protocol):
    """Say why a path was not brought back."""

    @property
    def path(self) -> str:
        """As it is, which may be no text."""
        ...

    @property
    def why(self) -> str:
        """In one line."""
        ...


class BroughtBack(Protocol):
    """Tell what became of bringing something back."""

    @property
    def paths(self) -> Sequence[str]:
        """What was written or removed."""
        ...

    @property
    def conflicts(self) -> Sequence[Left]:
        """What others changed since."""
        ...

    @property
    def failed(self) -> Sequence[Left]:
        """What could not be brought back."""
        ...


class Snapshotting(Protocol):
    """Take what a folder holds, tell what differs, and bring it back. All of it blocks."""

    def take(self, root: Path) -> Taken:
        """Keep what the folder holds now. Raises SnapshotRefused for what cannot be kept."""
        ...

    def changes(self, before_id: str, after_id: str) -> Sequence[Changed]:
        """Return what differs between two snapshots, one entry for each path."""
        ...

    def restore(self, root: Path, snapshot_id: str, *, expect: str | None = None) -> BroughtBack:
        """Bring back what the folder held; with `expect`, only what differs between the two and is as it was then."""
        ...
