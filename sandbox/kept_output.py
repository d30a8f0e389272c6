"""What a command says: its beginning and its end are kept, the rest is counted."""


class KeptOutput:
    """Keep the first and the last bytes of a stream and count all of them."""

    def __init__(self, most: int) -> None:
        """Keep at most so many bytes: two thirds from the beginning, one third from the end."""
        self._first = bytearray()
        self._last = bytearray()
        self._most_last = most // 3
        self._most_first = most - self._most_last
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self.total += len(data)
        room = self._most_first - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        del self._last[: -self._most_last or None]

    @property
    def whole(self) -> bytes:
        """The kept bytes."""
        return bytes(self._first + self._last)

    @property
    def text(self) -> str:
        """What is kept, whatever bytes it is made of; what is missing is said where it is missing."""
        left = self.total - len(self._first) - len(self._last)
        gap = f"\n... {left} bytes are left out ...\n" if left else ""
        return self._first.decode("utf-8", "replace") + gap + self._last.decode("utf-8", "replace")
