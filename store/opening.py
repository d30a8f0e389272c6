"""Open the store: files, keys, migrations, identity."""

import threading
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import structlog
from sqlalchemy import Connection, func, inspect, select

from backstay.errors import SettingsInvalid
from backstay.task.ledger.keys import Signer
from store.blobs.objects import ObjectLocation, Objects
from store.database.database import BUSY_TIMEOUT_S, Database
from store.database.faults import opening_faults
from store.database.identity import StoreIdentity, find_or_create
from store.database.place import DatabaseLocation, make_ready, place_of
from store.database.schema import metadata
from store.database.sqlite import SqliteDatabase
from store.glance import REVISION, is_unreleased
from store.secrets.seal import Seal
from store.store import Store

MIGRATIONS = Path(__file__).parent / "database" / "migrations"
_log = structlog.get_logger(__name__)
NEW_STORE = (
    "Start with a new, empty store: name a new folder in BACKSTAY_HOME, or an empty database and folder in "
    "BACKSTAY_DATABASE_URL and BACKSTAY_BLOBS"
)
NEEDS_POSTGRES = (
    "BACKSTAY_PAYLOADS: database needs Postgres, and the store is SQLite, which one host uses; name a database in "
    "BACKSTAY_DATABASE_URL, or remove BACKSTAY_PAYLOADS"
)
_alembic = threading.Lock()
"""alembic keeps the current migration in module globals."""


def migrate(connection: Connection, place: DatabaseLocation) -> None:
    """Run the missing migrations, all in the caller's transaction.

    Raises SettingsInvalid when the database is newer than this code, or older than its first release.
    """
    revision = _revision(connection)
    if is_unreleased(revision):
        raise SettingsInvalid(
            f"BACKSTAY_DATABASE_URL: {place.shown} is a store of revision {revision}, from before the first release, "
            f"which this version does not read; it was left as it is. {NEW_STORE}"
        )
    if revision != _newest():
        _upgrade(connection)
    elif lacking := _lacking(connection):
        raise SettingsInvalid(
            f"BACKSTAY_DATABASE_URL: {place.shown} lacks {lacking}: it was made before the first release, by an "
            f"earlier state of this version; it was left as it is. {NEW_STORE}"
        )


def _revision(connection: Connection) -> str:
    """Return which migration was the last; nothing where there was none."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return str(connection.exec_driver_sql(REVISION).scalar_one() or "")


def _lacking(connection: Connection) -> str:
    """Return a column that the database lacks; until the first release the first migration is edited in place."""
    columns = (Path(__file__).parent / f"columns_{connection.dialect.name}.sql").read_text(encoding="utf-8")
    found = {(table, column) for table, column in connection.exec_driver_sql(columns)}
    wanted = ((table.name, column.name) for table in metadata.tables.values() for column in table.columns)
    return next((f"{table}.{column}" for table, column in wanted if (table, column) not in found), "")


def _newest() -> str:
    """Return the revision that this code brings; each migration's file is named after its own."""
    return max((file.stem for file in MIGRATIONS.glob("versions/v*.py")), key=lambda name: int(name.removeprefix("v")))


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        with _alembic:
            command.upgrade(config, "head")
    except CommandError as error:
        raise SettingsInvalid(
            f"BACKSTAY_DATABASE_URL: another version of backstay made this database ({error}); update backstay"
        ) from error


@asynccontextmanager
async def open_store(
    *,
    database_url: str | None,
    home: Path,
    blobs: Path | None = None,
    payloads_in_database: bool = False,
    objects: ObjectLocation | None = None,
    encryption_keys: Sequence[str] = (),
    signer: Signer | None = None,
    clock: Callable[[], float] | None = None,
    busy_timeout_s: float = BUSY_TIMEOUT_S,
) -> AsyncGenerator[Store]:
    """Open the store, created and migrated if needed, and close it on exit.

    A `signer` signs the ledger. Leases count by the database's time, unless a `clock` stands for every other one.
    Raises SettingsInvalid for what cannot work until an operator does something, such as a damaged file or a wrong
    password, and StoreUnavailable when the database does not answer.
    """
    seal = Seal(encryption_keys)
    place = place_of(database_url, home)
    _require_postgres(place, payloads_in_database=payloads_in_database)
    bucket, database = _bucket(objects), _database(place, busy_timeout_s)
    try:
        with opening_faults():
            identity, now = await _begun(database, place, clock)
        _log.info("store.opened", store=identity.stamp, database=place.shown, encrypted=bool(encryption_keys))
        store = Store(
            *(database, identity, seal, blobs or home / "blobs"),
            payloads_in_database=payloads_in_database,
            objects=bucket,
            signer=signer,
            now=now,
            clock=clock or time.time,
        )
        try:
            yield store
        finally:
            await store.blobs.close()
    finally:
        await database.close()


async def _begun(
    database: Database, place: DatabaseLocation, clock: Callable[[], float] | None
) -> tuple[StoreIdentity, Callable[[Connection], float]]:
    """Migrate the database where needed; return the identity of the store, and what tells its time."""
    async with database.alone():
        identity = await database.write(partial(_migrated, place))
        return identity, await database.timekeeper() if clock is None else lambda _: clock()


def _require_postgres(place: DatabaseLocation, *, payloads_in_database: bool) -> None:
    if payloads_in_database and place.file is not None:
        raise SettingsInvalid(NEEDS_POSTGRES)


def _bucket(place: ObjectLocation | None) -> Objects | None:
    return None if place is None else Objects(place)


def _database(place: DatabaseLocation, busy_timeout_s: float) -> Database:
    if place.file is not None:
        make_ready(place.file)
        return SqliteDatabase(place.url, place.file, busy_timeout_s=busy_timeout_s)
    from store.database.postgres import PostgresDatabase

    return PostgresDatabase(place.url, busy_timeout_s=busy_timeout_s)


def _migrated(place: DatabaseLocation, connection: Connection) -> StoreIdentity:
    if connection.dialect.name == "postgresql":
        _require_unicode(connection, place)
    migrate(connection, place)
    return find_or_create(connection)


def _require_unicode(connection: Connection, place: DatabaseLocation) -> None:
    """Refuse a Postgres that could not keep every text as one: it would be lost, or be bytes, once it has happened."""
    encoding = connection.execute(select(func.current_setting("server_encoding"))).scalar_one()
    if encoding != "UTF8":
        rest = ", and restore a backup of this one into it" if _revision(connection) else ""
        raise SettingsInvalid(
            f"BACKSTAY_DATABASE_URL: {place.shown} has the encoding {encoding} and not UTF8, which a store needs; it "
            f"was left as it is. Make another: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0{rest}"
        )
