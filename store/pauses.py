"""Know until when no request is to be sent to an endpoint, for all workers."""

from collections.abc import Callable

from sqlalchemy import Connection, delete, insert, select, update

from store.database.database import Database
from store.database.schema import pauses
from store.database.transactions import reading, writing

LONGEST_PAUSE_S = 60.0
"""How long all are held up by what one was told; after that the next one asks again."""


class Pauses:
    """Keep how long endpoints have asked to be left alone."""

    def __init__(self, database: Database, now: Callable[[Connection], float]) -> None:
        """Read time from `now`, on which all processes agree."""
        self.database = database
        self._now = now

    @reading
    def left(self, connection: Connection, endpoint: str) -> float:
        """Return for how many seconds an endpoint is still to be left alone."""
        until = connection.execute(select(pauses.c.until).where(pauses.c.endpoint == endpoint)).scalar()
        return 0.0 if until is None else max(0.0, until - self._now(connection))

    @writing
    def pause(self, connection: Connection, endpoint: str, seconds: float) -> None:
        """Leave an endpoint alone for the given seconds, or for longer if that was wanted before; forget what is over.

        No pause is longer than `LONGEST_PAUSE_S`, whatever an endpoint has said.
        """
        now, seconds = self._now(connection), min(seconds, LONGEST_PAUSE_S)
        connection.execute(delete(pauses).where(pauses.c.until < now))
        named = pauses.c.endpoint == endpoint
        known = connection.execute(select(pauses.c.until).where(named)).scalar()
        if known is None:
            connection.execute(insert(pauses), {"endpoint": endpoint, "until": now + seconds})
        elif known < now + seconds:
            connection.execute(update(pauses).where(named).values(until=now + seconds))
