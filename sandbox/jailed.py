"""What the kernel says about a jailed interpreter, read from outside."""

from pathlib import Path


class Jailed:
    """Read the use of one jailed process; a process that is gone reads as no use."""

    def __init__(self, supervisor: int) -> None:
        """Find the process by the nsjail that confines it."""
        children = _read(Path(f"/proc/{supervisor}/task/{supervisor}/children")).split()
        found = children or [str(pid) for pid in _children_of(supervisor)]
        self._place = Path("/proc", found[0]) if found else None

    def cpu_s(self) -> float:
        """Return its processor time so far."""
        if self._place is None:
            return 0.0
        spent = _read(self._place / "schedstat").split()
        return int(spent[0]) / 1e9 if spent else 0.0

    def anonymous_mb(self) -> float:
        """Return the memory that is its alone."""
        if self._place is None:
            return 0.0
        for line in _read(self._place / "status").splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) / 1024
        return 0.0


def _children_of(parent: int) -> list[int]:
    """Search all processes, for kernels that list no children."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _read(entry / "stat").rpartition(")")[2].split()
            if fields[1:2] == [str(parent)]:
                found.append(int(entry.name))
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
