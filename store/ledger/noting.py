"""Note what the ledger is to say of a run; all that one transaction notes is written at its end, with one signature."""

from typing import Any, NamedTuple

from sqlalchemy import Connection

from store.database.database import NOTES


class LedgerNote(NamedTuple):
    """Hold what one row is to say."""

    kind: str
    name: str
    body: dict[str, Any]


def note(connection: Connection, run: str, kind: str, name: str, body: dict[str, Any]) -> None:
    """Have the transaction under way write a row of the run; `body` is what may be shown."""
    connection.info.setdefault(NOTES, {}).setdefault(run, []).append(LedgerNote(kind, name, body))


def take_noted(connection: Connection) -> dict[str, list[LedgerNote]]:
    """Hand over what the transaction has noted until now, by run."""
    return connection.info.pop(NOTES, {})


def take_noted_of(connection: Connection, run: str) -> list[LedgerNote]:
    """Hand over what it has noted of one run."""
    return connection.info.get(NOTES, {}).pop(run, [])
