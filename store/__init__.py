"""What the engine remembers: effects, events, secrets, runs and blobs."""

from store.opening import open_store
from store.store import Store

__all__ = ["Store", "open_store"]
