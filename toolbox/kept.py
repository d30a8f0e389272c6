"""Keep a bounded part of what a process prints."""

from collections import deque


class Kept:
    """Hold the first or the last bytes of a stream; what is left out is said where it is missing."""

    def __init__(self, cap: int, *, last: bool = False) -> None:
        self._cap = cap
        self._last = last
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._seen = 0

    def add(self, chunk: bytes) -> None:
        """Take in what came."""
        self._seen += len(chunk)
        if not self._last:
            chunk = chunk[: self._cap - self._size]
        if not chunk:
            return
        self._chunks.append(chunk)
        self._size += len(chunk)
        while self._last and self._size - len(self._chunks[0]) >= self._cap:
            self._size -= len(self._chunks.popleft())

    @property
    def text(self) -> str:
        """What is kept, with broken characters replaced."""
        whole = b"".join(self._chunks)
        kept = whole[-self._cap :] if self._last else whole
        shown = kept.decode("utf-8", "replace")
        missing = self._seen - len(kept)
        if not missing:
            return shown
        note = f"[{missing} bytes are left out here]"
        return f"{note}\n{shown}" if self._last else f"{shown}\n{note}"
