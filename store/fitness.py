"""Compare a worker with those that used the store before it, so that one that does not fit takes no work.

A key is never stored: only a short, slow, keyed hash of it.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import Connection, delete, exists, insert, select

from backstay.errors import SettingsInvalid, WorkerMisfit
from store.blobs.blobs import BlobStore
from store.blobs.marker import NAME, read_marker, write_marker
from store.database.database import Database
from store.database.identity import StoreIdentity, lock_epoch
from store.database.schema import fingerprints, runs
from store.database.transactions import reading, writing

BLOBS = "BACKSTAY_BLOBS"
PAYLOADS = "BACKSTAY_PAYLOADS"
TOOLBOX = "BACKSTAY_TOOLBOX"
MOVING = "payloads are moved from"
MOVE = "backstay store move-payloads"
ADOPT = "backstay store adopt-settings"
_DIGITS = 12
_log = structlog.get_logger(__name__)

Recorded = dict[str, tuple[str, ...]]
"""Fingerprints by the setting they belong to, in the order of its list."""


@dataclass(frozen=True)
class Belongings:
    """Hold what a worker brings along and all workers of a store must share."""

    keys: Mapping[str, Sequence[str]]
    """By setting; of a list that can be rotated the newest first, which is the one that is written with."""
    toolbox: bytes = b""
    """Only named when it differs: tools come and go."""


class Fitness:
    """Record what the workers of a store have in common, and refuse one that differs."""

    def __init__(
        self, database: Database, blobs: BlobStore, clock: Callable[[], float], identity: Callable[[], StoreIdentity]
    ) -> None:
        """Work on one store."""
        self.database = database
        self._blobs = blobs.root
        self._objects = blobs.objects
        self._place = blobs.place
        self._clock = clock
        self._identity = identity

    async def demand(self, brought: Belongings) -> None:
        """Record what a worker brings along; the first one of a store decides.

        Raises WorkerMisfit naming every difference and its fix, and then nothing has changed.
        """
        marker = await self._marker()
        mine = await asyncio.to_thread(self._fingerprints, brought)
        if await self._toolbox_differs(marker, mine):
            _log.warning("worker.toolbox_differs", toolbox=mine[TOOLBOX][0], fix="give all workers the same file")

    async def adopt(self, brought: Belongings) -> None:
        """Record what is brought along, whatever was recorded before; an operator does so while no worker runs."""
        mine = await asyncio.to_thread(self._fingerprints, brought)
        await self.mark()
        await self._record(mine)
        await self.end_moving(self._place)

    async def claim(self) -> None:
        """Let the folder or the bucket belong to this store, unless it belongs to another; raises SettingsInvalid."""
        marker = await self._owner()
        if marker not in {"", self._identity().id}:
            raise SettingsInvalid(
                f"{PAYLOADS}: {self._objects.address if self._objects else self._blobs} holds the payloads of store "
                f"{marker}; name another place"
            )
        if not marker and self._objects is not None and await self._objects.folders():
            raise SettingsInvalid(
                f"{PAYLOADS}: {self._objects.address} holds other objects, and no {NAME} of this store; name an empty "
                "prefix"
            )
        await self.mark()

    async def mark(self) -> None:
        """Let the folder or the bucket belong to this store from now on."""
        if self._objects is not None:
            await self._objects.check()
            await self._objects.own(self._identity().id)
        elif self._in_folder:
            await asyncio.to_thread(write_marker, self._blobs, self._identity().id)

    async def fault(self) -> str:
        """Return why a worker with these settings would find no payloads, empty where it would; changes nothing.

        Raises SettingsInvalid for a bucket that cannot be used, StoreUnavailable for one that does not answer.
        """
        marker = await self._owner()
        return "" if await self._is_unclaimed(marker) else await self._fault(marker)

    @reading
    def _fault(self, connection: Connection, marker: str) -> str:
        known = _recorded(connection)
        return _moving(known) or _places_differ(self._place, known) or self._owned(marker, known, connection)

    @reading
    def place(self, connection: Connection) -> str:
        """Return where the workers of the store keep large payloads; empty where none has ever begun."""
        return _recorded(connection).get(PAYLOADS, ("",))[0]

    @reading
    def moving(self, connection: Connection) -> tuple[str, ...]:
        """Return from where payloads are being moved, the first place first; nothing while none are."""
        return _recorded(connection).get(MOVING, ())

    @writing
    def begin_moving(self, connection: Connection, places: Sequence[str]) -> None:
        """Refuse every worker from now on, until `end_moving`, since payloads are moved from these places."""
        lock_epoch(connection)
        self._record.within(connection, {MOVING: tuple(places)})

    @writing
    def end_moving(self, connection: Connection, place: str) -> None:
        """Let workers begin again, those that have large payloads in this place."""
        lock_epoch(connection)
        folder = {BLOBS: (self._identity().id,)} if place == "files" else {}
        connection.execute(delete(fingerprints).where(fingerprints.c.what.in_((MOVING, BLOBS))))
        self._record.within(connection, {PAYLOADS: (place,), **folder})

    @property
    def _in_folder(self) -> bool:
        return self._place == "files"

    async def _marker(self) -> str:
        """Return which store the folder or the bucket belongs to; an empty bucket of a new store becomes its own."""
        marker = await self._owner()
        if self._objects is None or not await self._is_unclaimed(marker):
            return marker
        # Before anything says that payloads are there: a process that is lost in between can begin again.
        await self._objects.own(self._identity().id)
        return self._identity().id

    async def _is_unclaimed(self, marker: str) -> bool:
        """Return whether a bucket is free for a store that no worker has used yet."""
        if marker or self._objects is None or await self.place():
            return False
        return not await self._objects.folders()

    async def _owner(self) -> str:
        """Return which store the folder or the bucket belongs to; empty where nothing says so."""
        if self._objects is not None:
            return await self._objects.owner()
        return await asyncio.to_thread(read_marker, self._blobs) if self._in_folder else ""

    @writing
    def _toolbox_differs(self, connection: Connection, marker: str, mine: Recorded) -> bool:
        """Compare and record in one transaction, so that of two first workers one is the first."""
        lock_epoch(connection)
        known = _recorded(connection)
        store = self._identity().id
        faults = [self._fault.within(connection, marker)]
        keys = mine.keys() & known.keys() - {TOOLBOX, PAYLOADS, BLOBS}
        faults += [_keys_differ(name, mine[name], known[name]) for name in sorted(keys)]
        if any(faults):
            raise WorkerMisfit(
                f"this worker does not fit store {store}, so it takes no work. {' '.join(filter(None, faults))} "
                f"If every worker is to change, stop them all and run `{ADOPT}` with the new settings."
            )
        if not marker and self._in_folder:
            write_marker(self._blobs, store)
        if any(known.get(what) != some for what, some in mine.items()):
            self._record.within(connection, mine)
        return TOOLBOX in known and known[TOOLBOX] != mine[TOOLBOX]

    def _owned(self, marker: str, known: Recorded, connection: Connection) -> str:
        """Say that the folder or the bucket belongs to another store, or to none where this one has its own."""
        store = self._identity().id
        if marker == store or not (self._in_folder or self._objects):
            return ""
        if self._objects is not None:
            whose = f"holds the payloads of store {marker}" if marker else f"holds no {NAME} of this store"
            return (
                f"{PAYLOADS}: {self._place} {whose}; name the bucket and prefix that the other workers use, and for a "
                "new store an empty prefix."
            )
        if marker:
            return (
                f"{BLOBS}: {self._blobs} holds the payloads of store {marker}; name the folder of this store, or "
                "the database of that one in BACKSTAY_DATABASE_URL."
            )
        is_empty = not self._blobs.is_dir() or not any(self._blobs.iterdir())
        if BLOBS in known or (is_empty and _has_runs(connection)):
            return (
                f"{BLOBS}: {self._blobs} is not the folder in which this store keeps its payloads, since it has no "
                f"{NAME} of it; name the folder that the other workers use, or mount it."
            )
        return ""

    @writing
    def _record(self, connection: Connection, mine: Recorded) -> None:
        at = self._clock()
        # Entries that only a newer version compares stay as they are.
        connection.execute(delete(fingerprints).where(fingerprints.c.what.in_(mine)))
        rows = [
            {"what": what, "place": place, "fingerprint": fingerprint, "recorded_at": at}
            for what, some in mine.items()
            for place, fingerprint in enumerate(some)
        ]
        connection.execute(insert(fingerprints), rows)

    def _fingerprints(self, brought: Belongings) -> Recorded:
        identity = self._identity()
        mine = {
            name: tuple(_fingerprint(identity.key(f"fingerprint {name}"), key) for key in keys) or ("",)
            for name, keys in brought.keys.items()
        }
        toolbox = hashlib.sha256(brought.toolbox).hexdigest()[:_DIGITS]
        folder = {BLOBS: (identity.id,)} if self._in_folder else {}
        return {**mine, TOOLBOX: (toolbox,), PAYLOADS: (self._place,), **folder}


def _fingerprint(salt: bytes, key: str) -> str:
    # A person may have thought up the key: a reader of the table must not find it by trying many.
    found = hashlib.scrypt(
        key.strip().encode("utf-8", "surrogatepass"), salt=salt, n=2**14, r=8, p=1, dklen=_DIGITS // 2
    )
    return found.hex()


def _moving(known: Recorded) -> str:
    if MOVING not in known:
        return ""
    return f"{PAYLOADS}: payloads are being moved; run `{MOVE}` with the new settings until it has moved all."


def _places_differ(mine: str, known: Recorded) -> str:
    """Say that others would not find the payloads that this worker writes."""
    theirs = known.get(PAYLOADS, (mine,))[0]
    return "" if mine == theirs else f"{PAYLOADS}: this worker has {mine}, and the store's workers have {theirs}."


def _keys_differ(name: str, mine: Sequence[str], known: Sequence[str]) -> str:
    """Say how a list of keys differs; the key that the others write with must be in it."""
    if known[0] in mine:
        return ""
    others = f"the store's workers use {_shown(known)}"
    if not known[0]:
        return f"{name}: this worker has {_shown(mine)}, and {others}; remove the setting."
    if not mine[0]:
        return f"{name}: this worker has no key, and {others}; set that key."
    how = "append it to the list" if name.endswith("S") else "set it"
    return f"{name}: this worker has {_shown(mine)}, and {others}; the key {known[0]} is missing, {how}."


def _shown(some: Sequence[str]) -> str:
    if not some[0]:
        return "no key"
    return f"{'key' if len(some) == 1 else 'keys'} {', '.join(some)}"


def _recorded(connection: Connection) -> Recorded:
    found: dict[str, list[str]] = {}
    for row in connection.execute(select(fingerprints).order_by(fingerprints.c.what, fingerprints.c.place)):
        found.setdefault(row.what, []).append(row.fingerprint)
    return {what: tuple(some) for what, some in found.items()}


def _has_runs(connection: Connection) -> bool:
    return bool(connection.execute(select(exists().where(runs.c.pruned_at.is_(None)))).scalar_one())
