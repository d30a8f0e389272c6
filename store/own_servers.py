"""Keep the servers that users have added for themselves; address and headers are sealed before they are written."""

import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from sqlalchemy import Row, bindparam, delete, func, insert, select

from backstay.errors import WorkerMisfit
from backstay.tools.own_server import OWN, OwnServer
from store.database.connection_tables import own_servers
from store.database.database import Database
from store.database.identity import lock_epoch
from store.database.transactions import Transaction, reading, writing
from store.secrets.seal import Seal

_OF_USER = own_servers.c.user_id == bindparam("user_")
_NAMED = (_OF_USER, own_servers.c.name == bindparam("name_"))


class OwnServers:
    """Keep the servers of all users, each under a name that no other has had."""

    def __init__(self, database: Database, clock: Callable[[], float], seal: Seal) -> None:
        """Read from `clock` when servers are added."""
        self.database = database
        self._clock = clock
        self._seal = seal

    @reading
    def listed(self, connection: Transaction, user_id: str | None = None) -> list[OwnServer]:
        """Return the servers of a user, or of everybody, by user and name."""
        chosen = select(own_servers).order_by(own_servers.c.user_id, own_servers.c.name)
        named = {} if user_id is None else {"user_": user_id}
        return [self._read(row) for row in connection.execute(chosen.where(_OF_USER) if named else chosen, named)]

    @writing
    def added(
        self,
        connection: Transaction,
        user_id: str,
        name: str,
        *,
        host: str,
        url: str,
        headers: Mapping[str, str],
        most: int,
    ) -> OwnServer | None:
        """Keep a server; None where its user has one of this name, or as many as they may have."""
        # Of two that are added at once, the second counts the first.
        lock_epoch(connection)
        named = {"user_": user_id, "name_": name}
        count = connection.execute(select(func.count()).select_from(own_servers).where(_OF_USER), named).scalar_one()
        if count >= most or connection.execute(select(own_servers.c.provider).where(*_NAMED), named).first():
            return None
        sealed = self._seal.close(json.dumps({"url": url, "headers": dict(headers)}).encode())
        values = {"user_id": user_id, "name": name, "host": host, "added_at": self._clock(), "sealed": sealed}
        # Decisions about the tools of a server are kept by its name, which must be nobody else's.
        provider = f"{OWN}{name}-{secrets.token_hex(4)}"
        connection.execute(insert(own_servers), {**values, "provider": provider})
        return self._read(connection.execute(select(own_servers).where(*_NAMED), named).one())

    @writing
    def removed(self, connection: Transaction, user_id: str, name: str) -> str:
        """Forget a server, also one that no key opens any more; return its provider, or nothing without one."""
        named = {"user_": user_id, "name_": name}
        found = connection.execute(select(own_servers.c.provider).where(*_NAMED), named).scalar()
        connection.execute(delete(own_servers).where(*_NAMED), named)
        return found or ""

    def _read(self, row: Row[Any]) -> OwnServer:
        said: dict[str, Any] = {"url": "", "headers": {}}
        # All processes of a store have the same keys: where none opens a row, its key has been removed. The
        # user's other servers, and their runs, go on without it.
        with suppress(WorkerMisfit):
            said = json.loads(self._seal.open(bytes(row.sealed)))
        return OwnServer(
            user_id=row.user_id,
            name=row.name,
            provider=row.provider,
            host=row.host,
            added_at=row.added_at,
            url=said["url"],
            headers=said["headers"],
        )
