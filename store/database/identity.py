"""Identify the store and its epoch."""

import hashlib
import hmac
import secrets
import time
import uuid
from typing import Any

from pydantic import Field, SecretBytes
from sqlalchemy import Connection, insert, select, update

from backstay.errors import StoreMismatch
from backstay.frozen import Frozen
from store.database.schema import identity

_EPOCH = select(identity.c.epoch).with_for_update(read=True)


class StoreIdentity(Frozen):
    """Distinguish one store from another, and a restored store from its earlier self."""

    id: str
    epoch: int
    temporal_epoch: int = 0
    """The last epoch that began because Temporal was restored, too; 0 if none did."""
    secret: SecretBytes = Field(exclude=True)
    """Created with the store and never shown; every other key is derived from it."""

    @property
    def stamp(self) -> str:
        """Return `<id>/<epoch>`, by which a run recognises its store."""
        return f"{self.id}/{self.epoch}"

    def stamp_at(self, began: float) -> str:
        """Return the stamp of what begins now, and as Temporal says began then, in unix seconds.

        If that was before Temporal was restored, it may have begun once already: then it is of no epoch.
        """
        # The number of an epoch is the time at which it began.
        return self.stamp if began >= self.temporal_epoch else f"{self.id}/0"

    def key(self, purpose: str) -> bytes:
        """Return the 32-byte key for one purpose."""
        message = purpose.encode("utf-8", "surrogatepass")
        return hmac.new(self.secret.get_secret_value(), message, hashlib.sha256).digest()


def find_or_create(connection: Connection) -> StoreIdentity:
    """Return the identity; create it first if the database is new."""
    row = connection.execute(select(identity)).mappings().one_or_none()
    if row is not None:
        return _read(row)
    made = {"row": 1, "id": uuid.uuid4().hex, "epoch": 1, "temporal_epoch": 0, "secret": secrets.token_bytes(32)}
    connection.execute(insert(identity).values(made))
    return _read(made)


def next_epoch(connection: Connection, *, temporal_restored: bool = False) -> StoreIdentity:
    """Begin a new epoch; keep it as that of a restored Temporal where this was restored, too.

    The number comes from the clock, so that two restores of one backup do not get the same epoch.
    """
    row = connection.execute(select(identity).with_for_update()).mappings().one()
    epoch = max(int(row["epoch"]) + 1, int(time.time()))
    begun = {"epoch": epoch, "temporal_epoch": epoch if temporal_restored else row["temporal_epoch"]}
    connection.execute(update(identity).values(**begun))
    return _read({**row, **begun})


def require_epoch(connection: Connection, known: StoreIdentity) -> None:
    """Raise StoreMismatch when a new epoch has begun.

    Until the transaction ends, no new epoch can begin and no run can be pruned.
    """
    epoch = connection.execute(_EPOCH).scalar_one()
    if epoch != known.epoch:
        raise StoreMismatch(
            f"store {known.id} is in epoch {epoch} now, and this process still in {known.epoch}; restart the worker"
        )


def lock_epoch(connection: Connection) -> None:
    """Lock out every transaction that calls `require_epoch` until this one ends."""
    connection.execute(select(identity.c.epoch).with_for_update())


def _read(row: Any) -> StoreIdentity:
    known = {name: row[name] for name in ("id", "epoch", "temporal_epoch")}
    return StoreIdentity(**known, secret=SecretBytes(bytes(row["secret"])))
