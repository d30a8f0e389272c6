"""The runs this store has seen."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from sqlalchemy import Connection, insert, select, update

from backstay.frozen import Frozen
from store.database.database import Database
from store.database.schema import chain, runs


class RunRow(Frozen):
    """Hold one row of the table `runs`; times are unix seconds of the worker that wrote them."""

    run: str
    workflow_id: str
    workflow_run_id: str
    """The first one of the chain."""
    user_id: str
    text: str
    state: Literal["open", "closed"]
    opened_at: float
    closed_at: float | None = None
    opened: dict[str, Any]
    """What was resolved when the run began; empty when its beginning was never recorded."""
    store: str
    result: dict[str, Any] | None = None


_TEXT_LIMIT = 500


class Runs:
    """Keep one row per run, findable by any run id of its chain."""

    def __init__(self, database: Database, clock: Callable[[], float], stamp: Callable[[], str]) -> None:
        """Read time from `clock`, in unix seconds, and the store's own name from `stamp`."""
        self._database = database
        self._clock = clock
        self._stamp = stamp

    async def opened(
        self,
        *,
        run: str,
        workflow_id: str,
        workflow_run_id: str,
        user_id: str,
        text: str,
        opened: Mapping[str, Any],
        store: str | None = None,
    ) -> None:
        """Record that a run began; a repeat only adds another run id of its chain."""
        row = {
            "run": run,
            "workflow_id": workflow_id,
            "workflow_run_id": workflow_run_id,
            "user_id": user_id,
            "text": text[:_TEXT_LIMIT],
            "opened": dict(opened),
            "store": store or self._stamp(),
        }
        link = {"workflow_id": workflow_id, "workflow_run_id": workflow_run_id}

        def work(connection: Connection) -> None:
            self._insert(connection, row)
            if connection.execute(select(chain).filter_by(**link)).first() is None:
                connection.execute(insert(chain).values(**link, run=run))

        await self._database.write(work)

    async def closed(self, run: str, result: Mapping[str, Any]) -> None:
        """Store how a run ended; the last word counts, also for a run whose beginning was never recorded."""
        workflow_id, _, workflow_run_id = run.rpartition("/")
        row = {
            "run": run,
            "workflow_id": workflow_id,
            "workflow_run_id": workflow_run_id,
            "user_id": "",
            "text": "",
            "opened": {},
            "store": self._stamp(),
        }
        values = {"state": "closed", "closed_at": self._clock(), "result": dict(result)}

        def work(connection: Connection) -> None:
            self._insert(connection, row)
            connection.execute(update(runs).where(runs.c.run == run).values(**values))

        await self._database.write(work)

    async def get(self, workflow_id: str, workflow_run_id: str | None = None) -> RunRow | None:
        """Return the latest run of a workflow id, or the one to whose chain a run id belongs."""
        chosen = select(runs).where(runs.c.workflow_id == workflow_id)
        if workflow_run_id is not None:
            link = {"workflow_id": workflow_id, "workflow_run_id": workflow_run_id}
            own = runs.c.workflow_run_id == workflow_run_id
            chosen = chosen.where(own | runs.c.run.in_(select(chain.c.run).filter_by(**link)))
        found = await self._rows(chosen.order_by(runs.c.opened_at.desc(), runs.c.run.desc()).limit(1))
        return found[0] if found else None

    async def newest(self, limit: int) -> list[RunRow]:
        """Return the runs that began last, the newest first."""
        return await self._rows(select(runs).order_by(runs.c.opened_at.desc(), runs.c.run.desc()).limit(limit))

    def _insert(self, connection: Connection, row: Mapping[str, Any]) -> None:
        if connection.execute(select(runs.c.run).where(runs.c.run == row["run"])).first() is None:
            connection.execute(insert(runs).values(**row, state="open", opened_at=self._clock()))

    async def _rows(self, chosen: Any) -> list[RunRow]:
        def work(connection: Connection) -> list[RunRow]:
            return [RunRow.model_validate(dict(row)) for row in connection.execute(chosen).mappings()]

        return await self._database.read(work)
