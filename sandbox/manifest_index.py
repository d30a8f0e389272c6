"""What was found at each path last time, so that files that did not change are not read again."""

import json
import os
from contextlib import suppress
from pathlib import Path

from sandbox.manifest_node import Node

Facts = list[int]
"""Mode, owner and group; for anything but a directory also size, times of change and of status, and inode."""
STATUS_TIME = 5

_FORMAT = 1
# Times move in ticks: what changes again within the same tick looks as it did. The longest tick is 10 ms on Linux;
# where times have no fraction the file system counts in whole seconds, or in two.
_TICK_NS = 20_000_000
_COARSE_NS = 2_500_000_000


def facts_of(found: os.stat_result) -> Facts:
    """Return what tells that nothing has changed; of a directory only what it says of itself."""
    if found.st_mode & 0o170000 == 0o040000:
        return [found.st_mode, found.st_uid, found.st_gid]
    return [
        found.st_mode,
        found.st_uid,
        found.st_gid,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_ino,
    ]


class ManifestIndex:
    """Remember nodes with the facts they were found by. It is a cache: without it everything is read once more."""

    def __init__(self, known: dict[str, tuple[Facts, Node]], snapshot_id: str = "") -> None:
        """Begin with what is known, and with the snapshot that holds exactly this; empty when none does."""
        self.known = known
        self.snapshot_id = snapshot_id

    @classmethod
    def load(cls, place: Path, root: int) -> "ManifestIndex":
        """Read the index of this very directory; an empty one when there is none, or when it is damaged."""
        found = os.fstat(root)
        # ValueError covers bytes that are no JSON and no UTF-8.
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            said = json.loads(place.read_bytes())
            if said["format"] == _FORMAT and said["root"] == [found.st_dev, found.st_ino]:
                return cls({path: (facts, Node(*node)) for path, facts, node in said["known"]}, said["id"])
        return cls({})

    def encode(self, root: int) -> bytes:
        """Return the bytes that `load` reads."""
        found = os.fstat(root)
        known = [[path, facts, node] for path, (facts, node) in self.known.items()]
        said = {"format": _FORMAT, "root": [found.st_dev, found.st_ino], "id": self.snapshot_id, "known": known}
        return json.dumps(said, separators=(",", ":")).encode()


def settled(facts: Facts, read_at_ns: int) -> bool:
    """Say whether a later change must show in the facts of something that was read at this moment.

    A file that is written to in the tick in which it was read has the same times before and after.
    """
    if len(facts) <= STATUS_TIME:
        return True
    changed = facts[STATUS_TIME]
    return changed + (_TICK_NS if changed % 1_000_000_000 else _COARSE_NS) < read_at_ns
