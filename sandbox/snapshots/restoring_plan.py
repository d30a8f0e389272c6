"""Decide what a restore has to do, and what it must leave alone."""

from collections.abc import Collection, Mapping
from typing import TypeGuard

from sandbox.snapshots.files import OWNER_ALL
from sandbox.snapshots.manifest import TOP, is_beneath, parents_of
from sandbox.snapshots.types import LeftAlone, Node

Nodes = Mapping[str, Node]


class RestoringPlan:
    """Compare what is wanted, what is there, and what is expected to be there.

    Without `expected` everything is put back. With it only what differs between `wanted` and `expected`, which is what
    was done in between, and of that only what is still as expected. A restore that was ended half way can be repeated:
    what it has done already is as wanted, and what it was doing is told by directories that their owner may enter.
    """

    def __init__(
        self, current: Nodes, wanted: Nodes, expected: Nodes | None, only: Collection[str] | None, *, owners: bool
    ) -> None:
        """Decide at once; `owners` says whether this user can give files to others."""
        self.paths: list[str] = []
        """What is to be put back, by name, so that directories come before what is in them."""
        self.conflicts: list[LeftAlone] = []
        self.failed: list[LeftAlone] = []
        self._current = current
        self._wanted = wanted
        self._owners = owners
        self._expected = None if expected is None else self._completed(expected)
        unknown = [path for path, node in wanted.items() if node.lacks and node.kind == "directory"]
        for path in sorted(self._chosen(only)):
            above = [one for one in unknown if one != path and is_beneath(path, one)]
            # What is in a directory that nobody could look into is not known to be wrong.
            if not above:
                self._decide(path)

    def _completed(self, expected: Nodes) -> Nodes:
        """Take what lies in directories that could not be looked into then as what was left there."""
        closed = [path for path, node in expected.items() if node.lacks and node.kind == "directory"]
        if not closed:
            return expected
        found = {path: node for path, node in self._current.items() if any(is_beneath(path, one) for one in closed)}
        return {**expected, **found}

    def _chosen(self, only: Collection[str] | None) -> set[str]:
        paths = set(self._wanted) | set(self._current)
        if only is None or TOP in only:
            return paths
        named = frozenset(only)
        chosen = {path for path in paths if path in named or any(above in named for above in parents_of(path))}
        missing = {
            above
            for path in chosen & self._wanted.keys()
            for above in parents_of(path)
            if not _is_directory(self._current.get(above))
        }
        return chosen | missing

    def _decide(self, path: str) -> None:
        current, wanted = self._current.get(path), self._wanted.get(path)
        if self._as_wanted(current, wanted) or not self._is_ours(path, current, wanted):
            return
        if wanted is not None and (wanted.lacks or wanted.kind == "special"):
            why = f"a {wanted.content} is not kept" if not wanted.lacks else f"the snapshot lacks it: {wanted.lacks}"
            self.failed.append(LeftAlone(path, why))
        else:
            self.paths.append(path)

    def _as_wanted(self, current: Node | None, wanted: Node | None) -> bool:
        return self._same(current, wanted) or (wanted is not None and self._same(current, wanted.restorable()))

    def _same(self, one: Node | None, other: Node | None) -> bool:
        if one is None or other is None or one == other:
            return one == other
        return not self._owners and one._replace(uid=other.uid, gid=other.gid) == other

    def _as_expected(self, current: Node | None, expected: Node | None) -> bool:
        if current is not None and expected is not None and expected.lacks:
            # Nobody knows what was in it then; its size and mode must do.
            return self._same(current._replace(content="", lacks=""), expected._replace(content="", lacks=""))
        return self._same(current, expected)

    def _is_ours(self, path: str, current: Node | None, wanted: Node | None) -> bool:
        """Say whether a path may be put back; what others changed is noted as a conflict, unless it is only theirs."""
        if self._expected is None:
            return True
        expected = self._expected.get(path)
        changed = not self._same(expected, wanted)
        if _is_directory(current) and current.mode in _between(wanted, expected, changed=changed):
            return True
        if not changed:
            return False
        if self._as_expected(current, expected):
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
