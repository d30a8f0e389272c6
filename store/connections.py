"""Keep what people have let backstay do at servers, the sign-ins that were begun, and how backstay is known there."""

import hmac
import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from typing import Any
from uuid import UUID

from sqlalchemy import Row, bindparam, delete, insert, select, update

from backstay.errors import WorkerMisfit
from backstay.tools.connection import SIGN_IN_S, Connection, Grant
from store.database.connection_tables import connections, oauth_clients, sign_ins
from store.database.database import Database
from store.database.transactions import Transaction, reading, writing
from store.secrets.seal import Seal

MOST_SIGN_INS = 20
"""How many sign-ins of one user may be under way; the oldest gives way."""
_NAMED = (connections.c.user_id == bindparam("user_"), connections.c.provider == bindparam("provider_"))
_FIND = select(connections).where(*_NAMED)
_OF_CLIENT = (
    oauth_clients.c.provider == bindparam("provider_"),
    oauth_clients.c.issuer == bindparam("issuer_"),
    oauth_clients.c.return_to == bindparam("return_"),
)


class Connections:
    """Keep one connection for each user and server; tokens are sealed before they are written."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], float],
        now: Callable[[Transaction], float],
        seal: Seal,
        key: bytes,
    ) -> None:
        """Read the time of leases from `now`, on which all processes agree, and what people read from `clock`.

        `key` is the store's own, for this.
        """
        self._key = key
        self.database = database
        self._clock = clock
        self._now = now
        self._seal = seal

    def mark(self, user_id: str, provider: str) -> str:
        """Return what marks a question to a user about a server as ours; only who has the store can tell it.

        It looks like any id, so that it is not taken for a secret and masked.
        """
        said = json.dumps(["sign in", user_id, provider]).encode()
        return str(UUID(bytes=hmac.digest(self._key, said, "sha256")[:16]))

    @reading
    def get(self, connection: Transaction, user_id: str, provider: str) -> Connection | None:
        """Return the connection of a user to a server, also one that has ended."""
        row = connection.execute(_FIND, _names(user_id, provider)).first()
        return None if row is None else self._read(row)

    @reading
    def listed(self, connection: Transaction, user_id: str | None = None) -> list[Connection]:
        """Return all connections of a user, or of everybody, by user and server."""
        chosen = select(connections).order_by(connections.c.user_id, connections.c.provider)
        if user_id is not None:
            chosen = chosen.where(connections.c.user_id == user_id)
        return [self._read(row) for row in connection.execute(chosen)]

    @writing
    def connect(
        self,
        connection: Transaction,
        user_id: str,
        provider: str,
        grant: Grant,
        *,
        ends_at: float | None,
        before: str | None = None,
    ) -> Connection:
        """Keep what a sign-in has brought, in place of what was there.

        `before` names what must have been there, empty: nothing; another one is kept, and returned.
        """
        there = None if before is None else connection.execute(_FIND, _names(user_id, provider)).first()
        if there is not None and there.id != before:
            return self._read(there)
        # Only what was seen: where another worker was faster, this one collides, and looks again.
        seen = () if before is None else (connections.c.id == before,)
        connection.execute(delete(connections).where(*_NAMED, *seen), _names(user_id, provider))
        at = self._clock()
        values = {
            "user_id": user_id,
            "provider": provider,
            "id": secrets.token_hex(16),
            "version": 1,
            "state": "connected",
            "wanted": "",
            "connected_at": at,
            "refreshed_at": at,
            "ends_at": ends_at,
            "lease": 0.0,
            "token": "",
            "sealed": self._closed(asdict(grant)),
        }
        connection.execute(insert(connections), values)
        return self._read(connection.execute(_FIND, _names(user_id, provider)).one())

    @writing
    def claim(self, connection: Transaction, known: Connection, for_s: float) -> str:
        """Return what lets the caller alone renew a connection for a while; empty where another does, or has.

        One statement decides, so the row is locked no longer than that.
        """
        now, token = self._now(connection), secrets.token_hex(16)
        free = (connections.c.lease < now, connections.c.state == "connected", *_same(known))
        claimed = connection.execute(update(connections).where(*free).values(lease=now + for_s, token=token))
        return token if claimed.rowcount else ""

    @writing
    def renewed(self, connection: Transaction, known: Connection, token: str, grant: Grant | None) -> bool:
        """Keep the tokens that a renewal has brought, or none where the issuer renews no more.

        Return whether the caller still had the right to: the connection may be gone, or be another one.
        """
        values = {"version": known.version + 1, "lease": 0.0, "token": "", "refreshed_at": self._clock()}
        values |= {"state": "ended", "sealed": None} if grant is None else {"sealed": self._closed(asdict(grant))}
        mine = (*_same(known), connections.c.token == token)
        return connection.execute(update(connections).where(*mine).values(values)).rowcount > 0

    @writing
    def unclaimed(self, connection: Transaction, known: Connection, token: str) -> None:
        """Let others renew a connection after all."""
        mine = (*_same(known), connections.c.token == token)
        connection.execute(update(connections).where(*mine).values(lease=0.0, token=""))

    @writing
    def refused(self, connection: Transaction, known: Connection, *, wanted: str) -> None:
        """Keep that the server takes these tokens no more, or wants more to be allowed."""
        values = {"wanted": wanted} if wanted else {"state": "ended"}
        connection.execute(update(connections).where(*_same(known)).values(values))

    @writing
    def forget(self, connection: Transaction, user_id: str, provider: str) -> Connection | None:
        """Remove a connection, and the sign-ins that would bring another; return what it was."""
        row = connection.execute(_FIND, _names(user_id, provider)).first()
        found = None if row is None else self._read(row)
        connection.execute(delete(connections).where(*_NAMED), _names(user_id, provider))
        mine = (sign_ins.c.user_id == user_id, sign_ins.c.provider == provider)
        connection.execute(delete(sign_ins).where(*mine))
        return found

    @writing
    def begin_sign_in(
        self, connection: Transaction, state: str, user_id: str, provider: str, said: dict[str, Any]
    ) -> None:
        """Keep what finishes a sign-in; the state itself is not kept, so a look into the table opens nothing."""
        now = self._now(connection)
        connection.execute(delete(sign_ins).where(sign_ins.c.until < now))
        mine = select(sign_ins.c.id).where(sign_ins.c.user_id == user_id)
        newest = mine.order_by(sign_ins.c.until.desc()).limit(MOST_SIGN_INS - 1)
        connection.execute(delete(sign_ins).where(sign_ins.c.user_id == user_id, sign_ins.c.id.not_in(newest)))
        named = {"id": _digest(state), "user_id": user_id, "provider": provider}
        connection.execute(insert(sign_ins), {**named, "until": now + SIGN_IN_S, "sealed": self._closed(said)})

    @writing
    def take_sign_in(self, connection: Transaction, state: str) -> tuple[str, str, dict[str, Any]] | None:
        """Return the user, the server and what finishes a sign-in, once; whoever asks, it is gone then."""
        named = sign_ins.c.id == _digest(state)
        row = connection.execute(select(sign_ins).where(named)).first()
        if row is None or not connection.execute(delete(sign_ins).where(named)).rowcount:
            return None
        if row.until < self._now(connection):
            return None
        return row.user_id, row.provider, self._opened(row.sealed)

    @reading
    def client(self, connection: Transaction, provider: str, issuer: str, return_to: str) -> dict[str, Any] | None:
        """Return how backstay is known to an issuer for one server, where it was registered there."""
        named = {"provider_": provider, "issuer_": issuer, "return_": return_to}
        sealed = connection.execute(select(oauth_clients.c.sealed).where(*_OF_CLIENT), named).scalar()
        with suppress(WorkerMisfit):
            return None if sealed is None else self._opened(sealed)
        return None

    @writing
    def keep_client(
        self, connection: Transaction, provider: str, issuer: str, return_to: str, client: dict[str, Any] | None
    ) -> None:
        """Keep how backstay is known to an issuer; None forgets it."""
        named = {"provider_": provider, "issuer_": issuer, "return_": return_to}
        connection.execute(delete(oauth_clients).where(*_OF_CLIENT), named)
        if client is not None:
            values = {"provider": provider, "issuer": issuer, "return_to": return_to}
            connection.execute(insert(oauth_clients), {**values, "sealed": self._closed(client)})

    def _read(self, row: Row[Any]) -> Connection:
        grant = None
        # All processes of a store have the same keys: where none opens a row, its key has been removed, and the sign-in
        # with it. Its user is asked again.
        with suppress(WorkerMisfit):
            grant = None if row.sealed is None else Grant(**self._opened(row.sealed))
        return Connection(
            user_id=row.user_id,
            provider=row.provider,
            id=row.id,
            version=row.version,
            state="ended" if grant is None or row.state == "ended" else "connected",
            wanted=row.wanted,
            connected_at=row.connected_at,
            refreshed_at=row.refreshed_at,
            ends_at=row.ends_at,
            grant=grant,
        )

    def _closed(self, said: dict[str, Any]) -> bytes:
        return self._seal.close(json.dumps(said).encode())

    def _opened(self, sealed: bytes) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._seal.open(bytes(sealed)))
        return found


def _names(user_id: str, provider: str) -> dict[str, str]:
    return {"user_": user_id, "provider_": provider}


def _same(known: Connection) -> tuple[Any, ...]:
    """Return the conditions under which a row is still the very connection that is known."""
    named = (connections.c.user_id == known.user_id, connections.c.provider == known.provider)
    return (*named, connections.c.id == known.id, connections.c.version == known.version)


def _digest(state: str) -> str:
    return sha256(state.encode("utf-8", "replace")).hexdigest()
