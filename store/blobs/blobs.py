"""Store payloads that are too large or too private for the database."""

import asyncio
import hashlib
import hmac
from pathlib import Path
from typing import Any

from backstay.errors import StoreUnavailable
from store.blobs.shown import DAMAGED, DIGITS, Recent, RunDirectory, ShownBlobs, ShownBlobStore, decode, encode
from store.database.identity import StoreIdentity
from store.faults import disk_faults
from store.secrets.seal import Seal


class Blobs(ShownBlobs):
    """Store the payloads of one run: shown ones under their hash, sealed ones under a keyed hash."""

    def __init__(self, root: Path, run: str, recent: Recent, seal: Seal, key: bytes) -> None:
        """Use `BlobStore.of` instead."""
        super().__init__(root, run, recent)
        self._sealed = RunDirectory(root, run, ".sealed")
        self._seal = seal
        self._key = key

    async def seal(self, data: bytes) -> str:
        """Store a raw payload, encrypted if there are keys; its ref does not reveal its hash."""
        return await asyncio.to_thread(self._close, data)

    async def unseal(self, ref: str) -> bytes:
        """Return a raw payload. Raises what `get` raises, and WorkerMisfit when its key is missing."""
        return await asyncio.to_thread(self._open, ref)

    async def seal_json(self, value: Any) -> str:
        """Seal a JSON value in its canonical form."""
        return await self.seal(encode(value))

    async def unseal_json(self, ref: str) -> Any:
        """Return a sealed JSON value."""
        return decode(await self.unseal(ref))

    def _close(self, data: bytes) -> str:
        ref = self._keyed_hash(data)
        with disk_faults():
            old = self._sealed.read(ref)
            if old is None or not self._holds(old, data):
                self._sealed.write(ref, self._seal.close(data))
        return ref

    def _open(self, ref: str) -> bytes:
        with disk_faults():
            sealed = self._sealed.find(ref)
        data = self._seal.open(sealed)
        if not hmac.compare_digest(self._keyed_hash(data), ref):
            raise StoreUnavailable(DAMAGED.format(ref))
        return data

    def _holds(self, sealed: bytes, data: bytes) -> bool:
        """Return whether a sealed file can stay; one written without keys or with a lost key is written again."""
        try:
            return self._seal.fits(sealed) and self._seal.open(sealed) == data
        except Exception:
            return False

    def _keyed_hash(self, data: bytes) -> str:
        return hmac.new(self._key, data, hashlib.sha256).hexdigest()[:DIGITS]


class BlobStore(ShownBlobStore):
    """Give access to the payloads of all runs, shown and sealed."""

    def __init__(self, root: Path, seal: Seal, identity: StoreIdentity) -> None:
        """Use this directory; it is created at the first write."""
        super().__init__(root)
        self._seal = seal
        self._key = identity.key("\0sealed payloads")

    def of(self, run: str) -> Blobs:
        """Return the payloads of one run."""
        return Blobs(self.root, run, self._recent, self._seal, self._key)
