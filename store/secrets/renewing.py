"""Seal again what outlives runs, so that an old key can be removed.

The secrets and payloads of a run stay as they were sealed, until the run is pruned.
"""

from typing import Any, NamedTuple

import structlog
from sqlalchemy import Connection, Table, and_, select, update

from backstay.errors import StoreUnavailable, WorkerMisfit
from store.database.connection_tables import connections, oauth_clients, own_servers, sign_ins
from store.database.database import Database
from store.database.schema import standing_tasks, starts
from store.database.transactions import only_with, reading, writing
from store.secrets.seal import Seal

_OF_TRIGGERS = ((standing_tasks, "sealed_key"), (starts, "sealed_input"))
_OF_CONNECTIONS = tuple((table, "sealed") for table in (connections, sign_ins, oauth_clients, own_servers))
_log = structlog.get_logger(__name__)


class Renewal(NamedTuple):
    """Name a sealed value, and hold what it is and what it becomes."""

    table: Table
    column: str
    row: Any
    """The condition that is true of its row only."""
    before: bytes
    after: bytes


class Renewing:
    """Seal with the first key what was sealed with another one, or with the store's own."""

    def __init__(self, database: Database, *, of_triggers: Seal, of_connections: Seal) -> None:
        """Take the seals under which the parts of the store have written."""
        self.database = database
        self._seals = [(*place, of_triggers) for place in _OF_TRIGGERS]
        self._seals += [(*place, of_connections) for place in _OF_CONNECTIONS]
        # Without keys nothing can be sealed in another way, and no row need be read.
        self._seals = [place for place in self._seals if place[-1].has_keys]

    async def renew(self) -> None:
        """Seal all of it again; what no key opens is logged, and stays as it is."""
        await self._replace(await self._found())

    @reading
    def _found(self, connection: Connection) -> list[Renewal]:
        return [renewal for place in self._seals for renewal in _renewals(connection, *place)]

    @only_with("renewals")
    @writing
    def _replace(self, connection: Connection, renewals: list[Renewal]) -> None:
        for table, column, row, before, after in renewals:
            # Another process may have renewed a sign-in meanwhile; what that has brought stays.
            connection.execute(update(table).where(row, table.c[column] == before).values({column: after}))


def _renewals(connection: Connection, table: Table, column: str, seal: Seal) -> list[Renewal]:
    keys, sealed = [*table.primary_key.columns], table.c[column]
    found, unreadable = list[Renewal](), 0
    for *values, before in connection.execute(select(*keys, sealed).where(sealed.is_not(None))):
        try:
            after = seal.closed_anew(bytes(before))
        except (WorkerMisfit, StoreUnavailable):
            unreadable += 1
            continue
        if after is not None:
            row = and_(*(key == value for key, value in zip(keys, values, strict=True)))
            found.append(Renewal(table, column, row, bytes(before), after))
    if unreadable:
        fix = "append the key that they were sealed with to BACKSTAY_ENCRYPTION_KEYS, or add them again"
        _log.warning("secrets.unreadable", table=table.name, rows=unreadable, fix=fix)
    return found
