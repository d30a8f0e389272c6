"""A toolbox over one server that takes the tokens of an issuer, with somebody signed in."""

import json
from contextlib import asynccontextmanager

from backstay.tools.connection import ConnectionPlace
from store.opening import open_store
from tests.connections.issuer import Guarded, Issuer, go_to, secure
from toolbox.oauth.connections import OAuthConnections
from toolbox.providers.provider import Caller
from toolbox.toolbox import open_toolbox

ANA = "ana@example.com"
BACK = "https://page.example.com/connections/notes/callback"
SERVICE = {"grant": "client_credentials", "client_id": "service", "client_secret": "own secret of the service"}


async def intent():
    """Stand for a committed intent."""


class Desk:
    """Hold the issuer, what guards the server, and the toolbox."""

    def __init__(self, issuer, guard, authority, toolbox, connections):
        self.issuer, self.guard, self.authority = issuer, guard, authority
        self.toolbox, self.connections = toolbox, connections
        self.caller = Caller(user_id=ANA, owner=ANA)

    async def sign_in(self):
        back = await go_to((await self.connections.begin(ANA, "notes", BACK)).url, self.authority)
        await self.connections.finish(ANA, "notes", back)

    async def catalog(self, **more):
        return await self.toolbox.catalog(ANA, owner=ANA, **more)

    async def call(self, name, before_send=None, **more):
        found = (await self.catalog()).definitions[f"notes.{name}"]
        more = {"deadline_s": 20, "caller": self.caller, "before_send": before_send, **more}
        return await self.toolbox.call(found, more.pop("arguments", {}), **more)


@asynccontextmanager
async def desk_of(authority, folder, app_for, *, service=False, path="/mcp"):
    """Serve an issuer and a server that is made for it; backstay itself signs in as a `service`."""
    issuer = Issuer(person="ana-at-notes")
    guard = Guarded(app_for(issuer), issuer)
    guard.path = path
    async with secure(issuer.app, authority) as issuer.url, secure(guard, authority) as guard.url:
        auth = {**SERVICE, "issuer": issuer.url} if service else {}
        file = folder / "toolbox.json"
        told = {"mcpServers": {"notes": {"url": f"{guard.url}{path}", "auth": auth}}}
        file.write_text(json.dumps(told | {"providers": {"notes": {"trusted": True}}}), encoding="utf-8")
        async with open_store(database_url=None, home=folder, encryption_keys=[]) as store:
            place = ConnectionPlace(store.connections)
            async with open_toolbox(file, environment={}, home=folder / "home", connections=place) as toolbox:
                connections = OAuthConnections(toolbox._configuration.servers, store.connections)
                yield Desk(issuer, guard, authority, toolbox, connections)
                await connections.close()
