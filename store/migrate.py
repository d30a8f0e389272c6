"""Bring the schema up to date, one process and one thread at a time."""

import asyncio
import fcntl
import os
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, func, select

from backstay.errors import SettingsInvalid, StoreUnavailable
from store.database import Database
from store.place import Place

MIGRATIONS = Path(__file__).parent / "migrations"
LOCK_WAIT_S = 60.0
_POLL_S = 0.02
_ADVISORY_LOCK = 0x6261636B73746179
"""`backstay` in ASCII."""
_alembic = threading.Lock()
"""alembic keeps the current migration in module globals."""
_log = structlog.get_logger(__name__)


async def migrate(place: Place) -> None:
    """Run what is missing; the caller holds the lock.

    Runs in a thread with a loop of its own, since alembic is synchronous and slow to import its scripts.
    """
    await asyncio.to_thread(lambda: asyncio.run(_migrate(place)))


async def _migrate(place: Place) -> None:
    database = Database(place)
    try:
        async with database.write() as connection:
            await connection.run_sync(_upgrade)
    finally:
        await database.close()


def _upgrade(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        with _alembic:
            command.upgrade(config, "head")
    except CommandError as error:
        raise SettingsInvalid(
            f"BACKSTAY_DATABASE_URL: the database was made by another version of backstay ({error}); update backstay"
        ) from error


@asynccontextmanager
async def migration_lock(database: Database) -> AsyncGenerator[None]:
    """Let one opener at a time migrate and create."""
    if database.file is not None:
        async with _file_lock(database.file.with_name(database.file.name + ".lock")):
            yield
        return
    async with database.read() as connection:
        await connection.execute(select(func.pg_advisory_lock(_ADVISORY_LOCK)))
        try:
            yield
        finally:
            await connection.execute(select(func.pg_advisory_unlock(_ADVISORY_LOCK)))


@asynccontextmanager
async def _file_lock(path: Path) -> AsyncGenerator[None]:
    opened = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        await _acquire(opened, path)
        yield
    finally:
        os.close(opened)


async def _acquire(opened: int, path: Path) -> None:
    """Poll, because a thread that blocks in the lock could not be cancelled."""
    loop = asyncio.get_running_loop()
    give_up = loop.time() + LOCK_WAIT_S
    waited = False
    while True:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if loop.time() > give_up:
                raise StoreUnavailable(
                    f"store: another process has held {path} for {LOCK_WAIT_S:g} s; see what it is doing"
                ) from None
        if not waited:
            _log.info("store.waits_for_migration", lock=str(path))
            waited = True
        await asyncio.sleep(_POLL_S)
