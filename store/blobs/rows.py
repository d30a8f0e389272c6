"""Keep small payloads in the database, so that the transaction which names them writes them, too."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, LargeBinary, bindparam, delete, func, select, text

from store.blobs.shown import FOLLOWS
from store.database.database import Database
from store.database.schema import Words, payloads
from store.database.transactions import reading, writing
from store.database.waiting import waiting_for, write_later

MOST_BYTES = 65_536
"""Larger payloads are files, unless all are rows: databases read and write them slower than a file system does."""
SEALED = ".sealed"
"""The end of the name of a payload that is sealed."""
SHARED = "shared"
"""The name of an empty payload, which says that a run's payloads are files as well; it is not a ref."""
ATTACHED_AT = "attached"
"""The name of a payload that says when bytes were last attached to a run that was to begin; it is not a ref."""
AT_ONCE = 100
_PART = "{}.part{:012d}"
"""The name of a part of a payload that is still being sent; no ref."""

_KEEP = text((Path(__file__).parent / "keep.sql").read_text(encoding="utf-8")).bindparams(
    bindparam("run", type_=Words), bindparam("name", type_=Words), bindparam("data", type_=LargeBinary)
)
_FIND = select(payloads.c.data).where(payloads.c.run == bindparam("run_"), payloads.c.name == bindparam("name_"))
_NAMES = select(payloads.c.name).where(payloads.c.run == bindparam("run_"))
_SOME = select(payloads.c.name, payloads.c.data).where(
    payloads.c.run == bindparam("run_"), payloads.c.name.in_(bindparam("names", expanding=True))
)
_RUNS = select(payloads.c.run).distinct()
_SIZE = select(func.count(), func.coalesce(func.sum(func.length(payloads.c.data)), 0)).where(
    payloads.c.run == bindparam("run_")
)
_IS_PART = (payloads.c.run == bindparam("run_"), payloads.c.name.like(bindparam("like")))
_PARTS = select(payloads.c.data).where(*_IS_PART).order_by(payloads.c.name)
_DROP_PARTS = delete(payloads).where(*_IS_PART)
_ERASE = delete(payloads).where(
    payloads.c.run == bindparam("run_"), payloads.c.name.in_(bindparam("names", expanding=True))
)
_DELETE = delete(payloads).where(payloads.c.run == bindparam("run_"))


class PayloadKey(NamedTuple):
    """Name a payload that waits for its transaction."""

    run: str
    name: str


class PayloadRows:
    """Keep the payloads of each run by their names."""

    def __init__(self, database: Database) -> None:
        """Use this database."""
        self.database = database

    async def put(
        self, run: str, name: str, data: bytes, then: Callable[[bool], Awaitable[None]] | None = None
    ) -> None:
        """Keep a payload with the next transaction of this activity; the same name stands for the same content.

        `then` is told, once it is committed, whether the run's payloads are shared.
        """
        key = PayloadKey(run, name)
        await write_later(
            self.database, lambda connection: _keep(connection, key, data), then or _nothing, key=key, value=data
        )

    def held(self, run: str, name: str) -> bytes | None:
        """Return a payload that waits for its transaction in this activity."""
        waiting = waiting_for(self.database)
        return None if waiting is None else waiting.value(PayloadKey(run, name))

    @reading
    def get(self, connection: Connection, run: str, name: str) -> bytes | None:
        """Return a payload that is committed; None where there is none."""
        data = connection.execute(_FIND, {"run_": run, "name_": name}).scalar()
        return None if data is None else bytes(data)

    @writing
    def follow(self, connection: Connection, run: str, followed: str) -> None:
        """Say which run a run follows."""
        _keep(connection, PayloadKey(run, FOLLOWS), followed.encode("utf-8", "surrogatepass"))

    @reading
    def followed(self, connection: Connection, run: str) -> str | None:
        """Return the run that a run follows, where a row says so."""
        data = connection.execute(_FIND, {"run_": run, "name_": FOLLOWS}).scalar()
        return None if data is None else bytes(data).decode("utf-8", "surrogatepass")

    @writing
    def share(self, connection: Connection, run: str) -> None:
        """Mark the payloads of a run as shared."""
        _keep(connection, PayloadKey(run, SHARED), b"")

    @writing
    def attach(self, connection: Connection, run: str, at: float) -> None:
        """Say when, in unix seconds, something was last attached here."""
        _keep(connection, PayloadKey(run, ATTACHED_AT), str(at).encode())

    @reading
    def attached_at(self, connection: Connection, run: str) -> float | None:
        """Return when something was last attached here; None where nothing says so."""
        data = connection.execute(_FIND, {"run_": run, "name_": ATTACHED_AT}).scalar()
        return None if data is None else float(bytes(data))

    @reading
    def shown(self, connection: Connection, run: str) -> list[str]:
        """Return the names of all payloads of a run that are not sealed."""
        names = connection.execute(_NAMES, {"run_": run}).scalars()
        return [name for name in names if name not in {SHARED, FOLLOWS, ATTACHED_AT} and not name.endswith(SEALED)]

    @reading
    def some(self, connection: Connection, run: str, names: Sequence[str]) -> dict[str, bytes]:
        """Return several payloads of a run by their names."""
        found = connection.execute(_SOME, {"run_": run, "names": list(names)})
        return {name: bytes(data) for name, data in found}

    @reading
    def runs(self, connection: Connection) -> frozenset[str]:
        """Return every run that has payloads here."""
        return frozenset(connection.execute(_RUNS).scalars())

    @writing
    def keep_part(self, connection: Connection, run: str, name: str, offset: int, data: bytes) -> None:
        """Keep a part of a payload until the others have come; the same part may come again."""
        _keep(connection, PayloadKey(run, _PART.format(name, offset)), data)

    @reading
    def joined(self, connection: Connection, run: str, name: str) -> bytes:
        """Return the parts of a payload that have come, in their order."""
        parts = connection.execute(_PARTS, {"run_": run, "like": f"{name}.part%"}).scalars()
        return b"".join(bytes(part) for part in parts)

    @writing
    def drop_parts(self, connection: Connection, run: str, name: str) -> None:
        """Remove the parts of a payload that is whole now."""
        connection.execute(_DROP_PARTS, {"run_": run, "like": f"{name}.part%"})

    @writing
    def erase(self, connection: Connection, run: str, names: Sequence[str]) -> frozenset[str]:
        """Remove payloads of a run by their names; return those that were there."""
        there = frozenset(connection.execute(_SOME, {"run_": run, "names": list(names)}).scalars())
        connection.execute(_ERASE, {"run_": run, "names": list(names)})
        return there

    @writing
    def free(self, connection: Connection, run: str, *, dry_run: bool = False) -> tuple[int, int]:
        """Remove all payloads of a run; return how many they were, and their bytes."""
        count, size = connection.execute(_SIZE, {"run_": run}).one()
        if not dry_run:
            connection.execute(_DELETE, {"run_": run})
        return int(count), int(size)


async def _nothing(_: bool) -> None:  # noqa: FBT001 - what the transaction answers
    pass


def _keep(connection: Connection, key: PayloadKey, data: bytes) -> bool:
    return bool(connection.execute(_KEEP, {"run": key.run, "name": key.name, "data": data}).scalar_one())


def unwritten(names: Collection[str], there: Collection[str]) -> list[list[str]]:
    """Return the names that are not there yet, in groups of which the payloads fit into memory at once."""
    missing = sorted(set(names) - set(there))
    return [missing[start : start + AT_ONCE] for start in range(0, len(missing), AT_ONCE)]
