"""What a server of a user may try, or whoever added it, when it is reached as it should be."""

import asyncio
import base64
from urllib.parse import quote, urlsplit

from cryptography.fernet import Fernet
from mcp import MCPError
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from starlette.requests import Request
from starlette.responses import JSONResponse

from activities.telemetry.counting import Counts
from backstay.errors import BackstayError
from backstay.tools.connection import Grant
from tests.connections.issuer import secure
from tests.connections.test_own_servers_reached import ANA, FAR, kept
from tests.requirements import promise
from toolbox.own_servers.providers import OwnProviders
from toolbox.providers.provider import ProviderCall

PASSWORD, COOKIE, TOKEN, QUERY = (
    "violet-harbour-lantern",
    "amber-orchard-telescope",
    "silver-meadow-compass",
    "q7-otter-lamp",
)
BASIC = base64.b64encode(f"ana:{PASSWORD}".encode()).decode()
HEADERS = {
    "Authorization": f"Basic {BASIC}",
    "Cookie": f"theme=dark; session={COOKIE}",
    "X-Token": f'Token token="{TOKEN}", version=1',
}


class Parrot:
    """Say whatever a test wants, as an answer, as an error, and of its tools."""

    def __init__(self, words=()):
        self.words = words
        server = MCPServer("parrot", instructions=f"Come with {PASSWORD}")

        @server.tool(description=f"Needs {COOKIE}")
        def say(n: int) -> dict:
            return {"said": self.words[n]}

        @server.tool()
        def fail(n: int) -> str:
            raise ToolError(self.words[n])

        @server.tool()
        def refuse(n: int) -> str:
            raise MCPError(-32602, self.words[n])

        @server.tool(name=f"with_{TOKEN}")
        def named() -> str:
            return ""

        @server.resource("parrot://words")
        def words_of() -> str:
            return " ".join(self.words)

        @server.prompt()
        def prepared(topic: str) -> str:
            return f"{topic}: {self.words}"

        self.status = 0
        """With which it answers calls instead, in words of the protocol."""
        self.app = server.streamable_http_app(stateless_http=True, json_response=True)

    async def __call__(self, scope, receive, send):
        request = Request(scope, receive) if scope["type"] == "http" else None
        asked = await request.json() if self.status and request and request.method == "POST" else {}
        if asked.get("method") != "tools/call":
            return await self.app(scope, receive, send)
        error = {"code": -32000, "message": " ".join(self.words)}
        said = {"jsonrpc": "2.0", "id": asked["id"], "error": error}
        return await JSONResponse(said, self.status)(scope, receive, send)


async def provider_of(registry, user=ANA):
    (provider,) = (await OwnProviders(registry).of(user)).values()
    return provider


async def said_by(provider, tool, arguments):
    """Return all that a call brings, also as an error."""
    try:
        return repr(await provider.call(ProviderCall(tool=tool, arguments=arguments, deadline_s=20)))
    except BackstayError as error:
        return repr(error)


@promise("connections:own-servers-parts")
async def test_a_server_that_repeats_a_part_of_a_header_or_address_in_any_spelling_is_masked(authority, tmp_path):
    secrets = (PASSWORD, COOKIE, TOKEN, QUERY)
    spelled = [[each, each.upper(), quote(each), base64.b64encode(each.encode()).decode()] for each in secrets]
    parrot = Parrot([word for words in spelled for word in words])
    async with secure(parrot, authority) as base, kept(tmp_path, urlsplit(base).netloc) as (registry, _):
        await registry.add(ANA, "parrot", f"{base}/mcp?a=1&{QUERY}", HEADERS.items())
        provider = await provider_of(registry)
        listing = await provider.list(fresh=True)
        told = [repr(listing)]
        calls = [(tool, {"n": n}) for tool in ("say", "fail", "refuse") for n, _ in enumerate(parrot.words)]
        for tool, arguments in (*calls, ("resources_read", {"uri": "parrot://words"})):
            told.append(await said_by(provider, tool, arguments))
        for parrot.status in (400, 401, 403, 404, 429, 500, 503):
            told.append(await said_by(provider, "say", {"n": 0}))
        await provider.close()
    assert "resources_read" in {tool.name for tool in listing.tools}
    assert not [word for word in parrot.words for said in told if word in said]


@promise("connections:own-servers-beside")
async def test_resources_and_prompts_of_a_users_server_are_as_restricted_as_its_tools(authority, tmp_path):
    async with secure(Parrot(), authority) as base, kept(tmp_path, urlsplit(base).netloc) as (registry, _):
        await registry.add(ANA, "parrot", f"{base}/mcp", ())
        provider = await provider_of(registry)
        tools = {tool.name: tool.declared for tool in (await provider.list(fresh=True)).tools}
        await provider.close()
    assert {"say", "resources_list", "resources_read", "prompt_prepared"} <= tools.keys()
    for name, declared in tools.items():
        assert (declared.safety, declared.egress, declared.content) == ("restricted_write", True, "others"), name


@promise("connections:own-servers-bounds")
async def test_white_space_around_a_header_is_no_part_of_it(tmp_path):
    async with kept(tmp_path) as (registry, _):
        added = await registry.add(ANA, "crm", FAR, {"X-Key": "  a b\t"}.items())
        assert added.headers == {"X-Key": "a b"}


@promise("connections:own-servers-keys")
async def test_what_no_key_opens_any_more_is_asked_for_anew_and_stops_nothing_else(tmp_path):
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    async with kept(tmp_path, keys=[old]) as (registry, store):
        await registry.add(ANA, "lost", FAR, {"X-Key": PASSWORD}.items())
        grant = Grant(issuer=FAR, resource=FAR, access_token=TOKEN, token_endpoint=FAR, client={})
        await store.connections.connect(ANA, "notes", grant, ends_at=None)
        await store.connections.keep_client("notes", FAR, FAR, {"client_id": "x"})
    async with kept(tmp_path, keys=[new, old]) as (registry, _):
        await registry.add(ANA, "kept", FAR, {"X-Key": PASSWORD}.items())
    async with kept(tmp_path, keys=[new]) as (registry, store):
        first, second = await registry.of_user(ANA)
        assert (first["name"], first["refused"], second["name"]) == ("kept", "", "lost")
        assert "add it again" in second["refused"]
        providers = await OwnProviders(registry).of(ANA)
        assert "add it again" in (await providers[second["provider"]].list(fresh=True)).reason
        assert await registry.remove(ANA, "lost") == second["provider"]
        assert (await registry.add(ANA, "lost", FAR, {"X-Key": TOKEN}.items())).headers == {"X-Key": TOKEN}
        (connection,) = await store.connections.listed(ANA)
        assert (connection.state, connection.grant) == ("ended", None)
        assert await store.connections.client("notes", FAR, FAR) is None
        for provider in providers.values():
            await provider.close()


@promise("connections:keys-rotated")
async def test_what_a_worker_seals_again_outlives_the_old_key(tmp_path):
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    grant = Grant(issuer=FAR, resource=FAR, access_token=TOKEN, token_endpoint=FAR, client={})
    async with kept(tmp_path, keys=[]) as (registry, _):
        # From before there were keys.
        await registry.add(ANA, "first", FAR, {"X-Key": PASSWORD}.items())
    async with kept(tmp_path, keys=[old]) as (registry, store):
        await registry.add(ANA, "second", FAR, {"X-Key": PASSWORD}.items())
        await store.connections.connect(ANA, "notes", grant, ends_at=None)
        await store.connections.keep_client("notes", FAR, FAR, {"client_id": "x"})
        await store.connections.begin_sign_in("state", ANA, "notes", {"verifier": "v"})
    async with kept(tmp_path, keys=[new, old]) as (_, store):
        await store.renewing.renew()
        await store.renewing.renew()
    async with kept(tmp_path, keys=[new]) as (registry, store):
        assert {server.headers["X-Key"] for server in await store.own_servers.listed(ANA)} == {PASSWORD}
        (connection,) = await store.connections.listed(ANA)
        assert (connection.state, connection.grant) == ("connected", grant)
        assert await store.connections.client("notes", FAR, FAR) == {"client_id": "x"}
        assert await store.connections.take_sign_in("state") == (ANA, "notes", {"verifier": "v"})


@promise("connections:own-servers-counted")
def test_calls_of_all_servers_of_users_are_counted_under_one_name():
    class Meter:
        """Note what is added to a counter, with its labels."""

        def __init__(self):
            self.added = []

        def create_counter(self, *_):
            return self

        create_gauge_float = create_counter

        def set(self, *_):
            pass

        def add(self, count, labels=None):
            self.added.append(labels)

    meter = Meter()
    counts = Counts(meter)
    meter.added.clear()
    for n in range(100):
        counts.called(f"own-crm-{n:08x}.find", "succeeded")
    counts.called("mail.send", "succeeded")
    assert {each["provider"] for each in meter.added} == {"own", "mail"}


@promise("connections:own-servers-many")
async def test_of_more_servers_than_stay_open_none_is_closed_while_it_lists_its_tools(authority, tmp_path, monkeypatch):
    monkeypatch.setattr("toolbox.own_servers.providers._MOST_OPEN", 1)
    async with secure(Parrot(), authority) as base, kept(tmp_path, urlsplit(base).netloc) as (registry, _):
        for user in (ANA, "bo@example.com"):
            await registry.add(user, "parrot", f"{base}/mcp", ())
        providers = OwnProviders(registry)
        (first,) = (await providers.of(ANA)).values()
        listing = asyncio.create_task(first.list(fresh=True))
        await asyncio.sleep(0)
        await providers.of("bo@example.com")
        listed = await listing
        await providers.close()
    assert (listed.reason, "say" in {tool.name for tool in listed.tools}) == (None, True)
