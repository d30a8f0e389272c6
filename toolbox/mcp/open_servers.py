"""Keep the servers of users open as long as they are used: the most recent ones, and no more than a number of them."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """Be something that is open."""

    async def close(self) -> None:
        """End it."""
        ...


class OpenServer(ABC):
    """Be a server as one user has it, which is not closed while something is asked of it."""

    def __init__(self) -> None:
        """Begin idle."""
        self._uses = 0

    @property
    def in_use(self) -> bool:
        """Return whether something is asked of it just now."""
        return self._uses > 0

    @contextmanager
    def used(self) -> Generator[None]:
        """Count it as in use for as long as the block lasts."""
        self._uses += 1
        try:
            yield
        finally:
            self._uses -= 1

    @abstractmethod
    async def close(self) -> None:
        """End the connection to the server."""


Opened = TypeVar("Opened", bound=OpenServer)


class OpenServers(Generic[Opened]):
    """Hold what is open, by name; of more than `most`, the idle ones that were used longest ago are closed."""

    def __init__(self, most: int) -> None:
        """Begin with none."""
        self._most = most
        self._open: dict[str, Opened] = {}
        self._closing = set[asyncio.Task[None]]()

    def get(self, name: str, make: Callable[[], Opened]) -> Opened:
        """Return what is open under a name, made where nothing is."""
        found = self._open.pop(name, None) or make()
        self._open[name] = found  # the most recently used goes last
        idle = [known for known, each in self._open.items() if not each.in_use and each is not found]
        for known in idle[: max(0, len(self._open) - self._most)]:
            self.end(self._open.pop(known))
        return found

    def end_where(self, is_over: Callable[[str, Opened], bool]) -> None:
        """Close those that are over and that nobody uses just now."""
        for name in [name for name, each in self._open.items() if not each.in_use and is_over(name, each)]:
            self.end(self._open.pop(name))

    def end(self, server: Closable) -> None:
        """Close what nobody uses any more, in the background."""
        task = asyncio.create_task(server.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close all that is open."""
        opened, self._open = list(self._open.values()), {}
        await asyncio.gather(*(each.close() for each in opened), *self._closing, return_exceptions=True)
