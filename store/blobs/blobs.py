"""Store payloads that are too private for history, or too large: small ones in the database, others elsewhere.

Elsewhere is a folder, or an object store that speaks the protocol of S3; or nowhere, where all are in the database.
"""

import asyncio
import hashlib
import hmac
import json
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from backstay.canonical import canonical
from backstay.errors import StoreUnavailable
from backstay.task.attachment import attached_to
from store.blobs.objects import ObjectPart, Objects
from store.blobs.rows import MOST_BYTES, SEALED, PayloadKey, PayloadRows, unwritten
from store.blobs.shown import (
    DAMAGED,
    DIGITS,
    FileBlobs,
    FileBlobStore,
    Recent,
    RunDirectory,
    decode,
    encode,
    missing,
    ref_of,
    require_ref,
)
from store.database.database import Database
from store.database.identity import StoreIdentity
from store.database.waiting import waiting_for
from store.faults import disk_faults
from store.secrets.seal import Seal
from system.files import make_private_directory, remove_durably, write_whole

_MOST_SHARED = 1000
_SPILLED = "spilled"
"""The folder that names payloads which wait as files for a database; no run's folder is called so."""
_MARKER = re.compile("[0-9a-f]{64}")
_UNFINISHED_S = 3600
"""After how long a file there that was never finished is that of a worker which was killed meanwhile."""
_MOVE_PAUSE_S = 1.0


class SharedRuns:
    """Remember runs whose payloads are files as well, and of which of them this process has written all that were."""

    def __init__(self) -> None:
        """Know none; the database knows all."""
        self._known: OrderedDict[str, bool] = OrderedDict()

    def has(self, run: str) -> bool:
        """Return whether a run is known for that."""
        return run in self._known

    def is_whole(self, run: str) -> bool:
        """Return whether this process has written what was stored before."""
        return self._known.get(run, False)

    def add(self, run: str, *, whole: bool = False) -> None:
        """Remember a run, and forget the oldest one if there are many."""
        self._known[run] = whole or self.is_whole(run)
        while len(self._known) > _MOST_SHARED:
            self._known.popitem(last=False)


class _Common(NamedTuple):
    """Hold what the payloads of all runs have in common."""

    rows: PayloadRows
    row_seal: Seal
    """Without keys, a look into the database shows nothing all the same."""
    file_seal: Seal
    key: bytes
    shared: SharedRuns
    in_database: bool
    """Whether payloads of every size are rows."""
    objects: Objects | None
    """Where large payloads are; None: in the folder, or in the database."""

    @property
    def in_folder(self) -> bool:
        """Return whether large payloads are files, and programs read files."""
        return not self.in_database and self.objects is None

    def keyed_hash(self, data: bytes) -> str:
        """Return the ref of a sealed payload."""
        return hmac.new(self.key, data, hashlib.sha256).hexdigest()[:DIGITS]

    def opened(self, ref: str, sealed: bytes) -> bytes:
        """Return what was sealed; raises StoreUnavailable for damage, WorkerMisfit for a key that is missing."""
        data = self.row_seal.open(sealed)
        if not hmac.compare_digest(self.keyed_hash(data), ref):
            raise StoreUnavailable(DAMAGED.format(ref))
        return data


class Blobs(FileBlobs):
    """Store the payloads of one run: shown ones under their hash, sealed ones under a keyed hash."""

    def __init__(self, root: Path, run: str, recent: Recent, common: _Common) -> None:
        """Use `BlobStore.of` instead."""
        super().__init__(root, run, recent)
        self._root = root
        self._common = common

    async def seal(self, data: bytes) -> str:
        """Store a raw payload, encrypted if there are keys; its ref does not reveal its hash."""
        if self._is_large(data):
            return await self._seal_large(data)
        ref = self._common.keyed_hash(data)
        await self._keep(f"{ref}{SEALED}", self._common.row_seal.close(data), lambda: None)
        return ref

    async def unseal(self, ref: str) -> bytes:
        """Return a raw payload. Raises what `get` raises, and WorkerMisfit when its key is missing."""
        require_ref(ref)
        name = f"{ref}{SEALED}"
        held = self._held(name)
        sealed = await self._found(name) if held is None else held
        is_small = len(sealed) <= MOST_BYTES
        opened = self._common.opened
        return opened(ref, sealed) if is_small else await asyncio.to_thread(opened, ref, sealed)

    async def seal_json(self, value: Any) -> str:
        """Seal a JSON value in its canonical form."""
        return await self.seal(encode(value))

    async def unseal_json(self, ref: str) -> Any:
        """Return a sealed JSON value."""
        return decode(await self.unseal(ref))

    async def part(self, ref: str, offset: int, most: int) -> ObjectPart:
        """Return a part of what `get` returns, without reading the whole where that is dear.

        The reader who joins the parts compares the hash of the whole. Raises what `get` raises.
        """
        require_ref(ref)
        objects, known = self._common.objects, self._recent.get((self._run, ref)) or self._held(ref)
        if objects is not None and known is None:
            found = await self._part_of_object(objects, ref, offset, most)
            if found is not None and len(found.data) < found.size:
                return found
            if found is not None:
                return ObjectPart(found.size, self._checked(ref, found.data)[:most])
        data = await self.get(ref)
        return ObjectPart(len(data), data[offset : offset + most])

    async def erase(self, names: Sequence[str]) -> int:
        """Remove payloads of the run by their names, wherever they are; return how many there were."""
        if not names:
            return 0
        erased = await self._common.rows.erase(self._run, names)
        erased |= await asyncio.to_thread(self._remove, names)
        if self._common.objects is not None:
            erased |= await self._common.objects.erase(self._run, names)
        for name in names:
            self._recent.drop((self._run, name))
        return len(erased)

    async def follow(self, run: str) -> None:
        """Let this run read what another one, which has ended, has stored."""
        if self._common.in_folder:
            await super().follow(run)
        else:
            await self._common.rows.follow(self._run, run)

    async def share(self) -> None:
        """Keep what is shown of the run, and of those that it follows, as files as well, from now on.

        Programs read them, and the role that runs programs has no database. A blob that a lost attempt still writes at
        this moment may have no file; its refs reach nobody.
        """
        if not self._common.in_folder or self._common.shared.is_whole(self._run):
            return
        await self._common.rows.share(self._run)
        run: str | None = self._run
        while run is not None:
            there, followed = await asyncio.to_thread(self._in_files, run)
            for names in unwritten(await self._common.rows.shown(run), there):
                await asyncio.to_thread(self._write, await self._common.rows.some(run, names))
            run = followed
        self._common.shared.add(self._run, whole=True)

    async def _keep(self, name: str, data: bytes, kept: Callable[[], None]) -> None:
        # A sealed value is a little longer than its content, by which its place was chosen.
        if self._is_large(data) and not name.endswith(SEALED):
            await self._keep_large(name, data)
            kept()
            return
        # A sealed value is of no use to programs.
        is_copied = not self._common.in_folder or name.endswith(SEALED)
        if not is_copied and self._common.shared.has(self._run):
            await asyncio.to_thread(self._write, {name: data})
            is_copied = True

        async def then(shared: bool) -> None:  # noqa: FBT001 - what the transaction answers
            if shared and not is_copied:
                self._common.shared.add(self._run)
                await asyncio.to_thread(self._write, {name: data})
            kept()

        await self._common.rows.put(self._run, name, data, then)

    def _held(self, name: str) -> bytes | None:
        return self._common.rows.held(self._run, name)

    async def _found(self, name: str) -> bytes:
        run: str | None = self._run
        while run is not None:
            before, data = run, await self._common.rows.get(run, name)
            if data is None and self._common.objects is not None:
                data = await self._common.objects.get(run, name)
            if data is None:
                data, run = await asyncio.to_thread(self._in_folder, run, name)
            if data is not None:
                return data
            run = run or await self._common.rows.followed(before)
        raise missing(name)

    def _is_large(self, data: bytes) -> bool:
        return len(data) > MOST_BYTES and not self._common.in_database

    async def _keep_large(self, name: str, data: bytes) -> None:
        if self._common.objects is None:
            await asyncio.to_thread(self._write, {name: data})
        else:
            await self._common.objects.put(self._run, name, data)

    async def _seal_large(self, data: bytes) -> str:
        if self._common.objects is None:
            return await asyncio.to_thread(self._seal_file, data)
        ref = self._common.keyed_hash(data)
        # A person who looks into the bucket sees nothing, as one who looks into the database.
        sealed = await asyncio.to_thread(self._common.row_seal.close, data)
        await self._common.objects.put(self._run, f"{ref}{SEALED}", sealed)
        return ref

    async def _part_of_object(self, objects: Objects, name: str, offset: int, most: int) -> ObjectPart | None:
        """Return a part of an object, or a whole row, of the run or of those that it follows; None for neither."""
        run: str | None = self._run
        while run is not None:
            # Most payloads are rows, and of those that are not whoever reads on has seen the beginning.
            row = await self._common.rows.get(run, name) if offset == 0 else None
            found = await objects.part(run, name, offset, most) if row is None else ObjectPart(len(row), row)
            if found is not None:
                return found
            run = await self._common.rows.followed(run)
        return None

    def _remove(self, names: Sequence[str]) -> frozenset[str]:
        with disk_faults():
            there = frozenset(self._folder.names()).intersection(names)
            for name in there:
                self._folder.remove(name)
        return there

    def _in_files(self, run: str) -> tuple[set[str], str | None]:
        """Return which payloads are files where programs of this run look, and which run a run follows."""
        folder = RunDirectory(self._root, run)
        with disk_faults():
            return {*self._folder.names(), *folder.names()}, folder.followed()

    def _in_folder(self, run: str, name: str) -> tuple[bytes | None, str | None]:
        """Return what lies in the folder of a run, or which run it follows."""
        folder = RunDirectory(self._root, run)
        with disk_faults():
            data = folder.read(name)
            return data, folder.followed() if data is None else None

    def _seal_file(self, data: bytes) -> str:
        ref = self._common.keyed_hash(data)
        name = f"{ref}{SEALED}"
        with disk_faults():
            old = self._folder.read(name)
            if old is None or not self._holds(old, data):
                self._folder.write(name, self._common.file_seal.close(data))
        return ref

    def _holds(self, sealed: bytes, data: bytes) -> bool:
        """Return whether a sealed file can stay; one written without keys or with a lost key is written again."""
        seal = self._common.file_seal
        try:
            return seal.fits(sealed) and seal.open(sealed) == data
        except Exception:
            return False


class BlobStore(FileBlobStore):
    """Give access to the payloads of all runs, shown and sealed."""

    def __init__(
        self,
        root: Path,
        database: Database,
        seal: Seal,
        identity: StoreIdentity,
        *,
        in_database: bool,
        objects: Objects | None = None,
    ) -> None:
        """Use this directory, which is created at the first write, and this database."""
        super().__init__(root)
        self.rows = PayloadRows(database)
        own = seal.with_own(identity.key("\0payloads"))
        key = identity.key("\0sealed payloads")
        self.objects = objects
        self._moving: asyncio.Task[None] | None = None
        self._is_spilled_anew = False
        self._common = _Common(*(self.rows, own, seal, key, SharedRuns()), in_database=in_database, objects=objects)
        outside = "files" if objects is None else objects.address
        self.place = "database" if in_database else outside
        """As the setting says it."""
        self.in_folder = self._common.in_folder
        """Whether large payloads are in the folder, and programs read files."""

    def of(self, run: str) -> Blobs:
        """Return the payloads of one run."""
        return Blobs(self.root, run, self._recent, self._common)

    async def attach(self, workflow_id: str, files: Sequence[bytes], at: float) -> list[str]:
        """Seal what is attached, at a time in unix seconds, to the next run of a workflow id; return the refs."""
        run = attached_to(workflow_id)
        # First, so that nothing lies there of which a row does not say whose it is, and since when.
        await self.rows.attach(run, at)
        return [await self.of(run).seal(data) for data in files]

    def content(self, name: str, data: bytes) -> bytes:
        """Return what a payload holds as it lies somewhere; raises what `unseal` raises of one that is there."""
        if name.endswith(SEALED):
            return self._common.opened(name.removesuffix(SEALED), data)
        if ref_of(data) != name:
            raise StoreUnavailable(DAMAGED.format(name))
        return data

    def sealed_anew(self, content: bytes) -> bytes:
        """Return a payload as it is sealed in the database and in a bucket."""
        return self._common.row_seal.close(content)

    async def spill(self) -> None:
        """Keep as files what waits for a database that cannot be written to, so that it is not lost.

        Where payloads have no shared folder, they are moved into the database once it can be written to again.
        """
        if (waiting := waiting_for(self.rows.database)) is None:
            return
        for key in waiting.keys:
            if isinstance(key, PayloadKey):
                await asyncio.to_thread(self._spill, key, waiting.value(key))
                waiting.drop(key)
                self._is_spilled_anew = True
        if not self.in_folder and (self._moving is None or self._moving.done()):
            self._moving = asyncio.create_task(self._move_when_possible())

    async def move_spilled(self) -> int:
        """Move into the database what was kept as files while it could not be written to; return how many."""
        spilled, moved = await asyncio.to_thread(self._spilled), 0
        for marker, key in spilled:
            data = await asyncio.to_thread(RunDirectory(self.root, key.run).read, key.name)
            if data is None:
                # Its marker is written first: another worker of this host may be about to write it.
                await asyncio.to_thread(self._forget_unfinished, marker)
                continue
            await self.rows.put(key.run, key.name, data)
            await asyncio.to_thread(self._forget_spilled, marker, key)
            moved += 1
        return moved

    async def close(self) -> None:
        """Stop what goes on in the background; a file that was not moved is moved by the next worker of this host."""
        if self._moving is not None:
            self._moving.cancel()
            with suppress(asyncio.CancelledError):
                await self._moving

    async def _move_when_possible(self) -> None:
        while True:
            await asyncio.sleep(_MOVE_PAUSE_S)
            self._is_spilled_anew = False
            try:
                await self.move_spilled()
            except StoreUnavailable:
                continue
            # A payload that was spilled meanwhile may not have been there when it looked.
            if not self._is_spilled_anew:
                return

    def _spill(self, key: PayloadKey, data: bytes) -> None:
        with disk_faults():
            if not self.in_folder:
                marker = self.root / _SPILLED / hashlib.sha256(canonical(key).encode()).hexdigest()
                make_private_directory(marker.parent)
                write_whole(marker, canonical(key).encode())
            RunDirectory(self.root, key.run).write(key.name, data)

    def _spilled(self) -> list[tuple[Path, PayloadKey]]:
        folder = self.root / _SPILLED
        spilled: list[tuple[Path, PayloadKey]] = []
        with disk_faults():
            for found in sorted(folder.iterdir()) if folder.is_dir() else []:
                # Another worker of this host may move the same, or be about to give a file its name.
                with suppress(FileNotFoundError):
                    if _MARKER.fullmatch(found.name):
                        spilled.append((found, PayloadKey(*json.loads(found.read_bytes()))))
                    else:
                        self._forget_unfinished(found)
        return spilled

    def _forget_unfinished(self, path: Path) -> None:
        """Remove what is left of a payload that a worker was killed amid, once nobody can be at it any more."""
        with disk_faults(), suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - _UNFINISHED_S:
                path.unlink()

    def _forget_spilled(self, marker: Path, key: PayloadKey) -> None:
        with disk_faults():
            RunDirectory(self.root, key.run).remove(key.name)
            remove_durably(marker)
