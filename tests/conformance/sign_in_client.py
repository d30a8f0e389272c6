"""Face the MCP conformance suite with the toolbox of a user who signs in wherever a server wants it; argv: the address.

The browser is a request that follows no redirect: its issuers send a person back at once.
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2

from backstay.errors import SignInRefused
from backstay.tools.connection import ConnectionPlace
from store.opening import open_store
from tests.conformance.client import sample
from toolbox.configuration.configuration import ServerAuth, ServerEntry
from toolbox.oauth.connections import OAuthConnections
from toolbox.providers.provider import Caller
from toolbox.toolbox import Toolbox, open_toolbox

USER = "ana@example.com"
BACK = "http://localhost:3030/connections/suite/callback"
DOCUMENT = "https://conformance-test.local/client-metadata.json"
MOST_SIGN_INS = 3


async def issuer_of(address: str) -> str:
    """Return the issuer that a server names: an operator who registers a client by hand knows it."""
    place = urlsplit(address)
    async with httpx2.AsyncClient() as http:
        said = await http.get(f"{place.scheme}://{place.netloc}/.well-known/oauth-protected-resource{place.path}")
        return said.json()["authorization_servers"][0]


async def auth_for(scenario: str, context: dict[str, Any], address: str) -> dict[str, Any]:
    """Return how an operator would write it for a server of this scenario."""
    known = {name: context[name] for name in ("client_id", "client_secret") if name in context}
    if "client_secret" in known:
        known["issuer"] = await issuer_of(address)
    if scenario.startswith("auth/client-credentials"):
        known["grant"] = "client_credentials"
    return known or {"client_metadata_url": DOCUMENT}


async def sign_in(connections: OAuthConnections) -> bool:
    """Sign the user in as a browser does; return whether that came to an end."""
    try:
        departure = await connections.begin(USER, "suite", BACK)
        async with httpx2.AsyncClient() as browser:
            back = (await browser.get(departure.url)).headers["location"]
        await connections.finish(USER, "suite", dict(parse_qsl(urlsplit(back).query)))
    except SignInRefused as error:
        print("not signed in:", error)
        return False
    return True


async def call_all(toolbox: Toolbox) -> bool:
    """Call every tool; return whether one of them wants a sign-in."""
    catalog = await toolbox.catalog(USER, owner=USER)
    wanted = not catalog.definitions
    for name, reason in catalog.unavailable.items():
        print(name, "unavailable:", reason)
    for name, definition in catalog.definitions.items():
        try:
            given = sample(definition.parameters)
            answer = await toolbox.call(definition, given, deadline_s=20, caller=Caller(user_id=USER, owner=USER))
        except Exception as error:  # the suite judges by what it saw on the wire
            print(name, type(error).__name__, error)
            wanted = True
        else:
            print(name, answer.success, answer.question)
            wanted = wanted or answer.question is not None
    return wanted


async def main(address: str) -> None:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory() as place:
        file, home = Path(place) / "toolbox.json", Path(place)
        auth = await auth_for(scenario, context, address)
        file.write_text(json.dumps({"mcpServers": {"suite": {"url": address, "auth": auth}}}), encoding="utf-8")
        async with open_store(database_url=None, home=home, encryption_keys=[]) as store:
            at = ConnectionPlace(store.connections, None, store.own_servers)
            # People sign in by the page, which has the same store and no toolbox.
            page = OAuthConnections({"suite": ServerEntry(url=address, auth=ServerAuth(**auth))}, store.connections)
            async with open_toolbox(file, environment=dict(os.environ), home=home, connections=at) as toolbox:
                for _ in range(MOST_SIGN_INS):
                    if not await call_all(toolbox) or not await sign_in(page):
                        break
            await page.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
