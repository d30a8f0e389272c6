"""Show how much waits: for people, for somebody to find out what happened, and for programs."""

import asyncio
import time

import structlog
from temporalio.common import MetricMeter

from backstay.errors import BackstayError
from store.store import Store

EVERY_S = 5.0
_log = structlog.get_logger("backstay.telemetry")


class StoreGauges:
    """Show what the store knows; all workers of a store show the same."""

    def __init__(self, meter: MetricMeter, store: Store) -> None:
        """Make the gauges."""
        self._store = store
        self._waiting = meter.create_gauge("backstay_approvals_waiting", "Open requests")
        self._age = meter.create_gauge_float("backstay_approval_age_seconds", "Age of the oldest open request")
        self._unknown = meter.create_gauge("backstay_effects_unknown", "Effects of which nobody knows the outcome")
        self._parked = meter.create_gauge("backstay_undos_parked", "Effects whose undo failed and waits for a person")

    async def keep_up(self) -> None:
        """Look again and again; while the store cannot be reached, the last figures stay."""
        reached = True
        while True:
            try:
                await self._look()
                reached = True
            except BackstayError as error:
                if reached:
                    _log.warning("metrics.stale", reason=str(error))
                reached = False
            await asyncio.sleep(EVERY_S)

    async def _look(self) -> None:
        oldest = await self._store.requests.oldest_open()
        self._waiting.set(await self._store.requests.count_open())
        self._age.set(0.0 if oldest is None else max(0.0, time.time() - oldest))
        self._unknown.set(await self._store.effects.count_unknown())
        self._parked.set(await self._store.parked.count())
