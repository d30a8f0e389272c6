"""The timelines of runs."""

from collections.abc import Sequence

from sqlalchemy import and_, delete, insert, select

from backstay.event import Event
from store.database import Database
from store.schema import events


class Events:
    """Keep every event of every run, once."""

    def __init__(self, database: Database) -> None:
        """Write to `database`."""
        self._database = database

    async def append(self, run: str, new: Sequence[Event]) -> None:
        """Add events; of two with one number the later one stays, so that a repeat changes nothing.

        After a reset of the workflow a number can come again with another event; an attempt that slept through the
        reset must not bring the old one back.
        """
        latest = {event.n: event for event in sorted(new, key=lambda event: event.at)}
        if not latest:
            return
        span = and_(events.c.run == run, events.c.n >= min(latest), events.c.n <= max(latest))
        async with self._database.write() as connection:
            rows = await connection.execute(select(events.c.n, events.c.at).where(span))
            known: dict[int, str] = {row.n: row.at for row in rows}
            kept = [event for event in latest.values() if known.get(event.n, "") <= event.at]
            for event in kept:
                if event.n in known:
                    await connection.execute(delete(events).where(events.c.run == run, events.c.n == event.n))
            if kept:
                fresh = [{"run": run, "n": event.n, "at": event.at, "body": event.plain()} for event in kept]
                await connection.execute(insert(events), fresh)

    async def of_run(self, run: str, after: int = 0) -> list[Event]:
        """Return the events with a number above `after`, in order."""
        chosen = select(events.c.body).where(events.c.run == run, events.c.n > after).order_by(events.c.n)
        async with self._database.read() as connection:
            return [Event.model_validate(body) for body in (await connection.execute(chosen)).scalars()]
