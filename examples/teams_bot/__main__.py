"""A door of one's own: people decide in Microsoft Teams what runs ask.

Start it in the checkout, beside a worker, with the worker's variables and these:

    TEAMS_APP_ID           the id of the bot's app
    TEAMS_APP_PASSWORD     its secret
    TEAMS_TENANT           the id of the tenant whose members decide, by their names there (user principal names)
    TEAMS_SERVICE_URL      where the connector answers, such as https://smba.trafficmanager.net/emea/
    TEAMS_CONVERSATION     the id of the channel or chat in which requests are posted
    TEAMS_PORT             where it listens on loopback for Bot Framework, at /api/messages; 8236 unless you set it

    python -m examples.teams_bot

TEAMS_OPENID and TEAMS_LOGIN name other addresses than Microsoft's for its keys and for its tokens.
BACKSTAY_APPROVER_KEY is the key of the workers, with which decisions are signed.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import MISSING, fields

import httpx2
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from backstay.client import Backstay
from backstay.errors import BackstayError, SettingsInvalid
from backstay.settings import Settings
from examples.teams_bot.activity import MOST_BYTES, Activity
from examples.teams_bot.connector import BotSettings, Connector
from examples.teams_bot.door import TeamsDoor
from gateways.links import Stranger
from gateways.listening import PageServer, TooLong, address_of, config_of, listen, read_body
from gateways.terminal.session import open_store, require_store, session
from people.notices.delivering import delivering
from store.store import Store
from system.tasks import background

HOST, PATH = "127.0.0.1", "/api/messages"
_MOST_CONNECTIONS = 200
_ANSWER_S = 15


def bot_settings(variables: Mapping[str, str]) -> BotSettings:
    """Return what the variables say; raises SettingsInvalid for one that is missing or wrong."""
    named = {field.name: variables.get(f"TEAMS_{field.name.upper()}", "") for field in fields(BotSettings)}
    for field in fields(BotSettings):
        if not named[field.name] and field.default is MISSING:
            raise SettingsInvalid(f"TEAMS_{field.name.upper()}: not set; __main__.py of the example says what it is")
    return BotSettings(**{name: value for name, value in named.items() if value})


@asynccontextmanager
async def open_bot(settings: BotSettings, backstay: Backstay, store: Store) -> AsyncGenerator[Starlette]:
    """Post what runs ask until the block ends; yields the application that hears what people press."""
    async with httpx2.AsyncClient(timeout=_ANSWER_S, follow_redirects=False) as http:
        connector = Connector(settings, http)
        door = TeamsDoor(connector, backstay, store)

        async def heard(request: Request) -> Response:
            try:
                vouched = await connector.vouched(request.headers.get("Authorization", ""))
                sent = Activity.model_validate_json(await read_body(request, MOST_BYTES))
                connector.require_ours(sent, vouched)
            except Stranger as error:
                return PlainTextResponse(str(error), 403)
            except (ValidationError, TooLong, TimeoutError) as error:
                return PlainTextResponse(f"no activity ({type(error).__name__})", 400, headers={"Connection": "close"})
            # Teams waits for 15 seconds; a run may take longer to say what it has against a decision.
            return Response(status_code=202, background=BackgroundTask(door.act, sent))

        async with delivering(store.outbox, [door]), background(door.follow()):
            yield Starlette(routes=[Route(PATH, heard, methods=["POST"])])


async def serve(variables: Mapping[str, str]) -> None:
    """Serve until Ctrl-C."""
    bot, settings = bot_settings(variables), Settings.load()
    if settings.approver_key is None:
        raise SettingsInvalid("BACKSTAY_APPROVER_KEY: not set; give the key of the workers, which signs decisions")
    require_store(settings)
    port = variables.get("TEAMS_PORT", "8236")
    if not port.isdecimal():
        raise SettingsInvalid(f"TEAMS_PORT: {port[:20]!r} is not a number; give a port, such as 8236")
    async with session(settings) as backstay, open_store(settings) as store, open_bot(bot, backstay, store) as app:
        with listen(HOST, int(port)) as listener:
            at = f"{address_of(HOST, listener.getsockname()[1])}{PATH}"
            server = PageServer(config_of(app, _MOST_CONNECTIONS), lambda: print(f"ready: {at}", flush=True))
            await server.serve(sockets=[listener])


if __name__ == "__main__":
    try:
        asyncio.run(serve(dict(os.environ)))  # noqa: TID251 - a separate program, configured by its environment
    except BackstayError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
