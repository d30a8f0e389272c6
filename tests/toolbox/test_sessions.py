"""What happens when a server over HTTP no longer knows a session: it restarted, timed out, or is another one."""

import asyncio
import importlib.util
import json
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.responses import JSONResponse, PlainTextResponse, Response

from backstay.errors import OutcomeUnknown
from tests.requirements import promise
from toolbox.providers.provider import NotSent


async def intent():
    """Stand for a committed intent."""


@pytest.fixture
async def lost(servers, opened, tmp_path):
    """Open a toolbox with a server that keeps sessions; yields the toolbox and the sessions."""
    spec = importlib.util.spec_from_file_location("toolbox_sessions_server", servers / "sessions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    @asynccontextmanager
    async def serve(path="/mcp", **more):
        sessions = module.Sessions()
        config = uvicorn.Config(
            module.app_of(sessions),
            host="127.0.0.1",
            port=0,
            log_level="critical",
            ws="none",
            timeout_graceful_shutdown=0,
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        async with asyncio.timeout(150):
            while not server.started:
                await asyncio.sleep(0.02)
        url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}{path}"
        try:
            async with opened(tmp_path, {"mcpServers": {"web": {"url": url, **more}}}) as toolbox:
                await toolbox.catalog("anyone")
                yield toolbox, sessions
        finally:
            server.should_exit = True
            await serving

    return serve


async def call(toolbox, name, before_send=None):
    definition = (await toolbox.catalog("anyone")).definitions[f"web.{name}"]
    return await toolbox.call(definition, {}, deadline_s=20, effect_id="w/r/1", before_send=before_send)


# python-sdk#1676 (404 with a body), java-sdk#105 (404 without), affine-mcp-server#301 (400 with a body),
# fastmcp#121 (400 after a restart), anubis-mcp#124 (400 as text), typescript-sdk#1402 (410), rust-sdk#559 (401 as text)
# aklivity/zilla#2525 (200 with an error that names no request)
LOST = pytest.mark.parametrize(
    ("status", "body"),
    [
        *[(404, "rpc"), (404, "none"), (404, "text"), (400, "rpc"), (400, "text"), (400, "none")],
        *[(410, "none"), (410, "rpc"), (401, "text"), (200, "rpc")],
    ],
)


@promise("tools:session-gone")
@LOST
async def test_a_read_is_made_again_under_another_session(lost, status, body):
    async with lost() as (toolbox, sessions):
        sessions.lose(status, body)
        assert (await call(toolbox, "look")).data == "the answer"
        assert (sessions.acted, sessions.opened) == (["look"], 2)


@promise("tools:session-gone")
async def test_a_read_is_made_again_also_when_the_refusal_names_it(lost):
    async with lost() as (toolbox, sessions):
        sessions.lose(body="own")
        assert (await call(toolbox, "look")).data == "the answer"


@promise("effects:session-gone")
@LOST
async def test_a_write_that_the_server_refuses_like_its_list_was_not_sent_and_the_next_one_is(lost, status, body):
    async with lost() as (toolbox, sessions):
        sessions.lose(status, body)
        with pytest.raises(NotSent, match=f"HTTP {status}: the server no longer knows the session"):
            await call(toolbox, "change", intent)
        assert sessions.acted == []
        assert (await call(toolbox, "change", intent)).data == "the answer"
        assert sessions.acted == ["change"]


@promise("effects:session-kept")
@pytest.mark.parametrize(
    "refusal",
    [
        PlainTextResponse("no such order", status_code=404),
        Response(status_code=404),
        PlainTextResponse("bad", status_code=400),
        JSONResponse({"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}}, 404),
    ],
)
async def test_a_write_that_acted_and_was_refused_under_a_session_that_is_still_known_is_unknown(lost, refusal):
    async with lost() as (toolbox, sessions):
        sessions.refuses_call = refusal
        with pytest.raises(OutcomeUnknown) as caught:
            await call(toolbox, "change", intent)
        assert not isinstance(caught.value, NotSent)
        assert (sessions.acted, sessions.opened) == (["change"], 1)


@promise("effects:session-kept")
async def test_a_write_whose_refusal_differs_from_that_of_the_list_is_unknown(lost):
    async with lost() as (toolbox, sessions):
        sessions.lists_with, sessions.acts = 400, True
        sessions.lose()
        with pytest.raises(OutcomeUnknown):
            await call(toolbox, "change", intent)
        assert sessions.acted == ["change"]


@promise("effects:session-kept")
@pytest.mark.parametrize(
    "refusal",
    [JSONResponse({"detail": "Not Found"}, status_code=404), Response(status_code=404), Response(status_code=400)],
)
async def test_a_write_that_acted_and_was_refused_like_everything_that_the_server_does_not_offer_is_unknown(
    lost, refusal
):
    async with lost() as (toolbox, sessions):
        sessions.other_methods = sessions.refuses_call = refusal
        with pytest.raises(OutcomeUnknown) as caught:
            await call(toolbox, "change", intent)
        assert not isinstance(caught.value, NotSent)
        assert (sessions.acted, sessions.opened) == (["change"], 1)
        assert (await call(toolbox, "change", intent)).data == "the answer"


@promise("tools:session-gone")
async def test_a_server_without_a_ping_and_a_stream_keeps_its_session(lost):
    async with lost() as (toolbox, sessions):
        sessions.other_methods = Response(status_code=404)
        sessions.lose()
        assert (await call(toolbox, "look")).data == "the answer"
        sessions.refuses_call = JSONResponse(
            {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "no such tool"}}, status_code=400
        )
        assert not (await call(toolbox, "look")).success
        assert (await call(toolbox, "look")).data == "the answer"
        assert sessions.opened == 2


@promise("effects:session-kept")
@pytest.mark.parametrize("status", [401, 403, 429])
async def test_a_refused_reply_in_the_middle_of_a_write_says_nothing_of_the_write(lost, status):
    async with lost() as (toolbox, sessions):
        sessions.refuses_replies = status
        with pytest.raises(OutcomeUnknown) as caught:
            await call(toolbox, "change", intent)
        assert not isinstance(caught.value, NotSent)
        assert sessions.acted == ["change"]


@promise("effects:session-kept")
async def test_a_write_whose_connection_is_retired_as_its_intent_is_committed_is_still_sent(lost):
    async with lost() as (toolbox, sessions):

        async def retired():
            toolbox._providers["web"]._connection.retire()
            await asyncio.sleep(0.05)

        assert (await call(toolbox, "change", retired)).data == "the answer"
        assert (await call(toolbox, "change", intent)).data == "the answer"
        assert (sessions.acted, sessions.opened) == (["change", "change"], 2)


@promise("effects:session-kept")
async def test_an_error_that_names_the_write_proves_nothing(lost):
    async with lost() as (toolbox, sessions):
        sessions.body, sessions.acts = "own", True
        sessions.lose()
        answer = await call(toolbox, "change", intent)
        assert (answer.success, answer.may_have_acted, sessions.acted) == (False, True, ["change"])
        assert (await call(toolbox, "change", intent)).data == "the answer"


@promise("tools:session-gone")
@LOST
async def test_a_list_is_read_under_another_session(lost, status, body):
    async with lost() as (toolbox, sessions):
        sessions.lose(status, body)
        catalog = await toolbox.catalog("anyone", fresh=True)
        assert (catalog.unavailable, sessions.opened) == ({}, 2)


@promise("tools:session-gone")
async def test_the_older_transport_opens_another_session_too(lost):
    async with lost("/sse", type="sse") as (toolbox, sessions):
        assert (await call(toolbox, "look")).data == "the answer"
        sessions.lose()
        assert (await call(toolbox, "look")).data == "the answer"
        sessions.lose()
        with pytest.raises(NotSent):
            await call(toolbox, "change", intent)
        assert (await call(toolbox, "change", intent)).data == "the answer"
        assert sessions.acted == ["look", "look", "change"]


def rpc(asked, result):
    return {"jsonrpc": "2.0", "id": asked, "result": result}


def event(asked, result, text="data: {}\n\n"):
    return Response(text.replace("{}", json.dumps(rpc(asked, result))), media_type="text/event-stream")


# gensecaihq/Wazuh-MCP-Server#59 (a list), helidon-io/helidon-mcp#65 (no id), microsoft/botbuilder-tools#1046 (a mark)
SHAPES = {
    "a list": lambda asked, result: JSONResponse([rpc(asked, result) | {"error": None}]),
    "no id": lambda asked, result: JSONResponse({"jsonrpc": "2.0", "id": None, "result": result} | {"id": 0}),
    "an id as text": lambda asked, result: JSONResponse(rpc(str(asked), result)),
    "text/plain": lambda asked, result: PlainTextResponse(json.dumps(rpc(asked, result))),
    "no type": lambda asked, result: Response(json.dumps(rpc(asked, result))),
    "201": lambda asked, result: JSONResponse(rpc(asked, result), status_code=201),
    "500 with a result": lambda asked, result: JSONResponse(rpc(asked, result), status_code=500),
    "404 with a result": lambda asked, result: JSONResponse(rpc(asked, result), status_code=404),
    "a mark": lambda asked, result: Response(
        b"\xef\xbb\xbf" + json.dumps(rpc(asked, result)).encode(), media_type="application/json"
    ),
    "UTF-16": lambda asked, result: Response(
        json.dumps(rpc(asked, result)).encode("utf-16"), media_type="application/json"
    ),
    "another charset": lambda asked, result: Response(
        json.dumps(rpc(asked, result | {"_meta": {"x": "\xe9"}}), ensure_ascii=False).encode("latin-1"),
        media_type="application/json; charset=iso-8859-1",
    ),
    "a plain event": event,
    "an event that does not end": lambda asked, result: event(asked, result, "data: {}"),
    "a heartbeat before": lambda asked, result: event(asked, result, "data: ping\n\ndata: {}\n\n"),
    "a log event before": lambda asked, result: event(asked, result, 'data: {"level": 30, "id": 7}\n\ndata: {}\n\n'),
    # envoyproxy/ai-gateway#2218
    "a stream of events that is JSON": lambda asked, result: event(asked, result, "{}"),
    "a stream of events that is JSON on many lines": lambda asked, result: Response(
        b"\xef\xbb\xbf\n" + json.dumps(rpc(asked, result), indent=2).encode() + b"\n\n", media_type="text/event-stream"
    ),
    "a stream of events that is JSON, with 500": lambda asked, result: Response(
        json.dumps(rpc(asked, result)), 500, media_type="text/event-stream"
    ),
    "JSON that is a stream of events": lambda asked, result: Response(
        f": ping\n\nevent: message\ndata: {json.dumps(rpc(asked, result))}\n\n", media_type="application/json"
    ),
    "JSON that is a stream of events, with 500": lambda asked, result: Response(
        f"data: {json.dumps(rpc(asked, result))}\n\n", 500, media_type="application/json"
    ),
    "202 with JSON": lambda asked, result: JSONResponse(rpc(asked, result), status_code=202),
    "202 with an event": lambda asked, result: Response(
        f"data: {json.dumps(rpc(asked, result))}\n\n", 202, media_type="text/event-stream"
    ),
    "202 with JSON as a stream of events": lambda asked, result: Response(
        json.dumps(rpc(asked, result)), 202, media_type="text/event-stream"
    ),
    "a list in an event": lambda asked, result: event(asked, result, "data: [{}]\n\n"),
}


@promise("tools:others-http")
async def test_an_answer_over_http_is_read_as_any_host_reads_it_and_a_write_is_never_lost(lost):
    async with lost() as (toolbox, sessions):
        for name, shape in SHAPES.items():
            sessions.shape = shape
            for tool, before in (("look", None), ("change", intent)):
                assert (await call(toolbox, tool, before)).data == "the answer", (name, tool)


# What is no answer would be none at each try: a read is told at once, a write is unknown.
NONE = {
    "a page": (lambda *_: Response("<html>login</html>", media_type="text/html"), "text/html, which holds no answer"),
    "nothing": (lambda *_: Response(""), "the server answered with nothing"),
    "202": (lambda *_: Response(status_code=202), "202 Accepted"),
    "202 with a page": (lambda *_: Response("<html>", 202, media_type="text/html"), "202 Accepted"),
    "202 with JSON of its own": (lambda *_: JSONResponse({"ok": True}, 202), "holds no answer"),
    "a redirect elsewhere": (
        lambda *_: Response(status_code=307, headers={"location": "http://h.invalid/x"}),
        "h.invalid",
    ),
    "405": (lambda *_: Response(status_code=405), "HTTP 405"),
    "JSON of its own": (lambda *_: JSONResponse({"ok": True}), "application/json, which holds no answer"),
}


@promise("tools:others-http")
async def test_what_is_no_answer_is_named_and_not_waited_out(lost):
    async with lost() as (toolbox, sessions):
        for name, (shape, said) in NONE.items():
            sessions.shape = shape
            before = len(sessions.acted)
            answer = await call(toolbox, "look")
            assert (answer.success, len(sessions.acted)) == (False, before + 1), name
            assert said in answer.error, name
            with pytest.raises(OutcomeUnknown, match=said):
                await call(toolbox, "change", intent)
