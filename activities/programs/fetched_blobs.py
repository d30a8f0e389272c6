"""Read and keep payloads through the runs role, where this process has no database and no shared folder."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import NamedTuple

from temporalio.client import Client

from activities.programs.payload_calls import (
    MOST_BYTES,
    DescribeStore,
    KeepPayloads,
    PayloadPart,
    PayloadsAnswer,
    ReadPayloads,
    describe_store,
    keep_payloads,
    read_payloads,
)
from backstay.client.standalone import Answer, Ask, execute_standalone
from backstay.errors import StoreUnavailable, WorkerMisfit
from store.blobs.shown import DAMAGED, Recent, ShownBlobs, ShownBlobStore, missing, ref_of


class _Unkept(NamedTuple):
    """Hold a payload that the runs role has not kept yet."""

    data: bytes
    kept: Callable[[], None]


Unkept = dict[tuple[str, str], _Unkept]
_unkept: ContextVar[Unkept | None] = ContextVar("unkept", default=None)


class RunsRole:
    """Ask the runs role by activities that belong to no workflow."""

    def __init__(self, client: Client, queue: str) -> None:
        """Ask whoever serves this task queue."""
        self._client = client
        self._queue = queue

    async def find_store(self) -> str:
        """Return the id of the store that the runs role uses; raises WorkerMisfit."""
        try:
            found = await self.ask(describe_store, DescribeStore())
        except StoreUnavailable as error:
            raise WorkerMisfit(
                f"BACKSTAY_PAYLOADS: database needs a worker in the runs role, which passes payloads, and none on the "
                f"task queue {self._queue!r} answered; start one first ({error})"
            ) from None
        if found.payloads != "database":
            raise WorkerMisfit(
                f"BACKSTAY_PAYLOADS: this worker has database, and the store's workers have {found.payloads}; give "
                "all workers the same"
            )
        return found.store

    async def ask(self, entry: Callable[[Ask], Awaitable[Answer]], ask: Ask) -> Answer:
        """Return the answer to one request; raises what `execute_standalone` raises."""
        return await execute_standalone(self._client, entry, ask, queue=self._queue)


class FetchedBlobs(ShownBlobs):
    """Read and keep the shown payloads of one run."""

    def __init__(self, run: str, recent: Recent, runs_role: RunsRole, store: str) -> None:
        """Use `FetchedBlobStore.of` instead."""
        super().__init__(run, recent)
        self._runs_role = runs_role
        self._store = store

    async def expect(self, refs: Collection[str]) -> None:
        """Fetch several results, and what they refer to, in as few requests as they fit in."""
        wanted = [ref for ref in dict.fromkeys(refs) if self._recent.get((self._run, ref)) is None]
        while wanted and (found := await self._fetched(wanted)):
            wanted = [ref for ref in wanted if ref not in found]

    async def _keep(self, name: str, data: bytes, kept: Callable[[], None]) -> None:
        unkept = _unkept.get()
        if unkept is None:
            await keep(self._runs_role, self._store, {(self._run, name): _Unkept(data, kept)})
        else:
            unkept[self._run, name] = _Unkept(data, kept)

    def _held(self, name: str) -> bytes | None:
        held = (_unkept.get() or {}).get((self._run, name))
        return None if held is None else held.data

    async def _found(self, name: str) -> bytes:
        found = await self._fetched([name])
        if name not in found:
            raise missing(name)
        return found[name]

    async def _fetched(self, refs: Sequence[str]) -> dict[str, bytes]:
        """Return what one answer holds of these payloads, and remember it; payloads in parts are read to the end."""
        answer = await self._asked(refs, 0)
        found = {part.name: part.data for part in answer.parts}
        for part in answer.parts:
            while len(found[part.name]) < part.size:
                more = await self._asked([part.name], len(found[part.name]))
                if not more.parts or not more.parts[0].data:
                    raise missing(part.name)
                found[part.name] += more.parts[0].data
        for name, data in found.items():
            # A payload of many parts came from several workers.
            if ref_of(data) != name:
                raise StoreUnavailable(DAMAGED.format(name))
            self._recent.put((self._run, name), data)
        return found

    async def _asked(self, refs: Sequence[str], offset: int) -> PayloadsAnswer:
        ask = ReadPayloads(run=self._run, store=self._store, names=tuple(refs), offset=offset)
        return await self._runs_role.ask(read_payloads, ask)


class FetchedBlobStore(ShownBlobStore):
    """Give access to the shown payloads of all runs, without a database and without a shared folder."""

    def __init__(self, runs_role: RunsRole, store: str) -> None:
        """Ask the runs role for the payloads of this store."""
        super().__init__()
        self._runs_role = runs_role
        self._store = store

    def of(self, run: str) -> FetchedBlobs:
        """Return the payloads of one run."""
        return FetchedBlobs(run, self._recent, self._runs_role, self._store)

    def together(self) -> AbstractAsyncContextManager[None]:
        """Open a block of which the payloads are kept at its end; a block that fails keeps none."""
        return self._together()

    @asynccontextmanager
    async def _together(self) -> AsyncGenerator[None]:
        unkept: Unkept = {}
        token = _unkept.set(unkept)
        try:
            yield
            await keep(self._runs_role, self._store, unkept)
        finally:
            _unkept.reset(token)


async def keep(runs_role: RunsRole, store: str, unkept: Unkept) -> None:
    """Have the runs role keep payloads, and say of each that it is kept."""
    for run in dict.fromkeys(run for run, _ in unkept):
        payloads = {name: some.data for (of, name), some in unkept.items() if of == run}
        for parts in _batches(payloads):
            await runs_role.ask(keep_payloads, KeepPayloads(run=run, store=store, parts=parts))
    for some in unkept.values():
        some.kept()


def _batches(payloads: dict[str, bytes]) -> Iterator[tuple[PayloadPart, ...]]:
    """Yield what fits into one request each; a payload that does not comes in parts, each by itself."""
    batch: list[PayloadPart] = []
    room = MOST_BYTES
    for name, data in payloads.items():
        if len(data) > room:
            if batch:
                yield tuple(batch)
            batch, room = [], MOST_BYTES
        last = max(0, len(data) - 1) // MOST_BYTES * MOST_BYTES
        for offset in range(0, last, MOST_BYTES):
            whole = data[offset : offset + MOST_BYTES]
            yield (PayloadPart(name=name, size=len(data), offset=offset, data=whole),)
        batch.append(PayloadPart(name=name, size=len(data), offset=last, data=data[last:]))
        room -= len(data) - last
    if batch:
        yield tuple(batch)
