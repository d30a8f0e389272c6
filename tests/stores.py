"""Let the stores that tests open by the thousand do once per process what each would do anew."""

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.pool import StaticPool
from sqlalchemy.util import LRUCache

from store.database.place import make_ready, place_of
from store.opening import migrate

_compiled: Any = LRUCache(5000)


class SharedStatements:
    """Compile a statement once for all engines of a dialect; each engine's own would take half of a store's time."""

    def __hash__(self) -> int:
        """Return the same for each dialect of a class, since the cache knows statements by dialect."""
        return hash(type(self))

    def __eq__(self, other: object) -> bool:
        """Return whether the other one compiles alike."""
        return type(self) is type(other)

    @classmethod
    def engine_created(cls, engine: Engine) -> None:
        """Give the engine the common cache; SQLAlchemy calls this."""
        vars(engine)["_compiled_cache"] = _compiled  # no public way leads to it


class SharedSqlite(SharedStatements, SQLiteDialect_pysqlite):
    """Compile statements for SQLite."""

    supports_statement_cache = True


class SharedPostgres(SharedStatements, PGDialect_asyncpg):
    """Compile statements for Postgres."""

    supports_statement_cache = True


def share_statements() -> None:
    """Let every engine that is created from now on use the common cache."""
    registry.register("sqlite", __name__, SharedSqlite.__name__)
    registry.register("postgresql.asyncpg", __name__, SharedPostgres.__name__)


def prepare(home: Path) -> None:
    """Put a database into a new home that has its tables and nothing in them, as the first opening would make them."""
    file = place_of(None, home).file
    assert file is not None
    if not file.exists():
        make_ready(file)
        file.write_bytes(_migrated())


@cache
def _migrated() -> bytes:
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as kept:
        engine = create_engine("sqlite://", creator=lambda: kept, poolclass=StaticPool)
        with engine.begin() as connection:
            migrate(connection, place_of(None, Path()))
        return kept.serialize()
