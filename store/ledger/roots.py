"""Once a day, bind all heads together: a root names those that have moved, and follows the root before it.

A person who keeps a root elsewhere can tell later whether a run, or the whole store, was put back to an earlier state.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import structlog
from sqlalchemy import Connection, insert, select, update

from backstay.errors import StoreUnavailable
from backstay.task.ledger.chain import Root, root_hash, root_message, text_of, time_of
from store.database.database import Database
from store.database.identity import StoreIdentity, lock_epoch
from store.database.schema import ledger_heads, ledger_roots
from store.database.transactions import reading, writing
from store.ledger.writing import ChainWriter
from system.tasks import background

_COLUMNS = tuple(ledger_roots.c[name] for name in Root._fields)
_LAST = select(*_COLUMNS).order_by(ledger_roots.c.n.desc()).limit(1)
_UNSIGNED = select(ledger_heads.c.run).where(ledger_heads.c.signed_n != ledger_heads.c.n, ledger_heads.c.salt != "")
_TAKE = (
    update(ledger_heads)
    .where(ledger_heads.c.rooted != ledger_heads.c.n)
    .values(rooted=ledger_heads.c.n)
    .returning(ledger_heads.c.run, ledger_heads.c.n, ledger_heads.c.hash)
)

_LOOK_S = 300.0
_DAY_S = 86_400.0
_log = structlog.get_logger(__name__)


class Roots:
    """Make the daily roots, and read them."""

    def __init__(
        self, database: Database, clock: Callable[[], float], identity: Callable[[], StoreIdentity], ledger: ChainWriter
    ) -> None:
        """Read time from `clock`, in unix seconds; sign as the ledger does."""
        self.database = database
        self._clock = clock
        self._identity = identity
        self._ledger = ledger

    async def make_due(self) -> bool:
        """Make the root of today unless there is one, and return whether it was made.

        A process without the key makes none. The entries that commands have added to chains are signed before.
        """
        if self._ledger.signer is None or not await self._is_due():
            return False
        return await self._make()

    @reading
    def all(self, connection: Connection, since: str = "") -> list[Root]:
        """Return the roots of all days, or of those since a day, oldest first."""
        chosen = select(*_COLUMNS).where(ledger_roots.c.day >= since).order_by(ledger_roots.c.n)
        return [Root(*row) for row in connection.execute(chosen)]

    @reading
    def _is_due(self, connection: Connection) -> bool:
        return self._last_of_another_day(connection)[0]

    @writing
    def _make(self, connection: Connection) -> bool:
        lock_epoch(connection)
        due, last = self._last_of_another_day(connection)
        signer, store = self._ledger.signer, self._identity().id
        if not due or signer is None:
            return False
        for run in connection.execute(_UNSIGNED).scalars().all():
            self._ledger.sign_rest(connection, run)
        heads = sorted(tuple(row) for row in connection.execute(_TAKE))
        at = time_of(self._clock())
        n, before = (1, "") if last is None else (last.n + 1, last.hash)
        root = Root(n, at[:10], at, text_of(heads), "", signer.id, "")
        root = root._replace(hash=root_hash(before, store, root))
        root = root._replace(signature=signer.sign(root_message(store, root)))
        connection.execute(insert(ledger_roots), root._asdict())
        return True

    def _last_of_another_day(self, connection: Connection) -> tuple[bool, Root | None]:
        found = connection.execute(_LAST).first()
        last = None if found is None else Root(*found)
        now = self._clock()
        today, tomorrow = (time_of(at)[:10] for at in (now, now + _DAY_S))
        # Another worker's clock may be a little ahead. One that was far ahead for a moment must not end all roots.
        return last is None or not today <= last.day <= tomorrow, last


def made_daily(roots: Roots) -> AbstractAsyncContextManager[None]:
    """Make the root of each day while the block runs, whichever of the workers comes first."""
    return background(_make_daily(roots))


async def _make_daily(roots: Roots) -> None:
    while True:
        try:
            await roots.make_due()
        except StoreUnavailable as error:
            _log.warning("ledger.no_root", error=str(error), again_in_s=_LOOK_S)
        await asyncio.sleep(_LOOK_S)
