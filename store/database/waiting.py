"""Let what one activity writes wait for its next transaction, so that one commit writes it all.

Within `async with together(database)`, `write_later` keeps work back. The next write of the block takes it along in its
own transaction, before its own work, and the end of the block writes what is left. Without such a block, `write_later`
writes at once.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from store.database.database import Answer, Database


@dataclass(frozen=True, eq=False)
class Later:
    """Hold work that may be done more than once, and what follows its commit."""

    work: Callable[[Connection], Any]
    then: Callable[[Any], Awaitable[None]]
    value: Any = None
    """What is to be written, for those who read it before that."""


class Waiting:
    """Hold what a block has yet to write, in its order."""

    def __init__(self, database: Database) -> None:
        """Use `together` instead."""
        self.database = database
        self.is_over = False
        """Tasks may outlive the block that they began in."""
        self._kept: dict[Hashable, Later] = {}

    def value(self, key: Hashable) -> Any:
        """Return what waits under a key, or None."""
        kept = self._kept.get(key)
        return None if kept is None else kept.value

    @property
    def keys(self) -> tuple[Hashable, ...]:
        """Return the keys of all that waits."""
        return tuple(self._kept)

    def add(self, key: Hashable, later: Later) -> None:
        """Keep work back; work under a key that waits already is the same work."""
        self._kept.setdefault(key, later)

    def drop(self, key: Hashable) -> None:
        """Forget work that needs no transaction any more."""
        self._kept.pop(key, None)

    def clear(self) -> None:
        """Forget all that waits."""
        self._kept.clear()

    async def flush(self) -> None:
        """Write what waits, and what joins it meanwhile."""
        while self._kept:
            await self.write(lambda _: None)

    async def write(self, work: Callable[[Connection], Answer]) -> Answer:
        """Do work in a transaction, after what waits for one.

        Waiting writes are only taken off once they are committed. So of two writes that go on at once each brings all
        that its own rows name, whichever of them fails.
        """
        some = dict(self._kept)
        if not some:
            return await self.database.write(work)

        def whole(connection: Connection) -> tuple[list[Any], Answer]:
            return [later.work(connection) for later in some.values()], work(connection)

        answers, answer = await self.database.write(whole)
        for (key, later), written in zip(some.items(), answers, strict=True):
            if self._kept.get(key) is later:
                del self._kept[key]
                await later.then(written)
        return answer


_waiting: ContextVar[Waiting | None] = ContextVar("waiting", default=None)


@asynccontextmanager
async def together(database: Database) -> AsyncGenerator[Waiting]:
    """Let what the block writes `later` wait; a block that fails writes nothing more, as it will be done again."""
    waiting = Waiting(database)
    token = _waiting.set(waiting)
    try:
        yield waiting
        await waiting.flush()
    finally:
        waiting.is_over = True
        _waiting.reset(token)


def waiting_for(database: Database) -> Waiting | None:
    """Return what waits in this block for a transaction of this database; None without such a block."""
    waiting = _waiting.get()
    return None if waiting is None or waiting.is_over or waiting.database is not database else waiting


async def write(database: Database, work: Callable[[Connection], Answer]) -> Answer:
    """Do work in a transaction, together with what waits for one."""
    waiting = waiting_for(database)
    return await (database.write(work) if waiting is None else waiting.write(work))


async def write_later(
    database: Database,
    work: Callable[[Connection], Answer],
    then: Callable[[Answer], Awaitable[None]],
    *,
    key: Hashable = None,
    value: Any = None,
) -> None:
    """Do work in the next transaction of this block, and `then` call what follows its commit."""
    waiting = waiting_for(database)
    if waiting is None:
        await then(await database.write(work))
    else:
        waiting.add(object() if key is None else key, Later(work, then, value))
