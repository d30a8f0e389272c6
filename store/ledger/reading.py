"""Read and verify chains, and remove those that are old enough."""

from collections.abc import AsyncGenerator, Sequence

from sqlalchemy import Connection, bindparam, delete, exists, func, select, update

from backstay.task.ledger.chain import Chain, ChainHead, Row
from store.database.database import Database
from store.database.schema import ledger_heads, ledger_rows, runs
from store.database.transactions import reading, writing

_AT_ONCE = 200
"""This many runs are read at once."""
_HEADS = select(*(ledger_heads.c[name] for name in ChainHead._fields))
_ROWS = select(*(ledger_rows.c[name] for name in Row._fields)).order_by(ledger_rows.c.run, ledger_rows.c.n)
_OF_SOME = _ROWS.where(ledger_rows.c.run.in_(bindparam("runs_", expanding=True)))
_PRUNED = select(runs.c.run).where(runs.c.pruned_at.is_not(None))
_HAS_HEAD = exists().where(ledger_heads.c.run == ledger_rows.c.run)
_LAST_AT = select(func.max(ledger_rows.c.at)).where(ledger_rows.c.run == ledger_heads.c.run).scalar_subquery()


class Chains:
    """Read what the ledger holds."""

    def __init__(self, database: Database) -> None:
        """Use this database."""
        self.database = database

    async def read(self, names: Sequence[str] | None = None, *, since: str = "") -> AsyncGenerator[Chain]:
        """Yield the chains of these runs, or of all; only those with a row since a time, where there is one."""
        wanted = await self._names(since) if names is None else list(names)
        for start in range(0, len(wanted), _AT_ONCE):
            for chain in await self._some(wanted[start : start + _AT_ONCE]):
                yield chain

    @reading
    def holding(self, connection: Connection, first: str, last: str) -> list[str]:
        """Return the runs that have a row from one time on and before another, in the order of their first rows."""
        chosen = select(ledger_rows.c.run).where(ledger_rows.c.at >= first, ledger_rows.c.at < last)
        ordered = chosen.group_by(ledger_rows.c.run).order_by(func.min(ledger_rows.c.at), ledger_rows.c.run)
        return [*connection.execute(ordered).scalars()]

    @reading
    def of_workflow(self, connection: Connection, workflow_id: str) -> list[str]:
        """Return the runs of a workflow id, or the one that is called so itself."""
        named = ledger_heads.c.run.startswith(f"{workflow_id}/", autoescape=True)
        chosen = select(ledger_heads.c.run).where(named | (ledger_heads.c.run == workflow_id))
        return sorted(run for run in connection.execute(chosen).scalars())

    @reading
    def with_hash(self, connection: Connection, n: int, end: str) -> str | None:
        """Return the run whose chain has a row of this number and hash, or that has ended so."""
        chosen = select(ledger_rows.c.run).where(ledger_rows.c.n == n, ledger_rows.c.hash == end)
        heads = select(ledger_heads.c.run).where(ledger_heads.c.n == n, ledger_heads.c.hash == end)
        return connection.execute(chosen.union(heads).limit(1)).scalar()

    @reading
    def removed(self, connection: Connection) -> dict[str, int]:
        """Return the runs whose rows were removed, with how many rows their heads count."""
        chosen = select(ledger_heads.c.run, ledger_heads.c.n).where(ledger_heads.c.salt == "")
        return {row.run: row.n for row in connection.execute(chosen)}

    @reading
    def unlisted(self, connection: Connection) -> list[str]:
        """Return the runs of the store that have no head, though each run has one from its beginning."""
        head = exists().where(ledger_heads.c.run == runs.c.run)
        return [*connection.execute(select(runs.c.run).where(~head).order_by(runs.c.opened_at)).scalars()]

    @writing
    def forget(self, connection: Connection, before: str, *, dry_run: bool = False) -> int:
        """Remove the rows of pruned runs whose last row is older, with the keys of their digests; return how many.

        Their heads stay, and so do the daily roots.
        """
        old = select(ledger_heads.c.run).where(
            ledger_heads.c.salt != "", ledger_heads.c.run.in_(_PRUNED), before > _LAST_AT
        )
        gone = connection.execute(old).scalars().all()
        count = 0
        for run in gone:
            these = ledger_rows.c.run == run
            count += connection.execute(select(func.count()).select_from(ledger_rows).where(these)).scalar_one()
            if not dry_run:
                connection.execute(update(ledger_heads).where(ledger_heads.c.run == run).values(salt=""))
                connection.execute(delete(ledger_rows).where(these))
        return count

    @reading
    def _names(self, connection: Connection, since: str) -> list[str]:
        heads = select(ledger_heads.c.run).where(ledger_heads.c.at >= since)
        orphans = select(ledger_rows.c.run).where(~_HAS_HEAD, ledger_rows.c.at >= since)
        unsigned = select(ledger_rows.c.run).where(ledger_rows.c.at >= since) if since else orphans
        return sorted({*connection.execute(heads.union(orphans, unsigned)).scalars()})

    @reading
    def _some(self, connection: Connection, names: Sequence[str]) -> list[Chain]:
        heads = {row[0]: ChainHead(*row) for row in connection.execute(_HEADS.where(ledger_heads.c.run.in_(names)))}
        pruned = {*connection.execute(_PRUNED.where(runs.c.run.in_(names))).scalars()}
        rows: dict[str, list[Row]] = {}
        for row in connection.execute(_OF_SOME, {"runs_": list(names)}):
            rows.setdefault(row[0], []).append(Row._make(row))
        return [
            Chain(run=name, head=heads.get(name), rows=tuple(rows.get(name, ())), pruned=name in pruned)
            for name in names
        ]
