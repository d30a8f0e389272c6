"""Blobs that were written or read a moment ago."""

from collections import OrderedDict


class Recent:
    """Keep the most recently used bytes, up to a total size; one blob may take a quarter of it."""

    def __init__(self, limit: int = 32 * 1024 * 1024) -> None:
        """Start empty."""
        self._limit = limit
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    def get(self, ref: str) -> bytes | None:
        """Return the bytes, now the most recent, or None."""
        if ref in self._kept:
            self._kept.move_to_end(ref)
        return self._kept.get(ref)

    def put(self, ref: str, data: bytes) -> None:
        """Keep the bytes and let the oldest go."""
        if len(data) > self._limit // 4 or ref in self._kept:
            return
        self._kept[ref] = data
        self._size += len(data)
        while self._size > self._limit:
            self._size -= len(self._kept.popitem(last=False)[1])
