"""Keep what a model is just saying, for those who watch: live only, and never longer than the step."""

import asyncio
import math
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from backstay.frozen import Frozen
from store.database.database import Database
from store.database.schema import deltas, watches
from store.database.transactions import reading, writing

DELTA = "model.delta"
"""The name under which readers get what a model is saying."""
WATCH_S = 15.0
"""How long after its last look a reader counts as watching."""
KEPT_S = 3600.0
"""The remains of a dead run are removed after this time."""
_READ_S = 3.0
"""For so long the end of an answer can still be read when the next one has begun."""
_RENEWED_S = 5.0
_LIVELY_S, _LIVELY_POLL_S, _POLL_S = 5.0, 0.1, 0.4
"""A reader looks often for some seconds after the last delta, else less often."""
_AT_ONCE = 500

_OF_RUN = deltas.c.run == bindparam("run_")
_UNTIL = select(func.max(watches.c.until)).where(watches.c.run == bindparam("run_"))
_LAST = select(func.max(deltas.c.position)).where(_OF_RUN)
_BEGUN = select(deltas.c.position).where(_OF_RUN, deltas.c.position == bindparam("stream_"))
_AFTER = (
    select(deltas).where(_OF_RUN, deltas.c.position > bindparam("after")).order_by(deltas.c.position).limit(_AT_ONCE)
)
_FORGET = delete(deltas).where(_OF_RUN)
_OVERTAKE = delete(deltas).where(
    _OF_RUN,
    (deltas.c.position == deltas.c.stream)
    | (deltas.c.step == bindparam("step_"))
    | (deltas.c.at < bindparam("before")),
)
"""Without its beginning nothing can be added to an answer."""
_OLD = delete(deltas).where(deltas.c.at < bindparam("before"))
_OVER = delete(watches).where(watches.c.until < bindparam("before"))
_LONGER = (
    update(watches)
    .where(watches.c.run == bindparam("run_"), watches.c.reader == bindparam("reader_"))
    .values(until=bindparam("until_"))
)


class Delta(Frozen):
    """Hold a piece of what a model is saying, without its secrets."""

    position: int
    """Grows from delta to delta of a run; milliseconds, so that it grows over steps too."""
    stream: int
    """The position at which this answer began. Another number is another answer: a new step, or the same step asked
    again, and then what came before does not count."""
    step: int
    text: str
    """Empty at the beginning of an answer."""

    def event(self, run: str) -> dict[str, Any]:
        """Return the delta in the form of an event; it has no number, since it is not part of the timeline."""
        data = {"position": self.position, "stream": self.stream}
        task = run.rpartition("/")[0]
        return {"n": None, "name": DELTA, "task_id": task, "step_index": self.step, "text": self.text, "data": data}


class Deltas:
    """Pass on what models are saying to those who watch; where nobody does, nothing is written."""

    def __init__(self, database: Database, now: Callable[[Connection], float]) -> None:
        """Read time from `now`, on which all processes agree."""
        self.database = database
        self._now = now

    async def begin(self, run: str, step: int) -> int | None:
        """Begin an answer and return its stream; None when nobody watches the run, and then nothing is to be added.

        The words of an earlier attempt at this step are removed, and so is an earlier step, once it was read.
        """
        return await self._begin(run, step) if await self._matters(run) else None

    @writing
    def append(self, connection: Connection, run: str, stream: int, step: int, text: str) -> bool:
        """Add a piece of text, which must hold no secret; False when nobody needs it any more.

        That is so when nobody watches, when the step is over, or when another attempt at the step has begun.
        """
        begun = connection.execute(_BEGUN, {"run_": run, "stream_": stream}).first()
        if begun is None or not self._watched(connection, run):
            return False
        self._insert(connection, run, Delta(position=self._next(connection, run), stream=stream, step=step, text=text))
        return True

    async def forget(self, run: str) -> None:
        """Remove what is left of a run that ends."""
        if await self._said(run):
            await self._forget(run)

    @writing
    def sweep(self, connection: Connection) -> None:
        """Remove what runs have left that died."""
        now = self._now(connection)
        connection.execute(_OLD, {"before": now - KEPT_S})
        connection.execute(_OVER, {"before": now - WATCH_S})

    @writing
    def watch(self, connection: Connection, run: str, reader: str) -> None:
        """Say that a reader watches a run, for a while."""
        until = self._now(connection) + WATCH_S
        if connection.execute(_LONGER, {"run_": run, "reader_": reader, "until_": until}).rowcount == 0:
            connection.execute(insert(watches), {"run": run, "reader": reader, "until": until})

    async def after(self, run: str, position: int = 0) -> AsyncGenerator[Delta]:
        """Yield the deltas of a run behind a position, and those to come, until the caller stops.

        `run` is `<workflow id>/<id of its first execution>`; it need not have begun. While this is read, the run counts
        as watched. An answer that is being given when the reading begins is not seen; the next one is.
        Raises StoreUnavailable.
        """
        renewed = lively = -math.inf
        reader = uuid.uuid4().hex
        while True:
            now = time.monotonic()
            if now - renewed >= _RENEWED_S:
                await self.watch(run, reader)
                renewed = now
            found = await self.of_run(run, position)
            for delta in found:
                position = delta.position
                yield delta
            lively = now if found else lively
            await asyncio.sleep(_LIVELY_POLL_S if now - lively < _LIVELY_S else _POLL_S)

    @reading
    def of_run(self, connection: Connection, run: str, position: int = 0) -> list[Delta]:
        """Return the deltas of a run behind a position, in order, a few hundred at once."""
        rows = connection.execute(_AFTER, {"run_": run, "after": position})
        return [Delta(position=row.position, stream=row.stream, step=row.step, text=row.text) for row in rows]

    @reading
    def _matters(self, connection: Connection, run: str) -> bool:
        return self._watched(connection, run) or self._said.within(connection, run)

    @reading
    def _said(self, connection: Connection, run: str) -> bool:
        return connection.execute(_LAST, {"run_": run}).scalar() is not None

    @writing
    def _begin(self, connection: Connection, run: str, step: int) -> int | None:
        self.sweep.within(connection)
        watched, position = self._watched(connection, run), self._next(connection, run)
        before = self._now(connection) - _READ_S if watched else math.inf
        connection.execute(_OVERTAKE, {"run_": run, "step_": step, "before": before})
        if watched:
            self._insert(connection, run, Delta(position=position, stream=position, step=step, text=""))
        return position if watched else None

    @writing
    def _forget(self, connection: Connection, run: str) -> None:
        connection.execute(_FORGET, {"run_": run})

    def _watched(self, connection: Connection, run: str) -> bool:
        until = connection.execute(_UNTIL, {"run_": run}).scalar()
        return until is not None and until > self._now(connection)

    def _next(self, connection: Connection, run: str) -> int:
        last = connection.execute(_LAST, {"run_": run}).scalar() or 0
        return max(last + 1, int(self._now(connection) * 1000))

    def _insert(self, connection: Connection, run: str, delta: Delta) -> None:
        connection.execute(insert(deltas), {"run": run, "at": self._now(connection), **delta.model_dump()})
