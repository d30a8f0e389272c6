"""The mailbox's database: SQLite in write-ahead mode, with a short connection for each statement."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiosqlite

from examples.mailbox.statements import statements

SQL = statements("mailbox.sql")
_SCHEMA = statements("schema.sql")
_OPENING_TRIES = 50


def now() -> str:
    """Return the current time in the format of the database."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Database:
    """Run the named statements of mailbox.sql against one file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    async def create(self) -> None:
        """Create the file and its tables if they do not exist."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(_OPENING_TRIES):
            try:
                async with self.open() as connection:
                    await connection.execute(SQL["write_ahead"])
                    for statement in _SCHEMA.values():
                        await connection.execute(statement)
                return
            except sqlite3.OperationalError:
                # SQLite ignores its busy timeout while another process switches the journal mode.
                if attempt == _OPENING_TRIES - 1:
                    raise
                await asyncio.sleep(0.1)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[aiosqlite.Connection]:
        """Open a connection in autocommit mode, so that a statement is durable once it returns."""
        async with aiosqlite.connect(self.path, isolation_level=None) as connection:
            connection.row_factory = sqlite3.Row
            await connection.execute(SQL["wait_for_locks"])
            yield connection

    async def rows(self, name: str, values: Mapping[str, Any] | None = None) -> list[sqlite3.Row]:
        """Return the rows of one statement."""
        async with self.open() as connection:
            return list(await connection.execute_fetchall(SQL[name], dict(values or {})))

    async def write(self, name: str, values: Mapping[str, Any]) -> tuple[int, int]:
        """Run one writing statement; return the id of the new row and the number of changed rows."""
        async with self.open() as connection:
            cursor = await connection.execute(SQL[name], dict(values))
            return cursor.lastrowid or 0, cursor.rowcount

    async def record(self, tool: str, arguments: dict[str, Any], effect_id: str | None) -> int:
        """Record a request before anything is done; return the number of requests of this tool so far."""
        values = {"tool": tool, "arguments": json.dumps(arguments), "effect_id": effect_id, "at": now()}
        async with self.open() as connection:
            await connection.execute(SQL["begin"])
            await connection.execute(SQL["record_request"], values)
            counted = list(await connection.execute_fetchall(SQL["count_requests"], {"tool": tool}))
            await connection.commit()
        return int(counted[0]["requests"])
