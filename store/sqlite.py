"""Everything that only SQLite needs; the rest of the store is portable SQL."""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event

from backstay.errors import SettingsInvalid

WRITES = "backstay_writes"
"""The execution option that marks a transaction which will write."""

_HERE = Path(__file__).parent
_CONNECT = tuple(
    line for line in (_HERE / "sqlite_connect.sql").read_text(encoding="utf-8").splitlines() if line[:2] != "--"
)
_BEGIN = (_HERE / "sqlite_begin.sql").read_text(encoding="utf-8").strip()


def prepare(engine: Engine) -> None:
    """Make every connection durable and every write transaction take the write lock at its start.

    A transaction that reads first and writes later could otherwise decide on what another worker has changed since.
    """
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)


def _on_connect(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    for statement in _CONNECT:
        cursor.execute(statement)
        answer = cursor.fetchone()
        if answer is not None and answer[0] != "wal":
            cursor.close()
            raise SettingsInvalid(
                f"BACKSTAY_DATABASE_URL: SQLite answers {answer[0]!r} to {statement!r}; put the file on a local disk"
            )
    cursor.close()


def _on_begin(connection: Connection) -> None:
    if connection.get_execution_options().get(WRITES):
        connection.exec_driver_sql(_BEGIN)
