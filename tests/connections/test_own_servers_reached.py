"""What a server of a user is reached by, how it is kept, and what tries to lead a worker elsewhere."""

import asyncio
import ipaddress
import json
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from backstay.errors import ArgumentsInvalid, ToolboxInvalid, ToolUnavailable
from backstay.tools.connection import ConnectionPlace
from store.opening import open_store
from system.addresses import Internet
from system.dialing import Dialer, GuardedTransport
from tests.cli.commands import bare, forked
from tests.connections.crm import KEY, PATH_KEY, crm
from tests.connections.issuer import secure
from tests.docs.blocks import table
from tests.requirements import promise
from toolbox.configuration.load import load
from toolbox.configuration.users_servers import UsersServers
from toolbox.own_servers.providers import OwnProviders
from toolbox.own_servers.registry import UserServerRegistry
from toolbox.providers.provider import Caller
from toolbox.toolbox import open_toolbox

ANA, BO = "ana@example.com", "bo@example.com"
FAR = "https://mcp.example.org/mcp"


class Names(Internet):
    """Say what each name stands for, one answer after another; the last one stays."""

    def __init__(self, **known):
        super().__init__()
        self.known, self.asked = known, []

    async def addresses(self, host, port):
        self.asked.append(host)
        answers = self.known[host.partition(".")[0]]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [ipaddress.ip_address(each) for each in found]

    def is_own(self, address):
        return False


@asynccontextmanager
async def kept(folder, *hosts, url=None, most=5, internet=None, keys=()):
    """Open what keeps servers of users, as one process has it."""
    async with open_store(database_url=url, home=folder, encryption_keys=list(keys)) as store:
        yield (
            UserServerRegistry(UsersServers(hosts=list(hosts) or ["*"], most=most), store.own_servers, internet),
            store,
        )


async def tools_of(registry, user=ANA):
    """Return the names of a user's tools, and why there are none, as a worker finds them."""
    providers = OwnProviders(registry)
    try:
        found = [await provider.list(fresh=True) for provider in (await providers.of(user)).values()]
    finally:
        await providers.close()
    return [tool.name for each in found for tool in each.tools], " ".join(each.reason or "" for each in found)


@promise("connections:own-servers-at-rest")
@pytest.mark.parametrize("keys", [[], ["kA5rVbn4P8DqM3Z9s0Qh1uXJYtLw2eRfGiKo7cWvUTE="]])
async def test_neither_address_nor_header_stands_in_the_database_as_it_is(tmp_path, keys):
    async with kept(tmp_path, keys=keys) as (registry, _):
        added = await registry.add(ANA, "crm", f"https://mcp.example.org/{PATH_KEY}", {"X-Key": KEY}.items())
        assert (added.headers, added.host) == ({"X-Key": KEY}, "mcp.example.org")
        assert not [secret for secret in (KEY, PATH_KEY) if secret in repr(added) + json.dumps(added.told())]
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"mcp.example.org" in written
    assert not [secret for secret in (KEY, PATH_KEY) if secret.encode() in written]


@promise("connections:own-servers-most")
async def test_of_servers_that_are_added_at_once_a_user_has_no_more_than_the_operator_allows(tmp_path, database_url):
    async with (
        kept(tmp_path, url=database_url, most=3) as (first, _),
        kept(tmp_path, url=database_url, most=3) as (
            second,
            _,
        ),
    ):
        adding = (each.add(ANA, f"s{n}", FAR, {}) for n in range(8) for each in (first, second))
        done = await asyncio.gather(*adding, return_exceptions=True)
        assert sum(isinstance(each, ArgumentsInvalid) for each in done) == 13
        assert len(await first.of_user(ANA)) == 3
        await second.add(BO, "s0", FAR, {})
        providers = {each["provider"] for user in (ANA, BO) for each in await first.of_user(user)}
        assert len(providers) == 4


@promise("connections:own-servers-commands")
async def test_an_operator_adds_lists_and_removes_servers_of_users_and_sees_no_secret(nursery, tmp_path):
    home, file = tmp_path / "home", tmp_path / "toolbox.json"
    async with open_store(database_url=None, home=home, encryption_keys=[]):
        pass

    async def command(*words, code=0):
        settings = {"BACKSTAY_HOME": str(home), "BACKSTAY_TOOLBOX": str(file), "CRM_TOKEN": KEY}
        done = await forked(nursery, *words, environment=bare(**settings), folder=tmp_path)
        assert done.code == code, (done.out, done.err)
        assert KEY not in done.out + done.err
        return done.out + done.err

    adding = ("servers", "add", "crm", FAR, "--header", "Authorization=Bearer ${CRM_TOKEN}", "--user", ANA)
    file.write_text("{}", encoding="utf-8")
    assert "users_servers" in await command(*adding, code=2)
    file.write_text('{"users_servers": {"hosts": ["*.example.org"]}}', encoding="utf-8")
    assert "own-crm-" in await command(*adding)
    assert "url: " in await command("servers", "add", "two", "https://10.0.0.7/", "--user", ANA, code=2)
    twice = ("--header", "X-Key=a-first-value", "--header", "x-key=another-value")
    assert "given twice" in await command("servers", "add", "two", FAR, *twice, "--user", ANA, code=2)
    assert "nobody" in await command("servers", "add", "two", FAR, "--user", "singleton", code=2)
    (listed,) = json.loads(await command("servers", "list", "--output", "json"))
    assert (listed["user"], listed["host"], listed["headers"]) == (ANA, "mcp.example.org", ["Authorization"])
    file.write_text("{}", encoding="utf-8")
    assert "removed" in await command("servers", "remove", "crm", "--user", ANA)
    assert "has no server" in await command("servers", "remove", "crm", "--user", ANA, code=1)


WRONG = {
    "an unknown field": ({"hosts": ["a.example"], "host": "b"}, "users_servers.host: unknown field"),
    "no host": ({"hosts": []}, "users_servers.hosts"),
    "an address": ({"hosts": ["https://a.example"]}, "users_servers.hosts"),
    "a private address": ({"hosts": ["10.0.0.7"]}, "private"),
    "all of this machine": ({"hosts": ["127.0.0.1"]}, "needs a port"),
    "a wrong port": ({"hosts": ["a.example:99999"]}, "users_servers.hosts"),
    "none": ({"hosts": ["a.example"], "most": 0}, "users_servers.most"),
    "too many": ({"hosts": ["a.example"], "most": 51}, "users_servers.most"),
}


@promise("connections:own-servers-allowed")
async def test_what_the_operator_allows_is_checked_and_no_server_of_theirs_has_the_name_of_one_of_a_user(tmp_path):
    file = tmp_path / "toolbox.json"
    for what, (said, told) in WRONG.items():
        file.write_text(json.dumps({"users_servers": said}), encoding="utf-8")
        with pytest.raises(ToolboxInvalid) as refused:
            load(file, {})
        assert told in str(refused.value), what
    servers = {"own-crm": {"url": "https://mcp.example.org/mcp"}}
    file.write_text(json.dumps({"mcpServers": servers, "users_servers": {"hosts": ["*"]}}), encoding="utf-8")
    with pytest.raises(ToolboxInvalid, match="own-"):
        load(file, {})
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    assert load(file, {})[0].users_servers is None


@promise("connections:own-servers-untrusted")
async def test_what_a_server_of_a_user_says_of_itself_makes_no_tool_of_it_less_dangerous(authority, tmp_path):
    async with crm(authority) as found:
        host, file = urlsplit(found.url).netloc, tmp_path / "toolbox.json"
        async with kept(tmp_path, host) as (registry, store):
            added = await registry.add(ANA, "crm", found.url, {"X-Key": KEY}.items())
            await registry.add(BO, "crm", found.url, {"X-Key": "another key"}.items())
            place = ConnectionPlace(store.connections, own_servers=store.own_servers)
            options = {"environment": {}, "home": tmp_path / "home", "connections": place}

            async def catalog(toolbox, owner):
                return await toolbox.catalog(ANA, owner=owner, fresh=True)

            file.write_text(json.dumps({"users_servers": {"hosts": [host]}}), encoding="utf-8")
            async with open_toolbox(file, **options) as toolbox:
                mine, nobodys, bos = [await catalog(toolbox, owner) for owner in (ANA, "", BO)]
                named = {tool: mine.definitions.pop(f"{added.provider}.{tool}") for tool in ("find", "write")}
                for definition in named.values():
                    assert (definition.tool.safety, definition.tool.audience) == ("restricted_write", None)
                assert list(mine.definitions) == [f"{added.provider}.resources_read"]
                for definition in (*named.values(), *mine.definitions.values()):
                    assert (definition.tool.egress, definition.trusted) == (True, False)
                assert (nobodys.definitions, nobodys.unavailable) == ({}, {})
                assert list(bos.definitions) == []
                assert "401" in str(bos.unavailable)
                with pytest.raises(ToolUnavailable, match="removed this server"):
                    await toolbox.call(named["find"], {}, deadline_s=5, caller=Caller(owner=BO))
                await registry.remove(ANA, "crm")
                assert (await catalog(toolbox, ANA)).version != mine.version

            await registry.add(ANA, "crm", found.url, {"X-Key": KEY}.items())
            file.write_text(json.dumps({"users_servers": {"hosts": ["mcp.example.org"]}}), encoding="utf-8")
            async with open_toolbox(file, **options) as toolbox:
                refused = await catalog(toolbox, ANA)
                assert refused.definitions == {}
                assert "at a public host" in str(refused.unavailable)


ATTACKS = []


def attack(tried):
    ATTACKS.append(tried)
    return tried


@attack
async def a_server_at_a_name_for_a_private_network(reach):
    names = Names(mcp=[["10.0.0.7"]])
    tools, reason = await reach(FAR, names)
    assert (tools, "private" in reason, "10.0.0.7" in reason) == ([], True, False)


@attack
async def a_server_at_a_name_for_the_metadata_of_a_cloud(reach):
    assert "private" in (await reach(FAR, Names(mcp=[["169.254.169.254"]])))[1]


@attack
async def a_server_at_a_name_for_two_networks(reach):
    assert "private" in (await reach(FAR, Names(mcp=[["93.184.215.14", "127.0.0.1"]])))[1]


@attack
async def a_server_at_a_name_for_this_machine(reach):
    """As `localhost.` is one, which is written otherwise than what is refused at once."""
    assert "private" in (await reach("https://localhost./mcp", Names(localhost=[["127.0.0.1"]])))[1]


@attack
async def a_server_at_one_number_for_an_address(reach):
    assert "private" in (await reach("https://2130706433/mcp", Names(**{"2130706433": [["127.0.0.1"]]})))[1]


@attack
async def a_name_that_stands_for_something_else_a_moment_later(reach):
    """Each request looks, and goes to what it has looked at."""
    sent = []

    class Sends(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request):
            sent.append((request.url.host, request.headers["host"], request.extensions.get("sni_hostname")))
            return httpx2.Response(200)

    dialer = Dialer([], Names(mcp=[["93.184.215.14"], ["127.0.0.1"]]), tells=False)
    transport = GuardedTransport(dialer, FAR)
    transport._inner = Sends()
    async with httpx2.AsyncClient(transport=transport) as client:
        await client.get(FAR)
        with pytest.raises(httpx2.ConnectError, match="private"):
            await client.get(FAR)
    assert sent == [("93.184.215.14", "mcp.example.org", "mcp.example.org")]
    dialer.close()


@attack
async def a_server_that_leads_elsewhere(reach):
    """Neither the other address nor the way there gets the headers."""
    reach.found.leads_to = f"{reach.other}/stolen"
    tools, _ = await reach(reach.found.url, None, {"X-Key": KEY})
    assert tools == []
    assert reach.seen == []


@attack
async def a_server_that_has_answers_fetched_elsewhere(reach):
    """The older transport lets the server name where requests go."""
    url = f"{reach.other}/sse"
    tools, _ = await reach(url, None, {"X-Key": KEY})
    assert tools == []
    assert {path for path, _ in reach.seen} <= {"/sse"}


@attack
async def a_request_to_another_origin(reach):
    """Whatever part of a client would follow what a server says: the headers are in each request."""
    transport = GuardedTransport(Dialer([reach.found.url, reach.other], Names()), reach.found.url)
    async with httpx2.AsyncClient(transport=transport, headers={"X-Key": KEY}) as client:
        for address in (f"{reach.other}/stolen", reach.found.url.replace("https", "http"), "https://mcp.example.org/"):
            with pytest.raises(httpx2.ConnectError):
                await client.get(address)
    assert reach.seen == []


@attack
async def a_server_whose_calls_are_checked_by_another_address(reach):
    """Before a write its address is tried, by what its name stands for."""
    names = Names(mcp=[["127.0.0.1"]])
    async with kept(reach.folder, "*", internet=names) as (registry, _):
        (server,) = await registry.servers(ANA) or [await registry.add(ANA, "crm", FAR, ())]
        provider = await OwnProviders(registry).find(ANA, server.provider)
        with pytest.raises(ToolUnavailable, match="private"):
            await provider._inner._inner._reachable()
        await provider.close()


@attack
async def a_host_that_the_operator_allows_no_more(reach):
    async with kept(reach.folder, "*") as (registry, _):
        added = await registry.add(ANA, "crm", FAR, ())
    async with kept(reach.folder, "other.example.org") as (registry, _):
        provider = await OwnProviders(registry).find(ANA, added.provider)
        assert "not among the hosts" in (await provider.list()).reason
        with pytest.raises(ToolUnavailable, match="not among the hosts"):
            await provider.call(None)
        assert "not among the hosts" in (await registry.of_user(ANA))[0]["refused"]
        await provider.close()


class Reach:
    """Add a server, and look for its tools as a worker does."""

    def __init__(self, folder, found, other, seen):
        self.folder, self.found, self.other, self.seen = folder, found, other, seen

    async def __call__(self, url, internet, headers=None):
        near = [urlsplit(address).netloc for address in (self.found.url, self.other)]
        async with kept(self.folder, "*", *near, internet=internet) as (registry, _):
            await registry.add(ANA, "crm", url, (headers or {}).items())
            return await tools_of(registry)


@promise("connections:own-servers-attacks")
@pytest.mark.parametrize("tried", ATTACKS, ids=lambda tried: tried.__name__)
async def test_a_server_of_a_user_leads_a_worker_nowhere_else(authority, tmp_path, tried):
    seen = []

    async def elsewhere(request):
        seen.append((request.url.path, request.headers.get("x-key")))
        return Response(status_code=404)

    async def stream(request):
        if request.method == "POST":
            return Response(status_code=405)
        seen.append((request.url.path, request.headers.get("x-key")))
        lead = f"event: endpoint\ndata: {reach.found.url}/led\n\n"
        return Response(lead, media_type="text/event-stream")

    routes = [Route("/sse", stream, methods=["GET", "POST"]), Route("/{path}", elsewhere, methods=["GET", "POST"])]
    async with crm(authority) as found, secure(Starlette(routes=routes), authority) as other:
        reach = Reach(tmp_path, found, other, seen)
        await tried(reach)
        assert not [path for path, _ in found.seen if path.endswith("/led")]


@promise("connections:own-servers-attacks-listed")
def test_the_table_of_attacks_by_servers_of_users_is_complete():
    rows = table("docs/attacks-web.md", "## Attacks by servers of users")
    assert sorted(row[-1].strip("`") for row in rows) == sorted(tried.__name__ for tried in ATTACKS)


@promise("connections:names-here")
async def test_a_name_of_this_machines_own_list_is_found_and_no_other_name_without_a_dot(tmp_path, monkeypatch):
    listed = tmp_path / "hosts"
    listed.write_text("127.0.0.1 localhost\n10.1.2.3 crm Files.Example.com # docs.example.com\n", encoding="utf-8")
    asked = []

    def told(name, port, **_):
        asked.append(name)
        return [(2, 1, 6, "", ("192.0.2.1", port))]

    monkeypatch.setattr("system.addresses._HOSTS", listed)
    monkeypatch.setattr("socket.getaddrinfo", told)
    internet = Internet()
    for host in ("localhost", "crm", "files.example.com", "docs.example.com", "intranet"):
        await internet.addresses(host, 443)
    internet.close()
    assert asked == ["localhost", "crm", "files.example.com", "docs.example.com.", "intranet."]


@promise("connections:names-here")
async def test_of_several_addresses_of_a_name_the_one_that_answers_is_taken():
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        internet = Names(localhost=[["::1", "127.0.0.1"]])
        dialer = Dialer([f"http://localhost:{port}/mcp"], internet)
        assert str(await dialer.look_up(f"http://localhost:{port}/token")) == "127.0.0.1"
        dialer.close()
