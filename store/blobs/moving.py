"""Move payloads to the place that the settings name, from wherever they are; no worker runs meanwhile.

Each payload is read, compared with its hash, kept durably in its new place, and only then removed from the old one. So
the process may be killed at any moment: a worker that begins again finds each payload in one of both places, or in
both.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from backstay.errors import StoreUnavailable, WorkerMisfit
from store.blobs.blobs import BlobStore
from store.blobs.lying import FolderLocation, PayloadLocation, RowLocation
from store.blobs.objects import Object, Objects
from store.blobs.rows import MOST_BYTES, SEALED

_AT_ONCE = 8


class MoveReport(NamedTuple):
    """Count what has come to its new place, and say what could not."""

    payloads: int
    bytes: int
    faults: tuple[str, ...]


class _MovedPayload(NamedTuple):
    """Hold what became of one payload."""

    moved: int = 0
    """Bytes that were written."""
    is_done: bool = False
    """Whether it is where it belongs, so that it can be removed here."""
    fault: str = ""


class Moving:
    """Move the payloads of one store."""

    def __init__(self, blobs: BlobStore, others: Sequence[Objects]) -> None:
        """Move to the place that the store uses; `others` are buckets in which its payloads were before."""
        self._blobs = blobs
        self._rows = RowLocation(blobs.rows)
        self._folder = FolderLocation(blobs.root)
        self._large: PayloadLocation = blobs.objects or (self._folder if blobs.in_folder else self._rows)
        places: list[PayloadLocation] = [self._rows, self._folder, *others]
        self._sources = [place for place in places if place is not self._large]

    async def move(self) -> MoveReport:
        """Move all; raises StoreUnavailable when a place goes away meanwhile, and then it can be begun again."""
        moved, size, faults = 0, 0, list[str]()
        known = await self._rows.folders()
        for place in self._sources:
            for folder in known if place is self._rows else await place.folders():
                for kept in await self._move_folder(place, folder):
                    moved, size = moved + bool(kept.moved), size + kept.moved
                    faults += [kept.fault] if kept.fault else []
        if self._blobs.in_folder:
            await self._share_again()
        return MoveReport(moved, size, tuple(faults))

    async def _move_folder(self, place: PayloadLocation, folder: str) -> list[_MovedPayload]:
        if place is self._folder and not await self._keep_followed(folder):
            return [_MovedPayload(fault=f"{folder}: the store knows no run of this folder; it stays where it is")]
        there = await place.listed(folder)
        # Small ones are rows wherever large ones are.
        some = [each for each in there if each.size > MOST_BYTES] if place is self._rows else there
        done: list[_MovedPayload] = []
        for start in range(0, len(some), _AT_ONCE):
            group = some[start : start + _AT_ONCE]
            kept = await asyncio.gather(*[self._move_one(place, each) for each in group])
            await place.remove([each for each, became in zip(group, kept, strict=True) if became.is_done])
            done += kept
        if place is self._folder:
            await self._folder.drop(folder)
        return done

    async def _move_one(self, place: PayloadLocation, payload: Object) -> _MovedPayload:
        data = await place.read(payload.folder, payload.name)
        if data is None:
            return _MovedPayload()
        content = await asyncio.to_thread(self._content, payload.name, data)
        home = self._large if content is None or len(content) > MOST_BYTES else self._rows
        if home is place:
            return _MovedPayload()
        if await self._has(home, payload):
            return _MovedPayload(is_done=True)
        if content is None:
            return _MovedPayload(
                fault=f"{payload.folder}/{payload.name}: damaged; it stays where it is, restore it from a backup"
            )
        if home is not self._folder and payload.name.endswith(SEALED) and content is not data:
            data = await asyncio.to_thread(self._blobs.sealed_anew, content)
        try:
            await home.write(payload.folder, payload.name, data)
        except KeyError:
            return _MovedPayload(
                fault=f"{payload.folder}/{payload.name}: the store knows no such run; it stays where it is"
            )
        return _MovedPayload(moved=len(data), is_done=True)

    async def _has(self, place: PayloadLocation, payload: Object) -> bool:
        """Return whether a place has the payload, as it was written."""
        data = await place.read(payload.folder, payload.name)
        return data is not None and await asyncio.to_thread(self._content, payload.name, data) is not None

    def _content(self, name: str, data: bytes) -> bytes | None:
        """Return what a payload holds, or as it is where no key opens it; None for a damaged one."""
        try:
            return self._blobs.content(name, data)
        except WorkerMisfit:
            return data
        except StoreUnavailable:
            return None

    async def _keep_followed(self, folder: str) -> bool:
        """Keep as a row which run the run of a folder follows; return whether the store knows the run."""
        owner, followed = self._rows.runs.get(folder), await self._folder.followed(folder)
        if owner is not None and followed is not None:
            await self._blobs.rows.follow(owner.run, followed)
        return owner is not None

    async def _share_again(self) -> None:
        """Let programs find as files what they read, those of runs that go on."""
        for folder, owner in self._rows.runs.items():
            followed = await self._blobs.rows.followed(owner.run)
            if followed is not None:
                await self._folder.follow(folder, followed)
        for owner in self._rows.runs.values():
            if owner.is_open:
                await self._blobs.of(owner.run).share()
