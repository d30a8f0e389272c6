"""Keep what the engine remembers outside Temporal."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from backstay.budgets.share import Spent
from backstay.errors import StoreMismatch
from backstay.task.ledger.keys import Signer
from store.accepted_lines import AcceptedLines
from store.blobs.blobs import BlobStore
from store.blobs.moving import Moving
from store.blobs.objects import Objects
from store.connections import Connections
from store.database.database import Answer, Database
from store.database.identity import StoreIdentity, next_epoch
from store.database.transactions import Transaction
from store.database.waiting import Waiting, together, waiting_for, write, write_later
from store.decided import DecidedCalls
from store.definitions import ToolDefinitions
from store.deltas import Deltas
from store.effects.effects import Effects
from store.effects.touching import Touching
from store.fitness import Fitness
from store.ledger.auditing import Auditing
from store.ledger.reading import Chains
from store.ledger.roots import Roots
from store.ledger.writing import ChainWriter
from store.memory.items import MemoryItems, NewItem
from store.notices.looks import RequestViewers
from store.notices.outbox import Outbox
from store.notices.posts import Posts
from store.notices.recovering import Recovering
from store.notices.requests import Requests
from store.own_servers import OwnServers
from store.pauses import Pauses
from store.runs.decisions import Decisions
from store.runs.events import Events
from store.runs.forgetting import Forgetting
from store.runs.parked import ParkedUndos
from store.runs.plans import Plans
from store.runs.pruning import Pruning
from store.runs.recollection import Recollection
from store.runs.revealing import Revealing
from store.runs.runs import Runs
from store.runs.verifying import Verifying
from store.secrets.handles import SecretHandles
from store.secrets.renewing import Renewing
from store.secrets.seal import Seal
from store.standing.starts import Starts
from store.standing.tasks import StandingTasks
from store.subruns import Subruns


class Store:
    """Hold the effects, events, secrets, runs and payloads of one store, and its identity."""

    def __init__(
        self,
        database: Database,
        identity: StoreIdentity,
        seal: Seal,
        blobs: Path,
        *,
        payloads_in_database: bool = False,
        objects: Objects | None = None,
        signer: Signer | None = None,
        now: Callable[[Connection], float],
        clock: Callable[[], float],
    ) -> None:
        """Use `open_store` instead; it runs the migrations first.

        `now` is the time of leases, on which all processes must agree; `clock` gives the times that people read.
        """
        self._database = database
        self.identity = identity
        self.blobs = BlobStore(blobs, database, seal, identity, in_database=payloads_in_database, objects=objects)
        self._open_ledger(clock, signer)
        self.effects = Effects(database, now, lambda: self.identity)
        self.decided = DecidedCalls(database, now)
        self.events = Events(database)
        self.decisions = Decisions(database, clock)
        self.deltas = Deltas(database, now)
        self.definitions = ToolDefinitions(database, clock)
        self.accepted_lines = AcceptedLines(database, clock)
        self._open_sealed(database, seal, now, clock)
        self.parked = ParkedUndos(database)
        self.plans = Plans(database, clock)
        self._open_notices(clock, now)
        self.pauses = Pauses(database, now)
        self.runs = Runs(database, clock, lambda: self.identity, self.ledger)
        self.subruns = Subruns(database, self.events)
        self.touching = Touching(self.runs, self.effects, self.blobs)
        self.revealing = Revealing(self.runs, self.decisions, self.secrets, clock)
        self._open_memory(database, clock)
        self.fitness = Fitness(database, self.blobs, clock, lambda: self.identity)

    def _open_sealed(
        self, database: Database, seal: Seal, now: Callable[[Connection], float], clock: Callable[[], float]
    ) -> None:
        """Keep what is encrypted also where there are no keys."""
        self.secrets = SecretHandles(database, seal.with_own(self.identity.key("secrets")))
        key = self.identity.key("connections")
        self.connections = Connections(database, clock, now, seal.with_own(key), key)
        self.own_servers = OwnServers(database, clock, seal.with_own(key))
        of_triggers = seal.with_own(self.identity.key("triggers"))
        self.standing = StandingTasks(database, clock, of_triggers)
        self.starts = Starts(database, clock, of_triggers)
        self.renewing = Renewing(database, of_triggers=of_triggers, of_connections=seal.with_own(key))

    def _open_ledger(self, clock: Callable[[], float], signer: Signer | None) -> None:
        """Have each transaction write to the ledger what it has noted."""
        database = self._database
        self.ledger = ChainWriter(database, clock, lambda: self.identity, signer)
        self.roots = Roots(database, clock, lambda: self.identity, self.ledger)
        self.chains = Chains(database)
        self.auditing = Auditing(self.chains, self.roots, lambda: self.identity.id)
        database.before_commit = self.ledger.write

    def _open_notices(self, clock: Callable[[], float], now: Callable[[Connection], float]) -> None:
        """Keep what people are asked, and who was told of it."""
        self.requests = Requests(self._database, clock)
        self.recovering = Recovering(self._database, clock, lambda: self.identity)
        self.looks = RequestViewers(self._database, now)
        self.outbox = Outbox(self._database, clock, now)
        self.posts = Posts(self._database, now)

    def _open_memory(self, database: Database, clock: Callable[[], float]) -> None:
        """Find again what runs have left, verify it, and forget it."""
        self.pruning = Pruning(database, self.blobs, clock)
        self.verifying = Verifying(self.blobs)
        items = MemoryItems(database)
        self.memory = Recollection(items, self.runs, self.events, self.blobs)
        self.forgetting = Forgetting(database, self.blobs, self.runs, self.pruning)

    def moving(self, others: Sequence[Objects]) -> Moving:
        """Return what moves payloads to where this store keeps them, from everywhere and from other buckets."""
        return Moving(self.blobs, others)

    @property
    def stamp(self) -> str:
        """Return `<id>/<epoch>`, by which a run recognises its store."""
        return self.identity.stamp

    def check(self, store: str) -> None:
        """Raise StoreMismatch when a run's stamp names another store; an empty stamp matches every store."""
        if store and store.partition("/")[0] != self.identity.id:
            raise StoreMismatch(
                f"this worker uses store {self.stamp}, but the run began with store {store}; "
                "give all workers of one task queue the same BACKSTAY_DATABASE_URL"
            )

    def epoch_differs(self, store: str) -> bool:
        """Return whether a new epoch has begun since the stamp was made."""
        return bool(store) and store.partition("/")[2] != str(self.identity.epoch)

    def attempts_forgotten(self, store: str) -> bool:
        """Return whether Temporal was restored since the stamp was made, so that it knows no attempt of before."""
        return bool(store) and int(store.partition("/")[2]) < self.identity.temporal_epoch

    def run_key(self, run: str) -> bytes:
        """Return the 32-byte key of one run."""
        return self.identity.key(run)

    async def write(self, work: Callable[[Transaction], Answer]) -> Answer:
        """Run work that takes part in one transaction with several operations; everything is committed, or nothing.

        It may be run again, when another worker wrote the same rows at the same moment. After notices were written
        in it, `outbox.tell_here` wakes those who wait for them.
        """
        return await write(self._database, work)

    async def close_run(
        self,
        run: str,
        result: Mapping[str, Any],
        *,
        context: str | None,
        remembered: Sequence[NewItem] = (),
        spent: Spent | None = None,
    ) -> str | None:
        """Keep how a run ended, what its user's memory is to know of it, and what a sub-run has spent.

        Return the head of its chain.
        """

        def close(transaction: Transaction) -> str | None:
            if remembered:
                self.memory.items.keep.within(transaction, run, remembered)
            if spent is not None:
                self.subruns.ended.within(transaction, run, spent)
            return self.runs.closed.within(transaction, run, result, context=context)

        return await self.write(close)

    async def write_later(
        self, work: Callable[[Transaction], Answer], then: Callable[[Answer], Awaitable[None]]
    ) -> None:
        """Run such work in the next transaction of the block that is `together`, and `then` what follows its commit."""
        await write_later(self._database, work, then)

    def together(self) -> AbstractAsyncContextManager[Waiting]:
        """Open a block in which what is written later waits for the block's next transaction, or for its end.

        A block that fails writes nothing more.
        """
        return together(self._database)

    async def flush(self) -> None:
        """Write what this block has kept back until now."""
        if (waiting := waiting_for(self._database)) is not None:
            await waiting.flush()

    def forget_waiting(self) -> None:
        """Write nothing of what this block has kept back until now."""
        if (waiting := waiting_for(self._database)) is not None:
            waiting.clear()

    async def new_epoch(self, *, temporal_restored: bool = False) -> StoreIdentity:
        """Begin a new epoch, as an operator does between restoring a backup and starting workers.

        `temporal_restored`: whether Temporal was restored, too, and so has forgotten what it had runs try.
        """
        self.identity = await self._database.write(partial(next_epoch, temporal_restored=temporal_restored))
        return self.identity
