"""What a restore did, and what it left alone."""

from dataclasses import dataclass
from typing import NamedTuple


class LeftAlone(NamedTuple):
    """Say why a path was not put back; `path` is exact, `why` is one line for people."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Restored:
    """Say what became of a restore; nothing else was touched."""

    id: str
    """The snapshot that was restored."""
    paths: tuple[str, ...]
    """What was written, removed, or given its mode; empty when all was as wanted already."""
    conflicts: tuple[LeftAlone, ...] = ()
    """What somebody else changed since; it is as they left it."""
    failed: tuple[LeftAlone, ...] = ()
    """What could not be put back, because the snapshot or this user lacks something."""
