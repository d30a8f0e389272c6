"""Know who is just looking at a request, so that two people need not think about it at the same time."""

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, delete, insert, select, tuple_, update

from store.database.database import Database
from store.database.schema import looks
from store.database.transactions import only_with, reading, writing

LOOK_S = 40.0
"""How long after a look somebody counts as looking; those who go on looking say so more often."""


class RequestViewers:
    """Keep who looks at which request, for all processes that serve pages."""

    def __init__(self, database: Database, now: Callable[[Connection], float]) -> None:
        """Read time from `now`, on which all processes agree."""
        self.database = database
        self._now = now

    @writing
    def look(self, connection: Connection, workflow_id: str, request_id: str, person: str, reader: str) -> None:
        """Say that a person looks at a request now; an entry that is long over is removed.

        `reader` tells the tabs of a person apart, so that one that is closed takes nothing from the other.
        """
        now = self._now(connection)
        connection.execute(delete(looks).where(looks.c.until < now - LOOK_S))
        named = (looks.c.workflow_id == workflow_id, looks.c.request_id == request_id, looks.c.reader == reader)
        if connection.execute(update(looks).where(*named).values(until=now + LOOK_S)).rowcount == 0:
            new = {"workflow_id": workflow_id, "request_id": request_id, "reader": reader, "person": person}
            connection.execute(insert(looks), new | {"until": now + LOOK_S})

    @writing
    def leave(self, connection: Connection, reader: str) -> None:
        """Say that a tab looks at nothing more."""
        connection.execute(delete(looks).where(looks.c.reader == reader))

    @only_with("requests", otherwise=dict)
    @reading
    def people(self, connection: Connection, requests: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[str]]:
        """Return who looks at which of these requests, each named by workflow and request, in alphabetical order."""
        chosen = (
            select(looks.c.workflow_id, looks.c.request_id, looks.c.person)
            .where(tuple_(looks.c.workflow_id, looks.c.request_id).in_(list(requests)))
            .where(looks.c.until > self._now(connection))
            .distinct()
            .order_by(looks.c.person)
        )
        found: dict[tuple[str, str], list[str]] = {}
        for row in connection.execute(chosen):
            found.setdefault((row.workflow_id, row.request_id), []).append(row.person)
        return found
