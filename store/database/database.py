"""Define what the rest of the store needs from a database."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from sqlalchemy import Connection

BUSY_TIMEOUT_S = 5.0
"""How long a writer waits for another writer."""

LOCK_WAIT_S = 60.0
"""How long a process waits while another one runs migrations."""

NOTES = "notes"
"""Under this name, what is to be written before a commit waits with the connection."""

Answer = TypeVar("Answer")


class Database(Protocol):
    """Run short functions of a connection, each in a transaction of its own.

    Every fault is raised as a StoreUnavailable with a one-line message.
    """

    before_commit: Callable[[Connection], None]
    """Called at the end of each transaction that writes, before it is committed."""

    async def read(self, work: Callable[[Connection], Answer]) -> Answer:
        """Run work that only reads."""
        ...

    async def write(self, work: Callable[[Connection], Answer]) -> Answer:
        """Run work that writes; everything is committed, or nothing."""
        ...

    async def timekeeper(self) -> Callable[[Connection], float]:
        """Return what tells the database's time within a transaction, in unix seconds; call this while `alone`.

        All hosts and processes read the same time from it, whatever their own clocks say.
        """
        ...

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Hold an exclusive lock across processes, for migrations."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...
