"""Open what a worker tells operators with, as its settings say; where they say nothing, nothing is loaded or done."""

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig
from temporalio.worker import Interceptor

from backstay.client.connecting import traced
from backstay.errors import SettingsInvalid
from backstay.settings import Settings
from system.tasks import background

if TYPE_CHECKING:
    from activities.telemetry.counting import Counts
    from backstay.client.exporting import Exporting, Redact
    from store.store import Store

TELLS_JAILS = "--tells-jails"
"""The flag that makes the sandbox role say how many jails are ready."""
_JAILS = "backstay sandbox jails: "
"""How the process of the sandbox role begins the line in which it says how many jails are ready."""


@dataclass(frozen=True)
class Telemetry:
    """Hold what a worker tells operators with."""

    runtime: Runtime | None = None
    """Temporal's, when it serves metrics."""
    counts: "Counts | None" = None
    exporting: "Exporting | None" = None
    tells_jails: bool = False
    """Whether a worker that is the parent wants to hear how many jails are ready."""

    @property
    def interceptors(self) -> Sequence[Interceptor]:
        """Return what watches the runs of a worker."""
        watching: list[Interceptor] = []
        if self.exporting is not None:
            from activities.telemetry.spans import SpanInterceptor

            watching.append(SpanInterceptor(self.exporting))
        if self.counts is not None:
            from activities.telemetry.counting import CountInterceptor

            watching.append(CountInterceptor(self.counts))
        return watching

    @property
    def flags(self) -> list[str]:
        """Return the flags for the process of the sandbox role."""
        return [] if self.runtime is None else [TELLS_JAILS]

    @property
    def jails(self) -> Callable[[int], None] | None:
        """Return what shows how many jails are ready: a gauge here, or a line for the parent; None for nothing."""
        if self.runtime is not None:
            gauge = self.runtime.metric_meter.create_gauge("backstay_jail_pool", "Jails that are ready for a program")
            return gauge.set
        return (lambda count: _say(f"{_JAILS}{count}")) if self.tells_jails else None

    def listener(self) -> Callable[[str], None]:
        """Return what listens to the lines of the sandbox role's process."""
        tell = self.jails
        if tell is not None:
            tell(0)

        def listen(line: str) -> None:
            count = line.removeprefix(_JAILS)
            if tell is not None and count != line and count.isdecimal():
                tell(int(count))

        return listen

    @asynccontextmanager
    async def watching_jails(self, ready: Callable[[], int]) -> AsyncGenerator[None]:
        """Show how many jails are ready, if anybody wants to know."""
        if (tell := self.jails) is None:
            yield
            return
        async with background(_watch(ready, tell)):
            yield

    @asynccontextmanager
    async def watching(
        self, store: "Store", *, models: Iterable[str], providers: Iterable[str], redact: "Redact"
    ) -> AsyncGenerator[None]:
        """Show what waits for as long as the worker serves; `redact` knows its secrets and those of its runs."""
        async with AsyncExitStack() as stack:
            if self.exporting is not None:
                self.exporting.redact_with(redact)
            if self.counts is not None and self.runtime is not None:
                from activities.telemetry.counting import StoreGauges

                self.counts.know(models, providers)
                gauges = StoreGauges(self.runtime.metric_meter, store)
                await stack.enter_async_context(background(gauges.keep_up()))
            yield


@asynccontextmanager
async def open_telemetry(settings: Settings, role: str, *, tells_jails: bool = False) -> AsyncGenerator[Telemetry]:
    """Open what the settings ask for; raises SettingsInvalid for an address that cannot be listened at.

    The sandbox role sends no traces: it holds no key, also not that of a collector.
    """
    runtime = None if settings.metrics_address is None else _serving(settings.metrics_address)
    counts = None
    if runtime is not None and role != "sandbox":
        from activities.telemetry.counting import Counts

        counts = Counts(runtime.metric_meter)
    if role == "sandbox":
        yield Telemetry(runtime, tells_jails=tells_jails)
        return
    with traced(settings) as exporting:
        yield Telemetry(runtime, counts, exporting)


async def _watch(ready: Callable[[], int], tell: Callable[[int], None]) -> None:
    """Tell how many jails are ready, whenever that changes."""
    told = -1
    while True:
        if (now := ready()) != told:
            tell(now)
            told = now
        await asyncio.sleep(1)


def _serving(address: str) -> Runtime:
    """Return Temporal's runtime, which serves metrics at an address from now on."""
    host, _, port = address.rpartition(":")
    try:
        family, *_, place = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        bound = f"[{place[0]}]:{port}" if family is socket.AF_INET6 else f"{place[0]}:{port}"
        # Prometheus counts time in seconds.
        config = PrometheusConfig(bind_address=bound, durations_as_seconds=True)
        return Runtime(telemetry=TelemetryConfig(metrics=config, attach_service_name=False))
    except (OSError, ValueError) as error:
        raise SettingsInvalid(
            f"BACKSTAY_METRICS_ADDRESS: cannot listen at {address!r}: {error}; name a free address of this host"
        ) from None


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
