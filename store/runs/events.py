"""Store the timelines of runs."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from backstay.task.event import Event
from store.database.database import Database
from store.database.schema import events
from store.secrets.handles import count_of_run

_KNOWN = select(events.c.n, events.c.at).where(
    events.c.run == bindparam("run_"), events.c.n.between(bindparam("first"), bindparam("last"))
)
_DELETE = delete(events).where(events.c.run == bindparam("run_"), events.c.n == bindparam("n_"))
_INSERT = insert(events)
_OF_RUN = (
    select(events.c.body).where(events.c.run == bindparam("run_"), events.c.n > bindparam("after")).order_by(events.c.n)
)
_LAST = select(func.max(events.c.n)).where(events.c.run == bindparam("run_"), events.c.n < bindparam("below"))


class Events:
    """Keep every event of every run, once."""

    def __init__(self, database: Database) -> None:
        """Use this database."""
        self._database = database

    async def append(self, run: str, new: Sequence[Event]) -> int | None:
        """Add events. If two have the same number, the later one stays, so a repeat changes nothing.

        After a workflow reset, a number can come again with another event. An attempt from before the reset must not
        bring the old one back. Return how many handles the run has, which costs little here; None without events.
        """
        latest = {event.n: event for event in sorted(new, key=lambda event: event.at)}
        if not latest:
            return None

        def work(connection: Connection) -> int:
            span = {"run_": run, "first": min(latest), "last": max(latest)}
            known: dict[int, str] = {row.n: row.at for row in connection.execute(_KNOWN, span)}
            kept = [event for _, event in sorted(latest.items()) if known.get(event.n, "") <= event.at]
            replaced = [{"run_": run, "n_": event.n} for event in kept if event.n in known]
            if replaced:
                connection.execute(_DELETE, replaced)
            if kept:
                rows = [{"run": run, "n": event.n, "at": event.at, "body": event.plain()} for event in kept]
                connection.execute(_INSERT, rows)
            return count_of_run(connection, run)

        return await self._database.write(work)

    async def of_run(self, run: str, after: int = 0) -> list[Event]:
        """Return the events with a number above `after`, in order."""

        def work(connection: Connection) -> list[Event]:
            bodies = connection.execute(_OF_RUN, {"run_": run, "after": after}).scalars()
            return [Event.model_validate(body) for body in bodies]

        return await self._database.read(work)

    async def last(self, run: str, *, below: int) -> int:
        """Return the highest number of an event of a run that is lower than `below`; 0 when there is none."""
        asked = {"run_": run, "below": below}
        return await self._database.read(lambda connection: connection.execute(_LAST, asked).scalar() or 0)
