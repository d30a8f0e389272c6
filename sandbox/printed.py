"""What a program prints: the first part is kept, the rest counted."""


class Printed:
    """Keep the first bytes of a stream and count all of them."""

    def __init__(self, kept: int) -> None:
        """Keep at most so many bytes."""
        self._most = kept
        self._kept = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self.total += len(data)
        self._kept += data[: self._most - len(self._kept)]

    @property
    def dropped(self) -> int:
        """How many bytes are not kept."""
        return self.total - len(self._kept)

    @property
    def text(self) -> str:
        """What is kept, whatever bytes it is made of."""
        return self._kept.decode("utf-8", "replace")
