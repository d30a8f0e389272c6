"""Manifests: everything in a workspace at one moment, named by the hash of what they say."""

import hashlib
import json
import re
import zlib
from collections.abc import Mapping

from backstay.errors import SnapshotDamaged
from backstay.shown import one_line
from sandbox.manifest_node import Node

TOP = "."
"""The path of the workspace itself."""
_FORMAT = 1
_ID = re.compile(r"[0-9a-f]{64}")
_MOST_BYTES = 1 << 30


class SnapshotManifest:
    """Hold the node at every path below a workspace; paths are relative, with `/` between names."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        """Take what a walk found."""
        self.nodes = nodes

    def encode(self) -> tuple[str, bytes]:
        """Return the id and the bytes to keep; the same tree has the same id wherever and whenever it is read."""
        listed = [[path, *node] for path, node in sorted(self.nodes.items())]
        # Escaped, since names need not be UTF-8: their odd bytes are lone surrogates here.
        text = json.dumps({"format": _FORMAT, "nodes": listed}, separators=(",", ":"), ensure_ascii=True).encode()
        return hashlib.sha256(text).hexdigest(), zlib.compress(text, 1)

    @classmethod
    def decode(cls, snapshot_id: str, data: bytes) -> "SnapshotManifest":
        """Read what `encode` wrote. Raises SnapshotDamaged when it is anything else."""
        try:
            nodes = _nodes(snapshot_id, zlib.decompressobj().decompress(data, _MOST_BYTES))
        except (ValueError, KeyError, TypeError, RecursionError, zlib.error) as error:
            why = one_line(str(error), 200)[0]
            raise SnapshotDamaged(
                f"snapshot {snapshot_id}: its manifest is not what was written ({why}); bring it back from a backup"
            ) from error
        return cls(nodes)


def checked_id(snapshot_id: str) -> str:
    """Return the id when it can be one. Raises SnapshotDamaged otherwise: an id becomes the name of a file."""
    if not isinstance(snapshot_id, str) or not _ID.fullmatch(snapshot_id):
        raise SnapshotDamaged(f"no snapshot {one_line(str(snapshot_id), 80)[0]!r}: an id is 64 hexadecimal digits")
    return snapshot_id


def is_beneath(path: str, above: str) -> bool:
    """Say whether a path is, or lies below, another one."""
    return above in (path, TOP) or path.startswith(above + "/")


def parents_of(path: str) -> list[str]:
    """Return the directories above a path, the nearest first, without the workspace itself."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]


def _nodes(snapshot_id: str, text: bytes) -> dict[str, Node]:
    if hashlib.sha256(text).hexdigest() != snapshot_id:
        raise ValueError("the hash differs")
    said = json.loads(text)
    if said["format"] != _FORMAT:
        raise ValueError(f"format {said['format']} is not known")
    return {_path(path): Node(*node) for path, *node in said["nodes"]}


def _path(path: str) -> str:
    if path != TOP and ("\0" in path or {"", ".", ".."} & set(path.split("/"))):
        raise ValueError(f"a path leads elsewhere: {path!r}")
    return path
