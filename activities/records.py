"""Keep results: the raw form sealed, the shown form and its digest for everybody."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from backstay.clean import clean_json
from backstay.digest import digest_of_result
from backstay.errors import ArgumentsInvalid
from backstay.redaction import Redactor
from backstay.secret import handle_for
from store import Store
from store.secret_value import SecretValue

KIND = "backstay/result"
SMALL_LEAVES = 300
SMALL_BYTES = 16_384
Value = TypeVar("Value")


@dataclass(frozen=True)
class Shown:
    """Hold a payload without its secrets, and the secrets apart."""

    payload: Any
    secrets: dict[str, SecretValue]


class Records:
    """Write and read result records; a record is what a ToolResult's `ref` names."""

    def __init__(self, store: Store, redactor: Redactor) -> None:
        """Keep everything in the store."""
        self.store = store
        self.redactor = redactor

    async def keep(self, run: str, label: str, payload: Any, provider: str) -> str:
        """Seal a payload, store what may be shown of it, and return the record's ref."""
        clean = await _apart(payload, lambda: clean_json(payload))
        shown = await self.show(run, clean, provider)
        raw = await self.store.blobs.seal_json(clean) if shown.secrets else None
        return await self.write(label, shown.payload, raw)

    async def write(self, label: str, shown: Any, raw: str | None = None, *, whole_under: int = 2048) -> str:
        """Store a payload that may be shown, with its digest."""
        digest = await _apart(shown, lambda: digest_of_result(label, shown, "", whole_under))
        record = {"kind": KIND, "label": label, "digest": digest}
        if "data" not in digest:
            # What passes whole stands in the digest already.
            record["shown"] = await self.store.blobs.put_json(shown)
        return await self.store.blobs.put_json(record | ({"raw": raw} if raw else {}))

    async def show(self, run: str, payload: Any, provider: str) -> Shown:
        """Replace every secret in a payload by a handle and remember what the handles stand for."""
        key = self.store.run_key(run)
        secrets: dict[str, SecretValue] = {}

        def substitute(label: str, value: Any) -> str:
            handle = handle_for(key, provider, label, value)
            secrets[handle] = SecretValue(provider=provider, value=value if isinstance(value, str) else str(value))
            return handle

        replaced = await _apart(payload, lambda: self.redactor.replace(payload, substitute))
        if secrets:
            await self.store.secrets.remember(run, secrets)
        return Shown(replaced, secrets)

    async def record(self, ref: str) -> dict[str, Any]:
        """Return a record; raises ArgumentsInvalid when the ref names none."""
        record = await self.store.blobs.get_json(ref)
        if not isinstance(record, dict) or record.get("kind") != KIND:
            raise ArgumentsInvalid(f"ref: {ref[:80]!r} names no stored result; use the ref of an earlier answer")
        return record

    async def digest(self, ref: str) -> dict[str, Any]:
        """Return the digest of a record, with the record's own ref in it."""
        digest = dict((await self.record(ref))["digest"])
        return {**digest, "ref" if "data" in digest else "storage_ref": ref}

    async def shown(self, ref: str) -> Any:
        """Return the full shown form of a record."""
        record = await self.record(ref)
        digest = record["digest"]
        return digest["data"] if "data" in digest else await self.store.blobs.get_json(record["shown"])


async def _apart(payload: Any, work: Callable[[], Value]) -> Value:
    """Do work on a payload: at once when it is small, else in a thread, so that heartbeats go on."""
    return work() if is_small(payload) else await asyncio.to_thread(work)


def is_small(payload: Any) -> bool:
    """Return whether a payload has few leaves and few bytes, looking at no more than that many."""
    waiting, leaves, size = [payload], 0, 0
    while waiting:
        value = waiting.pop()
        leaves += 1
        match value:
            case str() | bytes():
                size += len(value)
            case dict():
                leaves += len(value)
                waiting.extend([*value, *value.values()] if len(value) <= SMALL_LEAVES else ())
            case list() | tuple():
                leaves += len(value)
                waiting.extend(value if len(value) <= SMALL_LEAVES else ())
            case _:
                pass
        if leaves > SMALL_LEAVES or size > SMALL_BYTES:
            return False
    return True
