"""Know the secrets that runs hold handles for, so that they are masked wherever tools repeat them."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from backstay.redaction.handles import label_of
from backstay.redaction.redactor import Redactor
from backstay.redaction.text import KNOWN
from store.secrets.handles import SecretHandles, SecretValue

_MOST_HELD = 2000
"""Handles of all runs together; those of the runs that were used last are kept in memory."""

_AT_ONCE = 10
"""How many new secrets are entered without a thread; each takes about a millisecond."""
_LOGGED = 20
"""For the logs, which do not say to which run a line belongs: the secrets of so many runs."""

_told: ContextVar[tuple[str, int] | None] = ContextVar("told", default=None)
"""How many handles a run had in the store when this activity looked last."""


@dataclass(frozen=True)
class Held:
    """Hold the handles of one run, and a redactor that knows what they stand for."""

    redactor: Redactor
    handles: dict[str, SecretValue] = field(default_factory=dict[str, SecretValue], repr=False)
    complete: int = 0
    """How many handles the store had when this held all of them."""

    by_value: dict[SecretValue, str] = field(default_factory=dict[SecretValue, str], repr=False)


class RunSecrets:
    """Keep what runs hold, and read what other workers added."""

    def __init__(self, store: SecretHandles, redactor: Redactor) -> None:
        """Begin with a redactor that knows the secrets of this process."""
        self._store = store
        self._redactor = redactor
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._turn = asyncio.Lock()

    def tell(self, run: str, count: int) -> None:
        """Note how many handles a run has in the store now; spares this activity a look of its own."""
        _told.set((run, count))

    async def of(self, run: str) -> Held:
        """Return what a run holds now."""
        held = self.kept(run)
        told = _told.get()
        if told is not None and told[0] == run and told[1] <= held.complete:
            return held
        count, new = await self._store.new_of_run(run, held.handles)
        self.tell(run, count)
        return await self._keep(run, new, count)

    def kept(self, run: str) -> Held:
        """Return what this process remembers of a run, without a look into the store."""
        return self._held.get(run) or Held(self._redactor)

    def masked(self, event: Any) -> Any:
        """Return what is to be logged with a mask for each secret of the runs that were used last."""
        for held in list(self._held.values())[-_LOGGED:]:
            event = held.redactor.without_known(event)
        return event

    async def remember(self, run: str, entries: Mapping[str, SecretValue]) -> Held:
        """Store what handles stand for."""
        count = await self._store.remember(run, entries)
        return await self._keep(run, entries, count)

    async def _keep(self, run: str, entries: Mapping[str, SecretValue], count: int) -> Held:
        # In turns, so that no addition is lost to another.
        async with self._turn:
            held = self.kept(run)
            new = {handle: entry for handle, entry in entries.items() if handle not in held.handles}
            handles = held.handles | new
            # A spelling of a known secret is found by the secret; its own spellings would have no end.
            values = {entry.value for handle, entry in new.items() if label_of(handle) != KNOWN}
            redactor = held.redactor
            if len(values) > _AT_ONCE:
                # Apart, so that heartbeats continue.
                redactor = await asyncio.to_thread(redactor.knowing, values, handles)
            elif new:
                redactor = redactor.knowing(values, handles)
            by_value = held.by_value | {entry: handle for handle, entry in new.items()}
            held = Held(redactor, handles, count if len(handles) >= count else held.complete, by_value)
            self._install(run, held)
        return held

    def _install(self, run: str, held: Held) -> None:
        if not held.handles:
            return
        self._held[run] = held
        self._held.move_to_end(run)
        while len(self._held) > 1 and sum(len(kept.handles) for kept in self._held.values()) > _MOST_HELD:
            self._held.popitem(last=False)
