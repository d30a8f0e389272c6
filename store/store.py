"""What the engine remembers outside Temporal."""

from collections.abc import Callable
from pathlib import Path

from backstay.errors import StoreMismatch
from store.blobs.blobs import BlobStore
from store.database.database import Database
from store.database.identity import StoreIdentity, next_epoch
from store.effects.effects import Effects
from store.fitness import Fitness
from store.runs.events import Events
from store.runs.pruning import Pruning
from store.runs.runs import Runs
from store.secrets.handles import SecretHandles
from store.secrets.seal import Seal


class Store:
    """Hold effects, events, secrets, runs and blobs of one database, which knows who it is."""

    def __init__(
        self, database: Database, identity: StoreIdentity, seal: Seal, blobs: Path, clock: Callable[[], float]
    ) -> None:
        """Use `open_store` instead; it migrates first."""
        self._database = database
        self.identity = identity
        self.blobs = BlobStore(blobs, seal, identity)
        self.effects = Effects(database, clock, lambda: self.identity)
        self.events = Events(database)
        self.secrets = SecretHandles(database, seal)
        self.runs = Runs(database, clock, lambda: self.identity)
        self.pruning = Pruning(database, blobs, clock)
        self.fitness = Fitness(database, blobs, clock, lambda: self.identity)

    @property
    def stamp(self) -> str:
        """Return `<id>/<epoch>`, what a run remembers of its store."""
        return self.identity.stamp

    def check(self, store: str) -> None:
        """Raise StoreMismatch when a run's stamp names another store; an empty stamp names none."""
        if store and store.partition("/")[0] != self.identity.id:
            raise StoreMismatch(
                f"this worker uses store {self.stamp}, but the run began with store {store}; "
                "give all workers of one task queue the same BACKSTAY_DATABASE_URL"
            )

    def epoch_differs(self, store: str) -> bool:
        """Say whether this store was restored since the stamp was made."""
        return bool(store) and store.partition("/")[2] != str(self.identity.epoch)

    def run_key(self, run: str) -> bytes:
        """Return the 32-byte key of one run."""
        return self.identity.key(run)

    async def new_epoch(self) -> StoreIdentity:
        """Begin a new epoch; an operator does so after a restore and before a worker starts."""
        self.identity = await self._database.write(next_epoch)
        return self.identity
