"""What became different between two snapshots."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Literal

from backstay.shown import one_line
from sandbox.snapshots.files import shown
from sandbox.snapshots.types import Node

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


Read = Callable[[str], bytes]

_MOST_BYTES = 262_144
_MOST_LINES = 4000
_LONGEST_LINE = 400
_NO_NEWLINE = "\\ no newline at the end"


def diff_text(changes: Sequence[SnapshotChange], read: Read, limit_chars: int) -> str:
    """Return the changes as text of at most `limit_chars` characters, and say how much of them is not shown.

    A line that begins with a word is ours; lines of files begin with `+`, `-`, a space or a backslash.
    """
    lines: list[str] = []
    # Room for the last line, which says what was cut.
    room = limit_chars - 60
    for number, change in enumerate(changes):
        for line in _lines_of(change, read):
            room -= len(line) + 1
            if room < 0:
                lines.append(f"cut: {number} of {len(changes)} changes are shown whole")
                return "\n".join(lines)[:limit_chars]
            lines.append(line)
    return "\n".join(lines)[:limit_chars]


def _lines_of(change: SnapshotChange, read: Read) -> Iterator[str]:
    before, after = change.before, change.after
    moved = "" if not change.moved else f", moved {'from' if before is None else 'to'} {shown(change.moved)}"
    facts = " -> ".join(_facts(node, owner=change.kind == "mode") for node in (before, after) if node is not None)
    yield f"{change.kind} {change.shown} ({facts}{moved})"
    if change.kind == "mode" or change.moved:
        return
    old, new = _text(before, read), _text(after, read)
    if old is None or new is None:
        return
    yield from _unified(old, new)


def _facts(node: Node, *, owner: bool) -> str:
    who = f", owner {node.uid}:{node.gid}" if owner else ""
    match node.kind:
        case "symlink":
            said = f"link to {shown(node.content)}"
        case "special":
            said = f"{node.content}, mode {node.mode:04o}{who}"
        case "directory":
            said = f"directory, mode {node.mode:04o}{who}"
        case "file":
            said = f"{node.size} bytes, mode {node.mode:04o}{who}"
    return f"{said}, not kept: {node.lacks}" if node.lacks else said


def _text(node: Node | None, read: Read) -> list[str] | None:
    """Return the lines of a small text file, nothing for nothing, and None for what has no lines to show."""
    if node is None or node.kind != "file":
        return []
    if node.lacks or node.size > _MOST_BYTES:
        return None
    data = read(node.content)
    if b"\0" in data:
        return None
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        return None
    if lines[-1]:
        lines[-1] += "\n" + _NO_NEWLINE
    else:
        lines.pop()
    return lines if len(lines) <= _MOST_LINES else None


def _unified(old: list[str], new: list[str]) -> Iterator[str]:
    # The two first lines name files, which is said already.
    for number, line in enumerate(unified_diff(old, new, lineterm="", n=3)):
        if number < 2:
            continue
        if line.startswith("@@"):
            yield line
            continue
        content, ends, _ = line[1:].partition("\n")
        # Tabs alone are shown as they are: they move text, but hide none.
        yield line[0] + "\t".join(one_line(part, _LONGEST_LINE) for part in content.split("\t"))
        if ends:
            yield _NO_NEWLINE
