"""Verify payloads: each that is stored is what was written, and each that the store names is stored.

Workers may go on meanwhile: a payload removed while it is looked for has gone with its run.
"""

import asyncio
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from sqlalchemy import Connection, select

from backstay.errors import StoreUnavailable, WorkerMisfit
from backstay.shown import one_line
from store.blobs.blobs import Blobs, BlobStore
from store.blobs.lying import FolderLocation, PayloadLocation, RowLocation
from store.blobs.rows import SEALED
from store.blobs.shown import Missing
from store.database.schema import effects, events, runs
from store.database.transactions import reading
from store.runs.naming import (
    SEALED_OF_EFFECT,
    conversation,
    of_answer,
    of_effect,
    of_lists,
    of_result,
    ref_of_event,
)

_NOTHING = frozenset[str]()


class StoreReport(NamedTuple):
    """Count what was looked at, and say what is wrong."""

    payloads: dict[str, int]
    """By their place."""
    bytes: int
    faults: tuple[str, ...]


class _Naming(NamedTuple):
    """Hold what the rows of a run name."""

    run: str
    context: str | None
    results: tuple[str, ...]
    others: tuple[str, ...]


class Verifying:
    """Verify the payloads of one store."""

    def __init__(self, blobs: BlobStore) -> None:
        """Work on one store."""
        self.database = blobs.rows.database
        self._blobs = blobs

    async def payloads(self) -> StoreReport:
        """Read every payload; raises StoreUnavailable when a place does not answer."""
        rows = RowLocation(self._blobs.rows)
        places: dict[str, PayloadLocation] = {"database": rows, "files": FolderLocation(self._blobs.root)}
        if self._blobs.objects is not None:
            places[self._blobs.objects.address] = self._blobs.objects
        counts, size, faults, damaged = dict.fromkeys(places, 0), 0, list[str](), dict[str, set[str]]()
        await rows.folders()
        for where, place in places.items():
            for folder in await place.folders():
                run = rows.runs[folder].run if folder in rows.runs else folder
                for name, length, fault in await self._looked_at(place, folder):
                    counts[where] += 1
                    size += length
                    if fault:
                        faults.append(f"{one_line(run, 200)}: {name} in {where}: {fault}")
                        damaged.setdefault(run, set()).add(name)
        for naming in await self._names():
            faults += await self._lost(naming, damaged.get(naming.run, _NOTHING))
        return StoreReport(counts, size, tuple(faults))

    async def _looked_at(self, place: PayloadLocation, folder: str) -> list[tuple[str, int, str]]:
        """Return name, size and fault of each payload in a folder."""
        found: list[tuple[str, int, str]] = []
        for each in await place.listed(folder):
            data = await place.read(folder, each.name)
            if data is not None:
                found.append((each.name, len(data), await asyncio.to_thread(self._fault, each.name, data)))
        return found

    def _fault(self, name: str, data: bytes) -> str:
        try:
            self._blobs.content(name, data)
        except (StoreUnavailable, WorkerMisfit) as error:
            return str(error)
        return ""

    async def _lost(self, naming: _Naming, damaged: AbstractSet[str]) -> list[str]:
        """Return which payloads of a run are nowhere."""
        blobs = self._blobs.of(naming.run)
        try:
            pieces, ends = await conversation(blobs, naming.context)
            names = [*naming.others, *pieces, *ends]
            for ref in dict.fromkeys((*naming.results, *await self._told(naming.run))):
                names += await of_result(blobs, ref)
        except StoreUnavailable:
            if not damaged:
                raise
            # The names in a damaged payload are not known.
            return []
        lost = [name for name in dict.fromkeys(names) if name not in damaged and not await _has(blobs, name)]
        if not lost or await self._is_pruned(naming.run):
            return []
        return [f"{one_line(naming.run, 200)}: {name}: nowhere; restore it from a backup" for name in lost]

    @reading
    def _names(self, connection: Connection) -> list[_Naming]:
        of_effects: dict[str, tuple[list[str], list[str]]] = {}
        own = effects.c
        for run, result, *sealed in connection.execute(select(own.run, own.result_ref, *SEALED_OF_EFFECT)):
            results, others = of_effects.setdefault(run, ([], []))
            results += [result] if result else []
            others += of_effect(sealed)
        rows = connection.execute(select(runs.c.run, runs.c.context, runs.c.result).where(runs.c.pruned_at.is_(None)))
        found: list[_Naming] = []
        for run, context, result in rows:
            results, others = of_effects.get(run, ([], []))
            told = result or {}
            found.append(_Naming(run, context, (*results, *of_lists(told), *of_answer(told)), (*others,)))
        return found

    @reading
    def _told(self, connection: Connection, run: str) -> list[str]:
        """Return the refs of what the calls of a run have answered, those that only read included."""
        bodies = connection.execute(select(events.c.body).where(events.c.run == run)).scalars()
        return [ref for body in bodies if (ref := ref_of_event(body))]

    @reading
    def _is_pruned(self, connection: Connection, run: str) -> bool:
        return connection.execute(select(runs.c.pruned_at).where(runs.c.run == run)).scalar() is not None


async def _has(blobs: Blobs, name: str) -> bool:
    try:
        await (blobs.unseal(name.removesuffix(SEALED)) if name.endswith(SEALED) else blobs.get(name))
    except Missing:
        return False
    except WorkerMisfit:
        # It is there, and no key of these settings opens it.
        return True
    return True
