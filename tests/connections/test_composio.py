"""Composio gives each user an MCP address by three calls, which is used for nobody else and shown nowhere."""

import json
import uuid
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from backstay.errors import SignInRefused, ToolboxInvalid, ToolUnavailable
from backstay.testing import Reply
from backstay.tools.connection import ConnectionPlace
from store.opening import open_store
from system import dialing
from tests import signing
from tests.connections.composio_stand_in import CONFIG, KEY, entry_of, stand_in
from tests.connections.issuer import go_to
from tests.connections.test_runs import ANA, BO, PAGE, POLICY, csrf_in, finish
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise
from tests.web.pages import KEY as APPROVER
from tests.web.pages import behind_a_proxy, served_page
from toolbox.configuration.load import load
from toolbox.oauth.connections import OAuthConnections
from toolbox.providers.provider import Caller
from toolbox.toolbox import open_toolbox

BACK = f"{PAGE}/connections/gmail/callback"
SCRIPTS = Scripts()


@promise("tools:gmail-slack")
async def test_a_run_asks_its_user_to_connect_an_account_and_the_same_call_goes_on(
    authority, temporal, tmp_path, caplog, capfd
):
    toolbox, seen = tmp_path / "toolbox.json", []

    def look(conversation):
        seen.append(json.dumps(conversation.messages, default=str))
        return finish()

    async with stand_in(authority) as found:
        toolbox.write_text(json.dumps({"mcpServers": {"gmail": entry_of(found, KEY)}}), encoding="utf-8")
        options = {"policy": POLICY, "toolbox": toolbox, "url": PAGE, **behind_a_proxy()}
        async with engine(temporal, tmp_path, SCRIPTS, **options) as running, served_page(running) as page:
            workflow_id = f"task-{uuid.uuid4()}"
            sending = Reply(calls=[("gmail__send", {"to": "cy@example.com"})])
            asking = Reply(calls=[("gmail__sign_in", {})])
            task = {**SCRIPTS.task(asking, sending, look, user_id=ANA), "by": ANA}
            task = signing.signed_start(running.client, workflow_id, task, key=APPROVER)
            handle = await running.start(task, workflow_id)
            (request,) = await pending(handle)
            assert f"{PAGE}/connections#gmail" in request["question"]
            async with page.person(ANA) as person:
                shown = await person.get("/connections")
                left = await person.post("/connections/gmail/sign-in", data={"csrf": csrf_in(shown.text)})
                url = left.text.partition('rel="noreferrer" href="')[2].partition('"')[0].replace("&amp;", "&")
                back = await go_to(url, authority)
                answer = await person.get("/connections/gmail/callback", params=back)
                assert answer.status_code == 303, answer.text
                result = await ended(handle)
                pages = [await person.get(path) for path in ("/connections", f"/runs/{handle.id}")]
                shown = "".join(page.text for page in pages)
            history = (await handle.fetch_history()).to_json()
            kept = b"".join(path.read_bytes() for path in running.settings.home.rglob("*") if path.is_file())

        assert result["outcome"] == "completed"
        assert found.written == [(ANA, "cy@example.com")]
        assert found.calls == ["link", "listed", "generate"]
        assert set(found.keys) == {KEY}
        assert "sent by" in seen[0]
        logged = "".join([caplog.text, *capfd.readouterr()])
        for place in (history, kept.decode("latin-1"), shown, seen[0], json.dumps(result), logged):
            assert not [secret for secret in (KEY, *found.addresses) if secret in place]


class Desk:
    """Sign people in, and call tools for them, as a worker does."""

    def __init__(self, found, connections, toolbox, store, authority):
        self.found, self.connections, self.toolbox = found, connections, toolbox
        self.store, self.authority = store, authority

    async def sign_in(self, user=ANA):
        departure = await self.connections.begin(user, "gmail", BACK)
        return await self.connections.finish(user, "gmail", await go_to(departure.url, self.authority))

    async def refused(self, user=ANA):
        with pytest.raises(SignInRefused) as told:
            await self.sign_in(user)
        assert KEY not in str(told.value)
        assert await self.store.connections.listed(None) == []
        return str(told.value)

    async def send(self, to, user=ANA):
        definition = (await self.toolbox.catalog(user, owner=user)).definitions["gmail.send"]
        return await self.toolbox.call(definition, {"to": to}, deadline_s=20, caller=Caller(user_id=user, owner=user))

    async def tools(self, user=ANA):
        catalog = await self.toolbox.catalog(user, owner=user, fresh=True)
        assert catalog.kinds == {"gmail": "composio"}
        return sorted(catalog.definitions)


@asynccontextmanager
async def opened(found, authority, folder):
    file = folder / "toolbox.json"
    file.write_text(json.dumps({"mcpServers": {"gmail": entry_of(found)}}), encoding="utf-8")
    environment = {"COMPOSIO_API_KEY": KEY}
    async with open_store(database_url=None, home=folder, encryption_keys=[]) as store:
        connections = OAuthConnections(load(file, environment)[0].servers, store.connections)
        place = ConnectionPlace(store.connections)
        made = open_toolbox(file, environment=environment, home=folder / "home", connections=place)
        async with made as toolbox:
            yield Desk(found, connections, toolbox, store, authority)
        await connections.close()


@pytest_asyncio.fixture
async def desk(authority, tmp_path):
    async with stand_in(authority) as found, opened(found, authority, tmp_path) as made:
        yield made


@promise("tools:kinds")
async def test_each_user_gets_an_address_of_their_own_and_nobody_else_is_served_by_it(desk):
    assert (await desk.sign_in()).grant.access_token.startswith(f"{desk.found.url}/v3/mcp/")
    assert "gmail.send" in await desk.tools()
    assert await desk.tools(BO) == ["gmail.sign_in"]
    assert (await desk.toolbox.catalog(ANA, owner="")).definitions == {}
    await desk.sign_in(BO)
    assert "gmail.send" in await desk.tools(BO)
    first, second = await desk.store.connections.listed(None)
    assert first.grant.access_token != second.grant.access_token
    # An address that is good no more is asked for again, and without an account the person is.
    desk.found.addresses.clear()
    await desk.tools()
    assert "gmail.send" in await desk.tools()
    assert (await desk.send("cy@example.com")).question is None
    assert desk.found.written == [(ANA, "cy@example.com")]
    desk.found.addresses.clear()
    desk.found.accounts.clear()
    await desk.tools()
    assert await desk.tools() == ["gmail.sign_in"]
    assert await desk.connections.usable(ANA, "gmail") is None


FAULTS = {
    "a wrong key": ({"status": 401}, "key of the operator"),
    "too many requests": ({"status": 429}, "HTTP 429"),
    "a fault of theirs": ({"status": 503}, "HTTP 503"),
    "a slow answer": ({"pause_s": 3.0}, "cannot be reached"),
}
HOSTILE = {
    "no link": ({"link": {"redirect_url": None}}, "no address"),
    "a link that is a script": ({"link": {"redirect_url": "javascript:alert(1)"}}, "https"),
    "a link into our network": ({"link": {"redirect_url": "https://10.0.0.7/"}}, "private"),
    "no account": ({"listed": {"items": []}}, "no account"),
    "accounts of another form": ({"listed": {"items": ["ca_1", 7, None, {"id": 1}]}}, "no account"),
    "the account of another user": (
        {"listed": {"items": [{"id": "ca_1", "status": "ACTIVE", "user_id": BO}]}},
        "no account",
    ),
    "an account that has expired": ({"listed": {"items": [{"id": "ca_1", "status": "EXPIRED"}]}}, "no account"),
    "no address": ({"generate": {"user_ids_url": []}}, "no address"),
    "an address for somebody else beside": ({"generate": {"user_ids_url": ["https://a.example", "x"]}}, "no address"),
    "an address of a cloud's secrets": ({"generate": {"user_ids_url": ["https://169.254.169.254/mcp"]}}, "private"),
    "an address in our network": ({"generate": {"user_ids_url": ["https://192.168.1.1/mcp"]}}, "private"),
    "plain http": ({"generate": {"user_ids_url": ["http://mcp.example.com/mcp"]}}, "https"),
    "a file": ({"generate": {"user_ids_url": ["file:///etc/passwd"]}}, "https"),
    "an endless address": ({"generate": {"user_ids_url": [f"https://a.example/{'x' * 3000}"]}}, "no address"),
}


@promise("connections:composio-faults")
async def test_what_composio_refuses_or_says_wrongly_connects_nobody_and_says_why(desk, monkeypatch):
    monkeypatch.setattr(dialing, "WITHIN_S", 0.5)
    for what, (fault, told) in FAULTS.items():
        desk.found.reset()
        for name, value in fault.items():
            setattr(desk.found, name, value)
        assert told in await desk.refused(), what
    for what, (gives, told) in HOSTILE.items():
        desk.found.reset()
        desk.found.gives.update(gives)
        assert told in await desk.refused(), what
    desk.found.reset()
    await desk.sign_in()
    known = await desk.connections.usable(ANA, "gmail")
    desk.found.status = 503
    with pytest.raises(ToolUnavailable, match="HTTP 503"):
        await desk.connections.renewed(known)
    assert (await desk.connections.usable(ANA, "gmail")).state == "connected"


@promise("connections:composio-key")
async def test_the_key_of_the_operator_goes_to_composio_alone_and_only_a_whole_entry_is_taken(desk, tmp_path):
    composio = desk.connections.account_service("gmail")
    assert composio.headers(f"{desk.found.url}/v3/mcp/x") == {"x-api-key": KEY}
    assert composio.headers("https://mcp.example.com/x") == {}
    wrong = [{"grant": "composio"}, {"composio": entry_of(desk.found)["auth"]["composio"]}]
    wrong += [{"grant": "composio", "composio": {"api_key": "k", "mcp_server_id": "../x", "auth_config_id": CONFIG}}]
    for auth in wrong:
        file = tmp_path / "wrong.json"
        file.write_text(json.dumps({"mcpServers": {"gmail": {"url": desk.found.url, "auth": auth}}}), encoding="utf-8")
        with pytest.raises(ToolboxInvalid, match="composio"):
            load(file, {})
