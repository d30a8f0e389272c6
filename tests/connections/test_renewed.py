"""Tokens that end amid a session: the call goes out again with another, and what came of it is told truly."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from starlette.responses import PlainTextResponse, StreamingResponse

from backstay.errors import OutcomeUnknown
from backstay.tools.connection import ConnectionPlace
from store.opening import open_store
from tests.connections.issuer import Guarded, Issuer, go_to, secure
from tests.requirements import promise
from tests.toolbox.servers.sessions import Sessions, app_of
from toolbox.oauth.connections import OAuthConnections
from toolbox.providers.provider import Caller, NotSent
from toolbox.toolbox import open_toolbox

ANA = "ana@example.com"
BACK = "https://page.example.com/connections/notes/callback"


async def intent():
    """Stand for a committed intent."""


class Desk:
    """Hold a server that keeps sessions and takes the tokens of an issuer, and a toolbox over it."""

    def __init__(self, sessions, issuer, guard, toolbox, connections):
        self.sessions, self.issuer, self.guard = sessions, issuer, guard
        self.toolbox, self.connections = toolbox, connections

    async def call(self, name, before_send=None):
        caller = Caller(user_id=ANA, owner=ANA)
        found = (await self.toolbox.catalog(ANA, owner=ANA)).definitions[f"notes.{name}"]
        return await self.toolbox.call(found, {}, deadline_s=20, caller=caller, before_send=before_send)

    async def tokens_until(self, condition):
        async with asyncio.timeout(20):
            while not condition(self.guard.seen):
                await asyncio.sleep(0.02)


@asynccontextmanager
async def signed_in(authority, folder):
    issuer, sessions = Issuer(person="ana-at-notes"), Sessions()
    guard = Guarded(app_of(sessions), issuer)
    async with secure(issuer.app, authority) as issuer.url, secure(guard, authority) as guard.url:
        file = folder / "toolbox.json"
        told = {"mcpServers": {"notes": {"url": f"{guard.url}/mcp", "auth": {}}}}
        file.write_text(json.dumps(told | {"providers": {"notes": {"trusted": True}}}), encoding="utf-8")
        async with (
            open_store(database_url=None, home=folder, encryption_keys=[]) as store,
            open_toolbox(
                file, environment={}, home=folder / "home", connections=ConnectionPlace(store.connections)
            ) as toolbox,
        ):
            connections = OAuthConnections(toolbox._configuration.servers, store.connections)
            back = await go_to((await connections.begin(ANA, "notes", BACK)).url, authority)
            await connections.finish(ANA, "notes", back)
            yield Desk(sessions, issuer, guard, toolbox, connections)
            await connections.close()


@pytest_asyncio.fixture
async def desk(authority, tmp_path):
    async with signed_in(authority, tmp_path) as found:
        assert (await found.call("look")).data == "the answer"
        found.sessions.acted.clear()
        yield found


async def cut():
    yield ": it has begun\n\n"
    raise RuntimeError("the server dies amid its answer")


@promise("effects:renewed-token")
@pytest.mark.parametrize("status", [502, 404, 200])
async def test_a_write_that_acted_with_a_renewed_token_and_whose_answer_is_lost_is_unknown(desk, status):
    lost = PlainTextResponse("who are you?", status_code=status)
    desk.sessions.refuses_call = lost if status >= 400 else StreamingResponse(cut(), media_type="text/event-stream")
    desk.issuer.forget()
    with pytest.raises(OutcomeUnknown) as caught:
        await desk.call("change", intent)
    assert not isinstance(caught.value, NotSent)
    assert (desk.sessions.acted, desk.issuer.counted["refresh_token"]) == (["change"], 1)


@promise("effects:renewed-token")
@pytest.mark.parametrize(("status", "body"), [(404, "rpc"), (404, "none"), (200, "rpc")])
async def test_a_write_under_a_session_that_was_lost_after_the_token_was_renewed_was_not_sent(desk, status, body):
    await desk.connections.renewed(await desk.connections.usable(ANA, "notes"))
    desk.issuer.access.pop(desk.guard.seen[-1])
    desk.sessions.lose(status, body)
    with pytest.raises(NotSent, match="no longer knows the session"):
        await desk.call("change", intent)
    assert desk.sessions.acted == []
    assert (await desk.call("change", intent)).data == "the answer"
    assert desk.sessions.acted == ["change"]


@promise("effects:renewed-token")
async def test_a_stream_that_is_refused_for_its_token_ends_no_session(desk):
    stale, desk.issuer.pause_s = desk.guard.seen[-1], 0.3
    desk.issuer.forget()
    # The MCP client asks for the stream again after a second.
    await desk.tokens_until(lambda seen: seen[-1] != stale)
    assert (await desk.call("look")).data == "the answer"
    assert desk.sessions.opened == 1
