"""Serve Slack alone: over HTTP on an address of our own, or over socket mode, until told to stop."""

import asyncio
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from backstay.client import Backstay
from backstay.errors import SettingsInvalid
from backstay.settings import Settings
from gateways.slack.app import open_slack
from gateways.slack.mounting import PATH, slack_routes
from store.store import Store

_DRAIN_S = 3
_MOST_CONNECTIONS = 200


async def serve(
    settings: Settings, store: Store, backstay: Backstay, *, host: str, port: int, ready: Callable[[str], Any]
) -> None:
    """Serve until SIGTERM or Ctrl-C; `ready` is told how Slack reaches us."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with open_slack(settings, store, backstay) as slack:
        if slack.app is None:
            ready(f"{slack.team}, channel {slack.channel}, over socket mode")
            await stop.wait()
            return
        with _listen(host, port) as listener:
            address = f"http://{host}:{listener.getsockname()[1]}{PATH}"
            server = _Server(
                _config(slack_routes(slack.app)), lambda: ready(f"{slack.team}, channel {slack.channel}, at {address}")
            )
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            stopped = asyncio.create_task(stop.wait())
            await asyncio.wait([serving, stopped], return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            server.should_exit = True
            await serving


def _config(routes: Sequence[BaseRoute]) -> uvicorn.Config:
    async def lives(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    return uvicorn.Config(
        Starlette(routes=[*routes, Route("/healthz", lives, methods=["GET"])]),
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_DRAIN_S,
    )


class _Server(uvicorn.Server):
    """Say when it can be reached, and leave signals to who serves."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], Any]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Change no handlers."""
        yield


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise SettingsInvalid(f"--port: {host}:{port} cannot be listened on ({error}); choose another") from None
