"""What became different between two snapshots."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sandbox.manifest_node import Node
from sandbox.snapshot_files import shown

ChangeKind = Literal["added", "removed", "edited", "mode"]


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """Say what became of one path."""

    path: str
    """As it is, which may hold anything but NUL; `shown` is for people."""
    kind: ChangeKind
    """`edited` says that something else stands there, also of another kind; `mode` that only mode or owner differ."""
    before: Node | None
    after: Node | None
    moved: str = ""
    """Where the bytes of a removed file went, or those of an added one came from; empty when it was not moved."""

    @property
    def shown(self) -> str:
        """The path as one line, with nothing invisible in it."""
        return shown(self.path)

    @property
    def bytes_before(self) -> int | None:
        """The size of a file; None when there was none."""
        return _size(self.before)

    @property
    def bytes_after(self) -> int | None:
        """The size of a file; None when there is none."""
        return _size(self.after)


def changes_between(before: Mapping[str, Node], after: Mapping[str, Node]) -> list[SnapshotChange]:
    """List what differs, by path."""
    different = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    moved = _moves(before, after, different)
    return [
        SnapshotChange(
            path, _kind(before.get(path), after.get(path)), before.get(path), after.get(path), moved.get(path, "")
        )
        for path in different
    ]


def _kind(before: Node | None, after: Node | None) -> ChangeKind:
    if before is None:
        return "added"
    if after is None:
        return "removed"
    same = (before.kind, before.size, before.content) == (after.kind, after.size, after.content)
    # Where content is unknown, "only the mode" would say too much.
    unknown = "file" in (before.kind, after.kind) and bool(before.lacks or after.lacks)
    return "mode" if same and not unknown else "edited"


def _moves(before: Mapping[str, Node], after: Mapping[str, Node], different: list[str]) -> dict[str, str]:
    """Pair files that went with files that came, where their bytes tell of one pair only."""
    went = {path: before[path].content for path in different if path not in after and _has_bytes(before[path])}
    came = {path: after[path].content for path in different if path not in before and _has_bytes(after[path])}
    went_once, came_once = Counter(went.values()), Counter(came.values())
    at = {content: path for path, content in came.items() if came_once[content] == 1}
    pairs = [(path, at[content]) for path, content in went.items() if went_once[content] == 1 and content in at]
    return {one: other for pair in pairs for one, other in (pair, pair[::-1])}


def _has_bytes(node: Node) -> bool:
    return node.kind == "file" and node.size > 0 and bool(node.content)


def _size(node: Node | None) -> int | None:
    return node.size if node is not None and node.kind == "file" else None
