"""How much a snapshot takes in before it refuses."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """Bound what one snapshot keeps, so that a workspace can fill neither the disk nor the memory of its worker."""

    file_bytes: int = 200_000_000
    total_bytes: int = 2_000_000_000
    entries: int = 200_000
    """Files, directories and everything else together."""
    depth: int = 100
    """Directories inside each other; each one costs an open descriptor."""
