"""Open the store: files, keys, migrations, identity."""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from store.database import BUSY_TIMEOUT_S, Database
from store.identity import find_or_make
from store.migrate import migrate, migration_lock
from store.place import make_ready, place_of
from store.seal import Seal
from store.store import Store

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_store(
    *,
    database_url: str | None,
    home: Path,
    blobs: Path | None = None,
    encryption_keys: Sequence[str] = (),
    clock: Callable[[], float] = time.time,
    busy_timeout_s: float = BUSY_TIMEOUT_S,
) -> AsyncGenerator[Store]:
    """Open the store, made and migrated when needed, and close it at the end.

    Raises SettingsInvalid for a setting that cannot work, StoreUnavailable when the database does not answer.
    """
    seal = Seal(encryption_keys)
    place = place_of(database_url, home)
    if place.file is not None:
        make_ready(place.file)
    database = Database(place, busy_timeout_s=busy_timeout_s)
    try:
        async with migration_lock(database):
            await migrate(place)
            identity = await find_or_make(database)
        _log.info("store.opened", store=identity.stamp, database=place.shown, encrypted=bool(encryption_keys))
        yield Store(database, identity, seal, blobs or home / "blobs", clock)
    finally:
        await database.close()
