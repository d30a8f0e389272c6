"""Decide what a restore has to do, and what it must leave alone."""

from collections.abc import Mapping
from typing import TypeGuard

from sandbox.snapshots.files import OWNER_ALL
from sandbox.snapshots.types import LeftAlone, Node

Nodes = Mapping[str, Node]


class RestoringPlan:
    """Compare what is wanted, what is there, and what is expected to be there.

    Without `expected` everything is put back. With it only what differs between `wanted` and `expected`, which is what
    was done in between, and of that only what is still as expected. A restore that was ended half way can be repeated:
    the steps that it has done already are as wanted, and the one that it was doing is told by directories that their
    owner may enter.
    """

    def __init__(self, current: Nodes, wanted: Nodes, expected: Nodes | None, *, owners: bool) -> None:
        """Decide at once; `owners` says whether this user can give files to others."""
        self.paths: list[str] = []
        """What is to be put back, by name, so that directories come before what is in them."""
        self.conflicts: list[LeftAlone] = []
        self.failed: list[LeftAlone] = []
        self._expected = expected
        self._owners = owners
        for path in sorted(wanted.keys() | current.keys()):
            self._decide(path, current.get(path), wanted.get(path))

    def _decide(self, path: str, current: Node | None, wanted: Node | None) -> None:
        if self._same(current, wanted) or (wanted is not None and self._same(current, wanted.restorable())):
            return
        if self._expected is not None and not self._is_ours(path, current, wanted, self._expected.get(path)):
            return
        if wanted is not None and wanted.kind == "special":
            self.failed.append(LeftAlone(path, f"a {wanted.content} is not kept"))
        else:
            self.paths.append(path)

    def _same(self, left: Node | None, right: Node | None) -> bool:
        if left is None or right is None or left == right:
            return left == right
        return not self._owners and left._replace(uid=right.uid, gid=right.gid) == right

    def _is_ours(self, path: str, current: Node | None, wanted: Node | None, expected: Node | None) -> bool:
        """Return whether a path may be restored; a change by someone else is noted as a conflict."""
        changed = not self._same(expected, wanted)
        if _is_directory(current) and current.mode in _between(wanted, expected, changed=changed):
            return True
        if not changed:
            return False
        if self._same(current, expected):
            return True
        if current is None:
            # Half way: a directory had to go before a file could take its place, or the other way round.
            if wanted is not None and _is_directory(expected) != _is_directory(wanted):
                return True
            why = "somebody else removed it since"
        elif expected is None:
            why = "somebody else put something there since"
        else:
            why = "somebody else changed it since"
        self.conflicts.append(LeftAlone(path, why))
        return False


def _is_directory(node: Node | None) -> TypeGuard[Node]:
    return node is not None and node.kind == "directory"


def _between(wanted: Node | None, expected: Node | None, *, changed: bool) -> set[int]:
    """Return the modes that a directory may have while, or after, a restore works in it."""
    if not changed:
        return {wanted.mode | OWNER_ALL} if _is_directory(wanted) else set()
    modes = {node.mode for node in (wanted, expected) if _is_directory(node)}
    return modes | {mode | OWNER_ALL for mode in modes} | ({OWNER_ALL} if _is_directory(wanted) else set())
