"""Numbers for jails that live at the same time: each has its own, so that each can be another user outside."""

import heapq


class Slots:
    """Hand out the lowest free number."""

    def __init__(self) -> None:
        """Begin with all numbers free."""
        self._free: list[int] = []
        self._next = 0

    def lease(self) -> int:
        """Return a number that nobody else holds."""
        if self._free:
            return heapq.heappop(self._free)
        self._next += 1
        return self._next - 1

    def release(self, slot: int) -> None:
        """Take a number back."""
        heapq.heappush(self._free, slot)
