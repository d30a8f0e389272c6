"""Cut a stream of bytes into lines without ever holding more than the cap."""

from dataclasses import dataclass

_EDGE = 4096


@dataclass(frozen=True, slots=True)
class Overlong:
    """Stand for a line that was dropped because it passed the cap."""

    head: bytes
    tail: bytes


class Lines:
    """Collect chunks until a line is whole; the cost stays linear however long the line is."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    def feed(self, chunk: bytes) -> list[bytes | Overlong]:
        """Return the lines that this chunk completes."""
        *ends, rest = chunk.split(b"\n")
        found: list[bytes | Overlong] = []
        for end in ends:
            self._add(end)
            found.append(self._take())
        if rest:
            self._add(rest)
        return found

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._cap:
            self._parts.append(part)
            return
        if self._parts:
            self._head = b"".join(self._parts[:2])[:_EDGE]
            self._tail = self._parts[-1][-_EDGE:]
            self._parts = []
        self._head = self._head or part[:_EDGE]
        self._tail = (self._tail + part[-_EDGE:])[-_EDGE:]

    def _take(self) -> bytes | Overlong:
        line = b"".join(self._parts) if self._size <= self._cap else Overlong(self._head, self._tail)
        self._parts, self._size, self._head, self._tail = [], 0, b"", b""
        return line
