"""A workspace at one moment."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Name what a workspace held at one moment."""

    id: str
    """The hash of its manifest: a workspace that holds the same has the same id."""
    files: int
    size: int
    """Bytes of all files together."""
    lacking: tuple[str, ...] = ()
    """Exact paths whose content is not in it, and so cannot be restored; only a partial snapshot has any."""
