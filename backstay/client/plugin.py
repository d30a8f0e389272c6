"""Serve runs beside the workflows of a service's own worker, through Temporal's plugin interface."""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from temporalio import client, worker
from temporalio.service import ConnectConfig, ServiceClient, TLSConfig

from backstay.errors import SettingsInvalid
from backstay.rooms import house, open_house
from backstay.shown import one_line
from backstay.variables import process_environment

_READY = "backstay worker ready:"
_DRAIN_S = 45.0
"""Longer than the activities of a worker take to end."""
_MOST_SAID = 600
_log = logging.getLogger("backstay.worker")


class BackstayPlugin(client.Plugin, worker.Plugin):
    """Serve runs for as long as a worker of yours runs.

    Give it to `Client.connect(plugins=[...])`, which hands it to all workers of that client, or to one `Worker`.
    The engine works in a process of its own, which the plugin starts, starts again when it dies, and ends: its packages
    have names such as `workflows`, which services use too. Its output goes to the logger `backstay.worker`.

    `folder`: where its `.env`, `toolbox.json` and other files are, by default the current one. `environment`: variables
    beside those of this process. `ready_within_s`: how long it may take to start.
    A worker raises SettingsInvalid as it begins to run, with the engine's own words, when the engine cannot start.
    """

    def __init__(
        self,
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        ready_within_s: float = 60.0,
    ) -> None:
        """Start nothing yet."""
        self._folder = folder
        self._given = dict(environment or {})
        self._within_s = ready_within_s
        self._turn = asyncio.Lock()
        self._users = 0
        self._queue = ""
        self._stack = AsyncExitStack()

    def configure_client(self, config: client.ClientConfig) -> client.ClientConfig:
        """Change nothing: the engine's process has a client of its own."""
        return config

    async def connect_service_client(
        self,
        config: ConnectConfig,
        next: Callable[[ConnectConfig], Awaitable[ServiceClient]],  # noqa: A002 - Temporal names it
    ) -> ServiceClient:
        """Change nothing."""
        return await next(config)

    def configure_worker(self, config: worker.WorkerConfig) -> worker.WorkerConfig:
        """Change nothing: the worker's own services remain its own."""
        return config

    async def run_worker(
        self,
        worker: worker.Worker,
        next: Callable[[worker.Worker], Awaitable[None]],  # noqa: A002 - Temporal names it
    ) -> None:
        """Serve runs while a worker runs; several workers share one engine."""
        async with self._serving(worker):
            await next(worker)

    def configure_replayer(self, config: worker.ReplayerConfig) -> worker.ReplayerConfig:
        """Change nothing: runs are replayed by the engine's own code."""
        return config

    def run_replayer(
        self,
        replayer: worker.Replayer,
        histories: AsyncIterator[client.WorkflowHistory],
        next: Callable[  # noqa: A002 - Temporal names it
            [worker.Replayer, AsyncIterator[client.WorkflowHistory]],
            AbstractAsyncContextManager[AsyncIterator[worker.WorkflowReplayResult]],
        ],
    ) -> AbstractAsyncContextManager[AsyncIterator[worker.WorkflowReplayResult]]:
        """Change nothing."""
        return next(replayer, histories)

    @asynccontextmanager
    async def _serving(self, beside: worker.Worker) -> AsyncGenerator[None]:
        async with self._turn:
            if not self._users:
                await self._begin(beside.client)
            self._users += 1
        try:
            if beside.task_queue == self._queue:
                raise SettingsInvalid(
                    f"task_queue: {one_line(self._queue, 80)!r} is the queue of runs; give your worker another one, or "
                    "set BACKSTAY_TASK_QUEUE"
                )
            yield
        finally:
            async with self._turn:
                self._users -= 1
                if not self._users:
                    await self._stack.aclose()

    async def _begin(self, used: client.Client) -> None:
        """Start the engine and wait until it serves; raises SettingsInvalid."""
        open_house("system")
        from system.child import Child  # noqa: PLC0415 - only now is its package found
        from system.kept_child import kept_child  # noqa: PLC0415 - the same

        command = [sys.executable, str(house() / "worker.py")]
        environment = process_environment() | place_of(used) | self._given
        options = {"environment": environment, "log": None, "ready": _READY, "folder": self._folder, "heard": _log.info}
        start = partial(Child.start, "worker", command, **options)
        lost, back = partial(_log.error, "the engine was lost: %s"), partial(_log.warning, "the engine is back")
        kept = await self._stack.enter_async_context(kept_child(start, lost, back, drain_s=_DRAIN_S))
        first = kept.child
        said = None if first is None else await first.is_ready(self._within_s)
        if said is None:
            last = first.last[-1] if first is not None and first.last else f"no answer within {self._within_s:g} s"
            await self._stack.aclose()
            raise SettingsInvalid(one_line(last.removeprefix("backstay worker: "), _MOST_SAID))
        self._queue = said.partition(_READY)[2].partition(", store ")[0].split(maxsplit=1)[1]


def place_of(used: client.Client) -> dict[str, str]:
    """Return the variables that lead Temporal's SDK in another process to where a client is connected."""
    config = used.service_client.config
    found = {"TEMPORAL_ADDRESS": config.target_host, "TEMPORAL_NAMESPACE": used.namespace}
    found |= {"TEMPORAL_API_KEY": config.api_key} if config.api_key else {}
    if not config.tls:
        return found
    tls = config.tls if isinstance(config.tls, TLSConfig) else TLSConfig()
    data = {
        "SERVER_CA_CERT_DATA": tls.server_root_ca_cert,
        "CLIENT_CERT_DATA": tls.client_cert,
        "CLIENT_KEY_DATA": tls.client_private_key,
    }
    found |= {f"TEMPORAL_TLS_{name}": given.decode() for name, given in data.items() if given is not None}
    found |= {"TEMPORAL_TLS_SERVER_NAME": tls.domain} if tls.domain else {}
    return found | {"TEMPORAL_TLS": "true"}
