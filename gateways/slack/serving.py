"""Serve Slack until told to stop: over HTTP by one route, which any application can mount, or over socket mode."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response
from slack_bolt.async_app import AsyncApp
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from backstay.client import Backstay
from backstay.settings import Settings
from gateways.listening import BODY_S, PageServer, TooLong, address_of, config_of, listen, read_body
from gateways.slack.app import open_slack
from store.store import Store

_MOST_CONNECTIONS = 200
PATH = "/slack/events"
MOST_BYTES = 1 << 20
"""What Slack sends at most is a fraction of it; nobody has proved yet that it is Slack who sends."""


def slack_routes(app: AsyncApp) -> Sequence[BaseRoute]:
    """Return the route; a request there without Slack's signature of the last five minutes is refused."""

    async def heard(request: Request) -> Response:
        try:
            asked = to_async_bolt_request(request, await read_body(request, MOST_BYTES, BODY_S))
        except TooLong:
            return PlainTextResponse("too long", 413)
        except TimeoutError:
            return PlainTextResponse("too slow", 408, headers={"Connection": "close"})
        except UnicodeDecodeError:
            return PlainTextResponse("not UTF-8", 400)
        return to_starlette_response(await app.async_dispatch(asked))

    return [Route(PATH, heard, methods=["POST"])]


@asynccontextmanager
async def routes_beside(settings: Settings, store: Store, backstay: Backstay) -> AsyncGenerator[Sequence[BaseRoute]]:
    """Open the door to Slack within an application that serves more, until the block ends; yields its routes.

    They are none in socket mode. Raises SettingsInvalid for what is missing or wrong.
    """
    async with open_slack(settings, store, backstay) as slack:
        yield [] if slack.app is None else slack_routes(slack.app)


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
            await PageServer(config_of(app, _MOST_CONNECTIONS), lambda: ready(said)).serve(sockets=[listener])


async def _lives(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})
