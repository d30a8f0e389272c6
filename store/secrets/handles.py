"""Store the secrets behind the handles of a run."""

from collections.abc import Iterable, Mapping

from pydantic import Field
from sqlalchemy import Connection, insert, select

from backstay.frozen import Frozen
from store.database.database import Database
from store.database.schema import secrets
from store.secrets.seal import Seal


class SecretValue(Frozen):
    """Hold a secret and the provider it came from; neither `repr` nor a dump shows the value."""

    provider: str
    value: str = Field(repr=False, exclude=True)


_AT_ONCE = 500
"""How many handles one statement may name; databases limit the number of parameters."""


class SecretHandles:
    """Keep the sealed values behind handles."""

    def __init__(self, database: Database, seal: Seal) -> None:
        """Use this database; every value is sealed before it is written."""
        self._database = database
        self._seal = seal

    async def remember(self, run: str, entries: Mapping[str, SecretValue]) -> None:
        """Store the value of each handle; a known handle is not changed."""
        if not entries:
            return

        def work(connection: Connection) -> None:
            known = _sealed(connection, run, entries)
            rows = [
                {"run": run, "handle": handle, "provider": entry.provider, "sealed": self._close(entry.value)}
                for handle, entry in entries.items()
                if handle not in known
            ]
            if rows:
                connection.execute(insert(secrets), rows)

        await self._database.write(work)

    async def reveal(self, run: str, handles: Iterable[str]) -> dict[str, SecretValue]:
        """Return the values of the handles that belong to this run."""
        wanted = list(dict.fromkeys(handles))
        if not wanted:
            return {}
        found = await self._database.read(lambda connection: _sealed(connection, run, wanted))
        return {
            handle: SecretValue(provider=provider, value=self._seal.open(sealed).decode("utf-8", "surrogatepass"))
            for handle, (provider, sealed) in found.items()
        }

    def _close(self, value: str) -> bytes:
        return self._seal.close(value.encode("utf-8", "surrogatepass"))


def _sealed(connection: Connection, run: str, handles: Iterable[str]) -> dict[str, tuple[str, bytes]]:
    wanted = list(handles)
    found: dict[str, tuple[str, bytes]] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        some = secrets.c.handle.in_(wanted[start : start + _AT_ONCE])
        rows = connection.execute(select(secrets).where(secrets.c.run == run, some)).mappings()
        found |= {row["handle"]: (row["provider"], bytes(row["sealed"])) for row in rows}
    return found
