"""Keep the store in PostgreSQL, for several hosts."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from sqlalchemy import URL, Connection, Double, cast, event, extract, func, select
from sqlalchemy.engine.interfaces import AdaptedConnection, ExceptionContext
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from backstay.errors import SettingsInvalid
from store.database.database import BUSY_TIMEOUT_S, LOCK_WAIT_S, NOTES, Answer
from store.database.faults import Collision, faults
from store.database.postgres_fields import driver_arguments
from store.database.postgres_hosts import connect_first, hosts_of

_TRIES = 5
_ADVISORY_LOCK = 0x6261636B73746179
"""`backstay` in ASCII."""
IDLE_S = 10.0
"""After how long the server ends the transaction of a process that says nothing more; it may hold what others need."""
CONNECT_S = 10.0
ANSWER_S = LOCK_WAIT_S + 30
"""After how long a server that does not answer counts as away."""
_READ_ONLY = "25006"
"""The answer to a write by a server that was made a standby, or closed to writes, under open connections."""
_NOW = select(cast(extract("epoch", func.clock_timestamp()), Double))


class PostgresDatabase:
    """Run work on the event loop through SQLAlchemy's async engine."""

    def __init__(self, url: URL, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        """Prepare the engine; nothing is connected yet. Raises SettingsInvalid for an address that cannot be used."""
        limits = {"lock_timeout": busy_timeout_s, "idle_in_transaction_session_timeout": IDLE_S}
        self._limits = "; ".join(f"SET {name} = {int(seconds * 1000)}" for name, seconds in limits.items())
        self.before_commit: Callable[[Connection], None] = lambda _: None
        options: dict[str, Any] = {"timeout": CONNECT_S, "command_timeout": ANSWER_S}
        options["async_creator_fn"] = partial(connect_first, hosts_of(url))
        address, given = driver_arguments(url)
        try:
            self._engine = create_async_engine(
                address,
                hide_parameters=True,
                pool_pre_ping=True,
                # Those who wait for a row then see what it has become, whatever the database does by default.
                isolation_level="READ COMMITTED",
                connect_args={**options, **given},
            )
        except ModuleNotFoundError as error:
            raise SettingsInvalid(
                f"BACKSTAY_DATABASE_URL: the driver {error.name!r} is not installed; install backstay[postgres]"
            ) from None
        event.listen(self._engine.sync_engine, "connect", self._limit)
        event.listen(self._engine.sync_engine, "handle_error", _leave_read_only)

    def _limit(self, connection: AdaptedConnection, _: ConnectionPoolEntry) -> None:
        """Set the time limits of a new session; a pooler refuses a connection that asks for them at its beginning."""
        # Past the adapter, which would begin a transaction and take several round trips.
        connection.run_async(lambda session: session.execute(self._limits))

    async def read(self, work: Callable[[Connection], Answer]) -> Answer:
        """Run work that only reads."""
        with faults():
            async with self._engine.connect() as connection:
                return await connection.run_sync(work)

    async def write(self, work: Callable[[Connection], Answer]) -> Answer:
        """Run work that writes; it must lock the rows that it bases decisions on.

        A row that does not exist yet cannot be locked. If two writers insert it, one starts again and then finds it.
        """
        for _ in range(_TRIES - 1):
            try:
                return await self._write(work)
            except Collision:
                continue
        return await self._write(work)

    async def _write(self, work: Callable[[Connection], Answer]) -> Answer:
        def whole(connection: Connection) -> Answer:
            connection.info.pop(NOTES, None)
            answer = work(connection)
            self.before_commit(connection)
            return answer

        with faults():
            async with self._engine.begin() as connection:
                return await connection.run_sync(whole)

    async def timekeeper(self) -> Callable[[Connection], float]:
        """Return what asks the server for its time; during a transaction it goes on."""
        return lambda connection: connection.execute(_NOW).scalar_one()

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """Hold an advisory lock; the server releases it when this process dies."""
        with faults():
            connection = await self._engine.connect()
        try:
            with faults():
                await connection.execute(select(func.set_config("lock_timeout", f"{int(LOCK_WAIT_S)}s", False)))
                await connection.execute(select(func.pg_advisory_lock(_ADVISORY_LOCK)))
                # The lock belongs to the session; a transaction would be ended as one that says nothing.
                await connection.commit()
            yield
        finally:
            await connection.invalidate()
            await connection.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()


def _leave_read_only(context: ExceptionContext) -> None:
    """Give up all connections to a server that takes no more writes: another one may have its place by now."""
    if getattr(context.original_exception, "sqlstate", None) == _READ_ONLY:
        context.is_disconnect = True
