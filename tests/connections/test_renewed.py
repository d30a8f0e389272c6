"""Tokens that end amid a session: the call goes out again with another, and what came of it is told truly."""

import asyncio

import pytest
import pytest_asyncio
from starlette.responses import PlainTextResponse, StreamingResponse

from backstay.errors import OutcomeUnknown
from tests.connections.desk import ANA, desk_of, intent
from tests.requirements import promise
from tests.toolbox.servers.sessions import Sessions, app_of
from toolbox.providers.provider import NotSent


@pytest_asyncio.fixture(params=["/mcp"])
async def desk(authority, tmp_path, request):
    sessions = Sessions()
    async with desk_of(authority, tmp_path, lambda _: app_of(sessions), path=request.param) as found:
        found.sessions = sessions
        await found.sign_in()
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
    async with asyncio.timeout(20):
        while desk.guard.seen[-1] == stale:
            await asyncio.sleep(0.02)
    assert (await desk.call("look")).data == "the answer"
    assert desk.sessions.opened == 1


@promise("effects:renewed-token")
@pytest.mark.parametrize("desk", ["/sse"], indirect=True)
async def test_over_the_older_transport_a_write_goes_out_again_with_a_renewed_token_and_is_answered(desk):
    desk.issuer.forget()
    assert (await desk.call("change", intent)).data == "the answer"
    assert (desk.sessions.acted, desk.sessions.opened) == (["change"], 1)
