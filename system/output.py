"""Output of processes, kept within a bound."""


class BoundedOutput:
    """Keep the first and the last bytes of a stream, and count all of them."""

    def __init__(self, first: int, last: int = 0) -> None:
        """Keep at most the given number of bytes of the beginning and of the end."""
        self._most_first = first
        self._most_last = last
        self._first = bytearray()
        self._last = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self.total += len(data)
        room = self._most_first - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        del self._last[: max(0, len(self._last) - self._most_last)]

    @property
    def kept(self) -> bytes:
        """The bytes that are kept, without a note about the others."""
        return bytes(self._first + self._last)

    @property
    def dropped(self) -> int:
        """How many bytes are not kept."""
        return self.total - len(self._first) - len(self._last)

    @property
    def text(self) -> str:
        """The output that is kept, as text, with a note where bytes are left out; broken characters are replaced."""
        first, last = (part.decode("utf-8", "replace") for part in (self._first, self._last))
        if not self.dropped:
            return first + last
        return "\n".join(part for part in (first, f"[{self.dropped} bytes are left out here]", last) if part)
