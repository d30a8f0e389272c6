"""Know who is just looking at a request, so that two people need not think about it at the same time."""

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, delete, insert, select, tuple_, update

from store.database.database import Database
from store.database.schema import looks

LOOK_S = 40.0
"""How long after a look somebody counts as looking; those who go on looking say so more often."""


class Looks:
    """Keep who looks at which request, for all processes that serve pages."""

    def __init__(self, database: Database, now: Callable[[Connection], float]) -> None:
        """Read time from `now`, on which all processes agree."""
        self._database = database
        self._now = now

    async def look(self, workflow_id: str, request_id: str, person: str, reader: str) -> None:
        """Say that a person looks at a request now; what is long over is removed.

        `reader` tells the tabs of a person apart, so that one that is closed takes nothing from the other.
        """
        named = (looks.c.workflow_id == workflow_id, looks.c.request_id == request_id, looks.c.reader == reader)
        new = insert(looks).values(workflow_id=workflow_id, request_id=request_id, reader=reader, person=person)

        def work(connection: Connection) -> None:
            now = self._now(connection)
            connection.execute(delete(looks).where(looks.c.until < now - LOOK_S))
            if connection.execute(update(looks).where(*named).values(until=now + LOOK_S)).rowcount == 0:
                connection.execute(new.values(until=now + LOOK_S))

        await self._database.write(work)

    async def leave(self, reader: str) -> None:
        """Say that a tab looks at nothing more."""
        gone = delete(looks).where(looks.c.reader == reader)
        await self._database.write(lambda connection: connection.execute(gone))

    async def people(self, requests: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[str]]:
        """Return who looks at which of these requests, each named by workflow and request, in alphabetical order."""
        if not requests:
            return {}
        chosen = (
            select(looks.c.workflow_id, looks.c.request_id, looks.c.person)
            .where(tuple_(looks.c.workflow_id, looks.c.request_id).in_(list(requests)))
            .distinct()
            .order_by(looks.c.person)
        )

        def work(connection: Connection) -> dict[tuple[str, str], list[str]]:
            found: dict[tuple[str, str], list[str]] = {}
            for row in connection.execute(chosen.where(looks.c.until > self._now(connection))):
                found.setdefault((row.workflow_id, row.request_id), []).append(row.person)
            return found

        return await self._database.read(work)
