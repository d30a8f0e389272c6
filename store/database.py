"""One engine, its read and write transactions, and their faults."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from backstay.errors import SettingsInvalid, StoreUnavailable
from store import sqlite
from store.faults import faults
from store.place import Place

BUSY_TIMEOUT_S = 5.0
"""How long a writer waits for another one."""


class Database:
    """Give short transactions on one engine; every fault is a StoreUnavailable."""

    def __init__(self, place: Place, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        """Prepare the engine; nothing is connected yet."""
        self.file = place.file
        self._busy_timeout_s = busy_timeout_s
        self._engine = _engine(place, busy_timeout_s)
        self._writing = self._engine.execution_options(**{sqlite.WRITES: True})
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        """Give a connection for reading."""
        with faults():
            async with self._engine.connect() as connection:
                yield connection

    @asynccontextmanager
    async def write(self) -> AsyncGenerator[AsyncConnection]:
        """Give a connection inside a transaction that no other writer of a SQLite file can interleave with."""
        if self.file is None:
            with faults():
                async with self._writing.begin() as connection:
                    yield connection
            return
        await self._take_turn()
        try:
            with faults():
                async with self._writing.begin() as connection:
                    yield connection
        finally:
            self._turn.release()

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()

    async def _take_turn(self) -> None:
        """Queue writers of this process fairly; SQLite itself lets them poll, and the unlucky starve."""
        try:
            async with asyncio.timeout(self._busy_timeout_s):
                await self._turn.acquire()
        except TimeoutError:
            raise StoreUnavailable(
                f"store: no turn to write within {self._busy_timeout_s:g} s; the database is locked or overloaded"
            ) from None


def _engine(place: Place, busy_timeout_s: float) -> AsyncEngine:
    """Make the engine; parameters stay out of errors and logs because some of them are sealed secrets."""
    logging.getLogger("aiosqlite").setLevel(logging.INFO)
    try:
        if place.file is None:
            return create_async_engine(place.url, hide_parameters=True, pool_pre_ping=True)
        engine = create_async_engine(
            place.url, hide_parameters=True, pool_timeout=busy_timeout_s, connect_args={"timeout": busy_timeout_s}
        )
    except ModuleNotFoundError as error:
        raise SettingsInvalid(
            f"BACKSTAY_DATABASE_URL: the driver {error.name!r} is not installed; install backstay[postgres]"
        ) from None
    sqlite.prepare(engine.sync_engine)
    return engine
