"""Manifests: everything in a workspace at one moment, named by the hash of what they say."""

import hashlib
import json
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from backstay.errors import SnapshotDamaged
from backstay.shown import one_line
from sandbox.snapshots.types import Node

TOP = "."
"""The path of the workspace itself."""
_FORMAT = 1
_ID = re.compile(r"[0-9a-f]{64}")
_MOST_BYTES = 1 << 30


class SnapshotManifest:
    """Hold the node at every path below a workspace; paths are relative, with `/` between names."""

    def __init__(self, nodes: Mapping[str, Node], links: Sequence[Sequence[str]] = ()) -> None:
        """Take what a walk found; `links` are the paths of each file that has several."""
        self.nodes = nodes
        self.links = links

    def encode(self) -> tuple[str, bytes]:
        """Return the id and the bytes to keep; the same tree has the same id wherever and whenever it is read."""
        listed = [[path, *node] for path, node in sorted(self.nodes.items())]
        said = {"format": _FORMAT, "nodes": listed} | ({"links": self.links} if self.links else {})
        # Escaped, since names need not be UTF-8: their odd bytes are lone surrogates here.
        text = json.dumps(said, separators=(",", ":"), ensure_ascii=True).encode()
        return hashlib.sha256(text).hexdigest(), zlib.compress(text, 1)

    @classmethod
    def decode(cls, snapshot_id: str, data: bytes) -> "SnapshotManifest":
        """Read what `encode` wrote. Raises SnapshotDamaged when it is anything else."""
        try:
            said = _said(snapshot_id, zlib.decompressobj().decompress(data, _MOST_BYTES))
            nodes = {_path(path): Node(*node) for path, *node in said["nodes"]}
            links = [[_path(path) for path in paths] for paths in said.get("links", [])]
        except (ValueError, KeyError, TypeError, RecursionError, zlib.error) as error:
            why = one_line(str(error), 200)
            raise SnapshotDamaged(
                f"snapshot {snapshot_id}: its manifest is not what was written ({why}); bring it back from a backup"
            ) from error
        return cls(nodes, links)


def checked_id(snapshot_id: str) -> str:
    """Return the id when it can be one. Raises SnapshotDamaged otherwise: an id becomes the name of a file."""
    if not isinstance(snapshot_id, str) or not _ID.fullmatch(snapshot_id):
        raise SnapshotDamaged(f"no snapshot {one_line(str(snapshot_id), 80)!r}: an id is 64 hexadecimal digits")
    return snapshot_id


def _said(snapshot_id: str, text: bytes) -> dict[str, Any]:
    if hashlib.sha256(text).hexdigest() != snapshot_id:
        raise ValueError("the hash differs")
    said = json.loads(text)
    if said["format"] != _FORMAT:
        raise ValueError(f"format {said['format']} is not known")
    return said


def _path(path: str) -> str:
    if path != TOP and ("\0" in path or {"", ".", ".."} & set(path.split("/"))):
        raise ValueError(f"a path leads elsewhere: {path!r}")
    return path


Facts = list[int]
"""Mode, owner and group; for anything but a directory also size, times of change and of status, and inode."""
STATUS_TIME = 5

_INDEX_FORMAT = 1
# Times move in ticks: a file that changes again within the same tick looks as it did. The longest tick is 10 ms on
# Linux; where times have no fraction the file system counts in whole seconds, or in two.
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
            if said["format"] == _INDEX_FORMAT and said["root"] == [found.st_dev, found.st_ino]:
                return cls({path: (facts, Node(*node)) for path, facts, node in said["known"]}, said["id"])
        return cls({})

    def encode(self, root: int) -> bytes:
        """Return the bytes that `load` reads."""
        found = os.fstat(root)
        known = [[path, facts, node] for path, (facts, node) in self.known.items()]
        said = {"format": _INDEX_FORMAT, "root": [found.st_dev, found.st_ino], "id": self.snapshot_id, "known": known}
        return json.dumps(said, separators=(",", ":")).encode()


def settled(facts: Facts, read_at_ns: int) -> bool:
    """Return whether a later change must show in the facts of something that was read at this moment.

    A file that is written to in the tick in which it was read has the same times before and after.
    """
    if len(facts) <= STATUS_TIME:
        return True
    changed = facts[STATUS_TIME]
    return changed + (_TICK_NS if changed % 1_000_000_000 else _COARSE_NS) < read_at_ns
