"""Payloads too big or too private for the database."""

import asyncio
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

from backstay.canonical import canonical
from backstay.errors import ArgumentsInvalid, StoreUnavailable
from store.directory import Directory
from store.faults import faults
from store.identity import StoreIdentity
from store.recent import Recent
from store.seal import Seal

_DIGITS = 40
_DAMAGED = "store: the payload {} is not what was written; restore it from a backup"


class Blobs:
    """Keep bytes under a ref: shown payloads under their hash, sealed ones under a keyed hash."""

    def __init__(self, root: Path, seal: Seal, identity: StoreIdentity) -> None:
        """Name the directory; it is made when something is written."""
        self._shown = Directory(root)
        self._sealed = Directory(root / "sealed")
        self._seal = seal
        self._key = identity.key("\0sealed payloads")
        self._recent = Recent()

    async def put(self, data: bytes) -> str:
        """Store bytes durably and return their ref; the same bytes have the same ref."""
        ref = _hash(data)
        if self._recent.get(ref) is None:
            await asyncio.to_thread(self._put, ref, data)
            self._recent.put(ref, data)
        return ref

    async def get(self, ref: str) -> bytes:
        """Return stored bytes.

        Raises ArgumentsInvalid when nothing is stored under `ref`, StoreUnavailable when it was changed on disk.
        """
        data = self._recent.get(ref)
        if data is None:
            data = await asyncio.to_thread(self._get, ref)
            self._recent.put(ref, data)
        return data

    async def seal(self, data: bytes) -> str:
        """Store a raw payload, encrypted when there are keys; the ref does not reveal a hash of it."""
        return await asyncio.to_thread(self._close, data)

    async def unseal(self, ref: str) -> bytes:
        """Return a raw payload. Raises as `get`, and SettingsInvalid when its key is missing."""
        return await asyncio.to_thread(self._open, ref)

    async def put_json(self, value: Any) -> str:
        """Store a JSON value in its canonical form."""
        return await self.put(_encode(value))

    async def get_json(self, ref: str) -> Any:
        """Return a stored JSON value."""
        return _decode(await self.get(ref))

    async def seal_json(self, value: Any) -> str:
        """Seal a JSON value in its canonical form."""
        return await self.seal(_encode(value))

    async def unseal_json(self, ref: str) -> Any:
        """Return a sealed JSON value."""
        return _decode(await self.unseal(ref))

    def _put(self, ref: str, data: bytes) -> None:
        with faults():
            if self._shown.read(ref) != data:
                self._shown.write(ref, data)

    def _get(self, ref: str) -> bytes:
        with faults():
            data = _found(self._shown.read(ref), ref)
        if _hash(data) != ref:
            raise StoreUnavailable(_DAMAGED.format(ref))
        return data

    def _close(self, data: bytes) -> str:
        ref = self._keyed_hash(data)
        with faults():
            old = self._sealed.read(ref)
            if old is None or not self._holds(old, data):
                self._sealed.write(ref, self._seal.close(data))
        return ref

    def _open(self, ref: str) -> bytes:
        with faults():
            sealed = _found(self._sealed.read(ref), ref)
        data = self._seal.open(sealed)
        if not hmac.compare_digest(self._keyed_hash(data), ref):
            raise StoreUnavailable(_DAMAGED.format(ref))
        return data

    def _holds(self, sealed: bytes, data: bytes) -> bool:
        """Say whether a sealed file can stay; one made before the keys were set, or with a lost key, cannot."""
        try:
            return self._seal.fits(sealed) and self._seal.open(sealed) == data
        except Exception:
            return False

    def _keyed_hash(self, data: bytes) -> str:
        return hmac.new(self._key, data, hashlib.sha256).hexdigest()[:_DIGITS]


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def _found(data: bytes | None, ref: str) -> bytes:
    if data is None:
        raise ArgumentsInvalid(f"no stored result {ref}")
    return data


def _encode(value: Any) -> bytes:
    try:
        return canonical(value).encode("utf-8", "surrogatepass")
    except (ValueError, TypeError, RecursionError) as error:
        raise ArgumentsInvalid(f"this value cannot be stored as JSON: {error}") from None


def _decode(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        raise ArgumentsInvalid("this stored result is not JSON") from None
