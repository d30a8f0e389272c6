"""Store the secrets behind the handles of a run."""

import json
from collections.abc import Collection, Iterable, Mapping

from pydantic import Field
from sqlalchemy import Connection, bindparam, func, insert, select

from backstay.frozen import Frozen
from store.database.database import Database
from store.database.schema import secrets
from store.database.transactions import only_with, reading, writing
from store.secrets.seal import Seal


class SecretValue(Frozen):
    """Hold a secret and the provider it came from; neither `repr` nor a dump shows the value."""

    provider: str
    value: str | int | float = Field(repr=False, exclude=True)
    """A number stays one, so that a tool that wants a number gets it."""


_COUNT = select(func.count()).select_from(secrets).where(secrets.c.run == bindparam("run_"))
_OF_RUN = select(secrets.c.handle, secrets.c.provider, secrets.c.sealed).where(secrets.c.run == bindparam("run_"))
_JSON = "\x00"
"""Begins what is sealed of a value that is not text."""
_AT_ONCE = 500
"""How many handles one statement may name; databases limit the number of parameters."""


class SecretHandles:
    """Keep the sealed values behind handles."""

    def __init__(self, database: Database, seal: Seal) -> None:
        """Use this database; every value is sealed before it is written."""
        self.database = database
        self._seal = seal

    @writing
    def remember(self, connection: Connection, run: str, entries: Mapping[str, SecretValue]) -> int:
        """Store the value of each handle, and return how many the run has; a known handle is not changed."""
        known = _sealed(connection, run, entries)
        rows = [
            {"run": run, "handle": handle, "provider": entry.provider, "sealed": self._close(entry.value)}
            for handle, entry in entries.items()
            if handle not in known
        ]
        if rows:
            connection.execute(insert(secrets), rows)
        return count_of_run(connection, run)

    @reading
    def new_of_run(
        self, connection: Connection, run: str, known: Collection[str]
    ) -> tuple[int, dict[str, SecretValue]]:
        """Return how many handles a run has, and the values of those that are not known yet."""
        count = count_of_run(connection, run)
        rows = [] if count == len(known) else connection.execute(_OF_RUN, {"run_": run}).all()
        return count, {row.handle: self._opened(row.provider, row.sealed) for row in rows if row.handle not in known}

    @only_with("handles", otherwise=dict)
    @reading
    def reveal(self, connection: Connection, run: str, handles: Collection[str]) -> dict[str, SecretValue]:
        """Return the values of the handles that belong to this run."""
        found = _sealed(connection, run, dict.fromkeys(handles))
        return {handle: self._opened(provider, sealed) for handle, (provider, sealed) in found.items()}

    def _opened(self, provider: str, sealed: bytes) -> SecretValue:
        text = self._seal.open(bytes(sealed)).decode("utf-8", "surrogatepass")
        value = json.loads(text.removeprefix(_JSON)) if text.startswith(_JSON) else text
        return SecretValue(provider=provider, value=value)

    def _close(self, value: str | float) -> bytes:
        text = value if isinstance(value, str) and not value.startswith(_JSON) else f"{_JSON}{json.dumps(value)}"
        return self._seal.close(text.encode("utf-8", "surrogatepass"))


def count_of_run(connection: Connection, run: str) -> int:
    """Return how many handles a run holds; handles are added and never changed."""
    return connection.execute(_COUNT, {"run_": run}).scalar() or 0


def _sealed(connection: Connection, run: str, handles: Iterable[str]) -> dict[str, tuple[str, bytes]]:
    wanted = list(handles)
    found: dict[str, tuple[str, bytes]] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        some = secrets.c.handle.in_(wanted[start : start + _AT_ONCE])
        rows = connection.execute(select(secrets).where(secrets.c.run == run, some)).mappings()
        found |= {row["handle"]: (row["provider"], bytes(row["sealed"])) for row in rows}
    return found
