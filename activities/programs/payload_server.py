"""Serve payloads to the sandbox role, which has no database."""

from collections.abc import Callable
from typing import Any

from activities.programs.journals import KIND
from activities.programs.payload_calls import (
    MOST_BYTES,
    DescribeStore,
    KeepPayloads,
    PayloadPart,
    PayloadsAnswer,
    ReadPayloads,
    StoreDescription,
    describe_store,
    keep_payloads,
    read_payloads,
)
from activities.resources import Activities, Resources
from activities.retrying import implements
from backstay.errors import ArgumentsInvalid
from store.blobs.shown import RECORD, Missing, decode, ref_of, require_ref


class PayloadServer(Activities):
    """Implement `describe_store`, `read_payloads` and `keep_payloads`.

    Only what may be shown passes: sealed payloads have names that are not refs.
    """

    @implements(describe_store)
    async def describe_store(self, ask: DescribeStore) -> StoreDescription:
        """Say which store this is."""
        return StoreDescription(
            store=self.store.identity.id, payloads="files" if self.settings.payloads == "files" else "database"
        )

    @implements(read_payloads)
    async def read_payloads(self, ask: ReadPayloads) -> PayloadsAnswer:
        """Return as many of the payloads as there is room for."""
        self.store.check(ask.store)
        blobs, waiting = self.store.blobs.of(ask.run), list(ask.names)
        parts: list[PayloadPart] = []
        absent: list[str] = []
        room, offset = MOST_BYTES, ask.offset
        while waiting and room > 0:
            name = waiting.pop(0)
            try:
                size, data = await blobs.part(name, offset, room)
            except Missing:
                absent.append(name)
                continue
            parts.append(PayloadPart(name=name, size=size, offset=offset, data=data))
            room, offset = room - len(data), 0
            if room > 0 and len(data) == size:
                waiting += _read_next(data)
        return PayloadsAnswer(parts=tuple(parts), absent=tuple(absent))

    @implements(keep_payloads)
    async def keep_payloads(self, ask: KeepPayloads) -> int:
        """Keep payloads; the parts of one come in order, and are put together with the last one."""
        self.store.check(ask.store)
        blobs, whole = self.store.blobs.of(ask.run), 0
        for part in ask.parts:
            require_ref(part.name)
            data = part.data if len(part.data) == part.size else await self._joined(ask.run, part)
            if data is None:
                continue
            _require_hash(part.name, data)
            await blobs.put(data)
            if len(part.data) < part.size:
                await self.store.blobs.rows.drop_parts(ask.run, part.name)
            whole += 1
        return whole

    async def _joined(self, run: str, part: PayloadPart) -> bytes | None:
        """Keep a part of a payload; return the whole with the last one."""
        rows = self.store.blobs.rows
        if part.offset + len(part.data) < part.size:
            await rows.keep_part(run, part.name, part.offset, part.data)
            return None
        return await rows.joined(run, part.name) + part.data


def payload_activities(resources: Resources) -> list[Callable[..., Any]]:
    """Return the activities that serve payloads to the sandbox role."""
    server = PayloadServer(resources)
    return [server.describe_store, server.read_payloads, server.keep_payloads]


def _read_next(data: bytes) -> list[str]:
    """Return the refs that whoever reads a payload reads next: a result's full form, the round before a round."""
    match decode(data):
        case {"kind": str(kind), "shown": str(ref)} if kind == RECORD:
            return [ref]
        case {"kind": str(kind), "older": str(ref)} if kind == KIND and ref:
            return [ref]
        case _:
            return []


def _require_hash(name: str, data: bytes) -> None:
    if ref_of(data) != name:
        raise ArgumentsInvalid(f"payload: what came as {name} has another hash")
