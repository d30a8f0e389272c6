"""Store payloads that may be shown, under the hash of their content, in one folder per run.

Runs never share a file, even if they write the same bytes. So one run can be pruned while others write, without locks
or reference counts. A run that follows another one names it in its folder, and reads there what it has not written
itself; it is pruned first.
"""

import asyncio
import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

from backstay.canonical import canonical
from backstay.errors import ArgumentsInvalid, StoreUnavailable, WorkerMisfit
from store.faults import disk_faults
from system.files import make_private_directory, sync, write_whole

_REF = re.compile(r"[0-9a-f]{40}")


RECORD = "backstay/result"
"""What a stored record of a result says that it is."""
RunRef = tuple[str, str]
"""A run and a ref; equal refs of two runs name different files."""


class Recent:
    """Cache the most recently used payloads up to a total size; one payload may take a quarter of it."""

    def __init__(self, limit: int = 32 * 1024 * 1024) -> None:
        """Start empty."""
        self._limit = limit
        self._kept: OrderedDict[RunRef, bytes] = OrderedDict()
        self._size = 0

    def get(self, ref: RunRef) -> bytes | None:
        """Return the bytes and mark them as most recent, or return None."""
        if ref in self._kept:
            self._kept.move_to_end(ref)
        return self._kept.get(ref)

    def put(self, ref: RunRef, data: bytes) -> None:
        """Cache the bytes, and drop the oldest ones if there is no room."""
        if len(data) > self._limit // 4 or ref in self._kept:
            return
        self._kept[ref] = data
        self._size += len(data)
        while self._size > self._limit:
            self._size -= len(self._kept.popitem(last=False)[1])

    def drop(self, ref: RunRef) -> None:
        """Forget a payload that was removed."""
        self._size -= len(self._kept.pop(ref, b""))


class Missing(WorkerMisfit):
    """A payload is not in this worker's folder."""


DIGITS = 40
FOLLOWS = "follows"
"""The name under which a run says which one it follows; no ref is called so."""
DAMAGED = "store: the payload {} is not what was written; restore it from a backup"


def key_of(run: str) -> str:
    """Return the name of the folder that holds all payloads of a run."""
    return hashlib.sha256(run.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def folder_of(root: Path, run: str) -> Path:
    """Return the folder that holds all payloads of a run."""
    return root / key_of(run)


class RunDirectory:
    """Store the payloads of one run in a folder of its own, so that pruning a run removes nothing of another.

    A file is written whole and durably, or not at all.
    """

    def __init__(self, root: Path, run: str) -> None:
        """Use the run's folder; it is created at the first write."""
        self._root = folder_of(root, run)
        self._payloads = root

    @classmethod
    def named(cls, payloads: Path, folder: str) -> "RunDirectory":
        """Return the directory of the run whose folder is called so."""
        directory = cls(payloads, "")
        directory._root = payloads / folder
        return directory

    def sizes(self) -> dict[str, int]:
        """Return the sizes of all files in the folder by their names."""
        there = self._root.iterdir() if self._root.is_dir() else ()
        return {path.name: path.stat().st_size for path in there}

    def drop(self) -> None:
        """Remove the folder, and what it says of a run that is followed; where a payload is left, it stays."""
        self.remove(FOLLOWS)
        with suppress(OSError):
            self._root.rmdir()

    def names(self) -> list[str]:
        """Return the names of all payloads in the folder."""
        return [path.name for path in self._root.iterdir()] if self._root.is_dir() else []

    def read(self, name: str) -> bytes | None:
        """Return the bytes, or None."""
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write the file durably, before its ref goes into the database: every ref there must have its file."""
        path = self._root / name
        new_directory = not self._root.is_dir()
        make_private_directory(self._root)
        write_whole(path, data)
        if new_directory:
            sync(self._root.parent)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self._root / name).unlink(missing_ok=True)

    def follow(self, run: str) -> None:
        """Let this run read what another one has stored."""
        new_directory = not self._root.is_dir()
        make_private_directory(self._root)
        write_whole(self._root / FOLLOWS, run.encode("utf-8", "surrogatepass"))
        if new_directory:
            sync(self._root.parent)

    def find(self, name: str) -> bytes:
        """Return the bytes, also of a run that this one follows; raises Missing."""
        data = self.read(name)
        run = self.followed() if data is None else None
        while data is None and run is not None:
            before = RunDirectory(self._payloads, run)
            data, run = before.read(name), before.followed()
        if data is None:
            raise missing(name)
        return data

    def followed(self) -> str | None:
        """Return the run that this one follows, or None."""
        try:
            return (self._root / FOLLOWS).read_bytes().decode("utf-8", "surrogatepass")
        except FileNotFoundError:
            return None


def require_ref(ref: str) -> None:
    """Raise ArgumentsInvalid for what cannot be a ref, before it is used as a name."""
    if not _REF.fullmatch(ref):
        shown = repr(ref) if len(ref) <= 80 else repr(ref[:77]) + "..."
        raise ArgumentsInvalid(f"no stored result {shown}: a ref is 40 hexadecimal digits")


def missing(name: str) -> Missing:
    """Return the error for a payload that is nowhere."""
    return Missing(
        f"no stored result {name[:DIGITS]} in the payloads of this worker; give all workers the same BACKSTAY_BLOBS "
        "and BACKSTAY_PAYLOADS, or restore the folder"
    )


class ShownBlobs(ABC):
    """Store the shown payloads of one run, each under its hash."""

    def __init__(self, run: str, recent: Recent) -> None:
        """Use `ShownBlobStore.of` instead."""
        self._run = run
        self._recent = recent

    async def put(self, data: bytes) -> str:
        """Store bytes durably and return their ref; the same bytes have the same ref."""
        ref = ref_of(data)
        if self._recent.get((self._run, ref)) is None:
            await self._keep(ref, data, lambda: self._recent.put((self._run, ref), data))
        return ref

    async def get(self, ref: str) -> bytes:
        """Return stored bytes.

        Raises ArgumentsInvalid when `ref` cannot be a ref, Missing when nothing is stored under it here, which is a
        fault of this worker unless a model made the ref up, and StoreUnavailable when it was changed on disk.
        """
        data = self._recent.get((self._run, ref))
        data = self._held(ref) if data is None else data
        if data is None:
            require_ref(ref)
            data = self._checked(ref, await self._found(ref))
        return data

    async def put_json(self, value: Any) -> str:
        """Store a JSON value in its canonical form."""
        return await self.put(encode(value))

    async def get_json(self, ref: str) -> Any:
        """Return a stored JSON value."""
        return decode(await self.get(ref))

    async def record(self, ref: str) -> dict[str, Any]:
        """Return the record of a result; raises ArgumentsInvalid when the ref names none."""
        record = await self.get_json(ref)
        if not isinstance(record, dict) or record.get("kind") != RECORD:
            raise ArgumentsInvalid(f"ref: {ref[:80]!r} names no stored result; use the ref of an earlier answer")
        return record

    async def result(self, ref: str) -> Any:
        """Return the full shown form of a result; raises ArgumentsInvalid when the ref names none."""
        record = await self.record(ref)
        digest = record["digest"]
        return digest["data"] if "data" in digest else await self.get_json(record["shown"])

    async def named_by_a_person(self, ref: str) -> Any:
        """Return the shown form of a result, or a long text of an argument, which a request only refers to.

        Raises ArgumentsInvalid for a ref under which nothing of this kind is stored here.
        """
        try:
            stored = await self.get_json(ref)
        except Missing as error:
            raise ArgumentsInvalid(f"no stored result {ref}; use the ref of an earlier answer") from error
        match stored:
            case {"leaf": str(text), **rest} if not rest:
                return text
            case _:
                return await self.result(ref)

    async def expect(self, _refs: Collection[str]) -> None:
        """Prepare to read several results, where reading them one by one takes longer; nothing to do for files."""
        return

    @abstractmethod
    async def _keep(self, name: str, data: bytes, kept: Callable[[], None]) -> None:
        """Keep a payload durably, and say so once it is."""

    def _checked(self, ref: str, data: bytes) -> bytes:
        """Return a payload that is what was written, and remember it; raises StoreUnavailable for another one."""
        if ref_of(data) != ref:
            raise StoreUnavailable(DAMAGED.format(ref))
        self._recent.put((self._run, ref), data)
        return data

    def _held(self, _name: str) -> bytes | None:
        """Return a payload that is not kept yet; it must not count as one that is."""
        return None

    @abstractmethod
    async def _found(self, name: str) -> bytes:
        """Return a payload as it is kept; raises Missing."""


class FileBlobs(ShownBlobs):
    """Store the shown payloads of one run in the folder of the run."""

    def __init__(self, root: Path, run: str, recent: Recent) -> None:
        """Use `FileBlobStore.of` instead."""
        super().__init__(run, recent)
        self._folder = RunDirectory(root, run)

    async def follow(self, run: str) -> None:
        """Let this run read what another one, which has ended, has stored."""
        await asyncio.to_thread(self._follow, run)

    async def _keep(self, name: str, data: bytes, kept: Callable[[], None]) -> None:
        await asyncio.to_thread(self._write, {name: data})
        kept()

    async def _found(self, name: str) -> bytes:
        return await asyncio.to_thread(self._find, name)

    def _follow(self, run: str) -> None:
        with disk_faults():
            self._folder.follow(run)

    def _write(self, files: Mapping[str, bytes]) -> None:
        with disk_faults():
            for name, data in files.items():
                if self._folder.read(name) != data:
                    self._folder.write(name, data)

    def _find(self, name: str) -> bytes:
        with disk_faults():
            return self._folder.find(name)


class ShownBlobStore(ABC):
    """Give access to the shown payloads of all runs, without keys and without a database."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._recent = Recent()

    @abstractmethod
    def of(self, run: str) -> ShownBlobs:
        """Return the payloads of one run."""

    def together(self) -> AbstractAsyncContextManager[None]:
        """Open a block of which the payloads may be kept at its end, together."""
        return nullcontext()


class FileBlobStore(ShownBlobStore):
    """Keep payloads as files."""

    def __init__(self, root: Path) -> None:
        """Use this directory; it is created at the first write."""
        super().__init__()
        self.root = root

    def of(self, run: str) -> FileBlobs:
        """Return the payloads of one run."""
        return FileBlobs(self.root, run, self._recent)


def ref_of(data: bytes) -> str:
    """Return the ref of a payload that may be shown."""
    return hashlib.sha256(data).hexdigest()[:DIGITS]


def encode(value: Any) -> bytes:
    """Return the canonical form; raises ArgumentsInvalid for a value that is not JSON."""
    try:
        return canonical(value).encode("utf-8", "surrogatepass")
    except (ValueError, TypeError, RecursionError) as error:
        raise ArgumentsInvalid(f"this value cannot be stored as JSON: {error}") from None


def decode(data: bytes) -> Any:
    """Return the stored value; raises ArgumentsInvalid for bytes that are not JSON."""
    try:
        return json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        raise ArgumentsInvalid("this stored result is not JSON") from None
