"""Look at every payload where it lies: in the database, in the folder, in the bucket; whatever run it is of.

Runs of files and objects are known by the names of their folders, which are hashes, so a table of the store says which
run that is.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from sqlalchemy import Connection, bindparam, func, select

from backstay.task.attachment import attached_to
from store.blobs.objects import Object
from store.blobs.rows import PayloadRows
from store.blobs.shown import RunDirectory, key_of
from store.database.database import Answer, Database
from store.database.schema import payloads, runs
from store.database.transactions import reading
from store.faults import disk_faults

_PAYLOAD = re.compile(r"[0-9a-f]{40}(?:\.sealed)?")
_FOLDER = re.compile(r"[0-9a-f]{40}")
_SIZES = select(payloads.c.name, func.length(payloads.c.data)).where(payloads.c.run == bindparam("run_"))


class PayloadLocation(Protocol):
    """Where payloads lie, by the folder of their run and their names."""

    async def folders(self) -> list[str]:
        """Return the folders of all runs that have payloads here."""
        ...

    async def listed(self, folder: str) -> list[Object]:
        """Return all payloads of a folder."""
        ...

    async def read(self, folder: str, name: str) -> bytes | None:
        """Return a payload as it lies there, or None."""
        ...

    async def write(self, folder: str, name: str, data: bytes) -> None:
        """Keep a payload durably."""
        ...

    async def remove(self, objects: Sequence[Object]) -> None:
        """Remove payloads, also those that are gone already."""
        ...


class Owner(NamedTuple):
    """Name the run whose payloads lie in a folder."""

    run: str
    is_open: bool


class RowLocation:
    """Payloads that are rows of the database."""

    def __init__(self, rows: PayloadRows) -> None:
        """Look into one store."""
        self.database: Database = rows.database
        self._rows = rows
        self.runs: dict[str, Owner] = {}
        """The runs that the store knows, by their folders; `folders` reads them."""

    async def folders(self) -> list[str]:
        """Return the folders of all runs that have payloads here."""
        known = await self._known()
        self.runs = {key_of(row.run): row for row in known}
        there = await self._rows.runs()
        others = there | {attached_to(row.run.rpartition("/")[0]) for row in known}
        self.runs |= {key_of(run): Owner(run, is_open=False) for run in others if key_of(run) not in self.runs}
        return sorted(map(key_of, there))

    async def listed(self, folder: str) -> list[Object]:
        """Return all payloads of a folder."""
        row = self.runs.get(folder)
        found = [] if row is None else await self._sizes(row.run)
        return [Object(folder, name, size) for name, size in found if _PAYLOAD.fullmatch(name)]

    async def read(self, folder: str, name: str) -> bytes | None:
        """Return a payload as it lies there, or None."""
        row = self.runs.get(folder)
        return None if row is None else await self._rows.get(row.run, name)

    async def write(self, folder: str, name: str, data: bytes) -> None:
        """Keep a payload durably; raises KeyError for a run that the store does not know."""
        await self._rows.put(self.runs[folder].run, name, data)

    async def remove(self, objects: Sequence[Object]) -> None:
        """Remove payloads, also those that are gone already."""
        for folder in dict.fromkeys(each.folder for each in objects):
            await self._rows.erase(self.runs[folder].run, [each.name for each in objects if each.folder == folder])

    @reading
    def _known(self, connection: Connection) -> list[Owner]:
        found = connection.execute(select(runs.c.run, runs.c.closed_at, runs.c.pruned_at)).all()
        return [Owner(run, is_open=closed_at is None and pruned_at is None) for run, closed_at, pruned_at in found]

    @reading
    def _sizes(self, connection: Connection, run: str) -> list[tuple[str, int]]:
        return [(name, int(size)) for name, size in connection.execute(_SIZES, {"run_": run})]


class FolderLocation:
    """Payloads that are files."""

    def __init__(self, root: Path) -> None:
        """Look into one folder of payloads, which may be missing."""
        self._root = root

    async def folders(self) -> list[str]:
        """Return the folders of all runs that have payloads here."""
        return await asyncio.to_thread(self._folders)

    async def listed(self, folder: str) -> list[Object]:
        """Return all payloads of a folder."""
        return await asyncio.to_thread(self._listed, folder)

    async def read(self, folder: str, name: str) -> bytes | None:
        """Return a payload as it lies there, or None."""
        return await asyncio.to_thread(self._do, folder, lambda files: files.read(name))

    async def write(self, folder: str, name: str, data: bytes) -> None:
        """Keep a payload durably."""
        await asyncio.to_thread(self._do, folder, lambda files: files.write(name, data))

    async def remove(self, objects: Sequence[Object]) -> None:
        """Remove payloads, also those that are gone already."""
        for each in objects:
            await asyncio.to_thread(self._do, each.folder, partial(_remove, name=each.name))

    async def followed(self, folder: str) -> str | None:
        """Return which run the run of a folder follows, where a file says so."""
        return await asyncio.to_thread(self._do, folder, lambda files: files.followed())

    async def follow(self, folder: str, run: str) -> None:
        """Let the run of a folder read what another one has stored."""
        await asyncio.to_thread(self._do, folder, lambda files: files.follow(run))

    async def drop(self, folder: str) -> None:
        """Remove a folder in which no payload is left."""
        await asyncio.to_thread(self._do, folder, lambda files: files.drop())

    def _do(self, folder: str, work: Callable[[RunDirectory], Answer]) -> Answer:
        with disk_faults():
            return work(RunDirectory.named(self._root, folder))

    def _folders(self) -> list[str]:
        with disk_faults():
            there = self._root.iterdir() if self._root.is_dir() else ()
            return sorted(path.name for path in there if _FOLDER.fullmatch(path.name))

    def _listed(self, folder: str) -> list[Object]:
        with disk_faults():
            there = RunDirectory.named(self._root, folder).sizes()
            return [Object(folder, name, size) for name, size in sorted(there.items()) if _PAYLOAD.fullmatch(name)]


def _remove(files: RunDirectory, *, name: str) -> None:
    files.remove(name)
