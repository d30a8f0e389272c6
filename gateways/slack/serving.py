"""Serve Slack alone: over HTTP on an address of our own, or over socket mode, until told to stop."""

import asyncio
import signal
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from backstay.client import Backstay
from backstay.settings import Settings
from gateways.listening import Server, address_of, config_of, listen
from gateways.slack.app import open_slack
from gateways.slack.mounting import PATH, slack_routes
from store.store import Store

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
        if stop.is_set():
            return
        with listen(host, port) as listener:
            address = f"{address_of(host, listener.getsockname()[1])}{PATH}"
            app = Starlette(routes=[*slack_routes(slack.app), Route("/healthz", _lives, methods=["GET"])])
            said = f"{slack.team}, channel {slack.channel}, at {address}"
            await Server(config_of(app, _MOST_CONNECTIONS), lambda: ready(said)).serve(sockets=[listener])


async def _lives(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})
