"""Show people what changed, whatever the files and their names hold."""

from collections.abc import Callable, Iterator, Sequence
from difflib import unified_diff

from backstay.shown import one_line
from sandbox.manifest_node import Node
from sandbox.snapshot_change import SnapshotChange
from sandbox.snapshot_files import shown

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
        yield line[0] + "\t".join(one_line(part, _LONGEST_LINE)[0] for part in content.split("\t"))
        if ends:
            yield _NO_NEWLINE
