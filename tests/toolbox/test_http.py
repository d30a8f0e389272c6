import socket

import pytest

from backstay.errors import OutcomeUnknown, ToolUnavailable
from tests.requirements import promise
from toolbox.mcp.event_stream import EventEnds
from toolbox.providers.provider import NotSent


async def intent():
    """Stand for a committed intent."""


async def call(toolbox, name, before_send=intent):
    definition = (await toolbox.catalog("anyone")).definitions[f"web.{name}"]
    return await toolbox.call(definition, {}, deadline_s=10, effect_id="w/r/1", before_send=before_send)


@pytest.fixture
async def toolbox(web, opened, tmp_path):
    async with opened(tmp_path, {"mcpServers": {"web": {"url": f"{web.url}/mcp"}}}) as found:
        yield found


@promise("effects:not-sent")
@pytest.mark.parametrize("kind", ["http", "json", "null"])
@pytest.mark.parametrize("status", [401, 403, 407, 429])
async def test_these_statuses_without_a_body_that_names_the_call_prove_that_nothing_was_sent(toolbox, kind, status):
    said = "over quota" if kind == "null" and status != 401 else f"{status}"
    with pytest.raises(NotSent, match=said):
        await call(toolbox, f"{kind}_{status}")


@promise("tools:retry-after")
@pytest.mark.parametrize(("said", "seconds"), [("7", 7), ("nan", None), ("inf", 86_400), ("-1", None), ("soon", None)])
async def test_a_server_that_asks_to_wait_is_heard(toolbox, web, monkeypatch, said, seconds):
    monkeypatch.setattr(web, "waits", [said])
    with pytest.raises(NotSent) as caught:
        await call(toolbox, "http_429")
    assert caught.value.retry_after_s == seconds


@promise("effects:else-unknown")
@pytest.mark.parametrize("status", [200, 202, 302, 404, 500, 502, 503])
async def test_any_other_status_without_an_answer_is_unknown(toolbox, status):
    with pytest.raises(OutcomeUnknown):
        await call(toolbox, f"http_{status}")


@promise("effects:else-unknown")
@pytest.mark.parametrize("name", ["broken", "packed", "packed_twice", "packed_old", "rpc_500", "rpc_503"])
async def test_an_answer_that_cannot_be_believed_is_unknown(toolbox, name):
    with pytest.raises(OutcomeUnknown):
        await call(toolbox, name)


@promise("tools:tool-error")
@pytest.mark.parametrize("name", ["rpc_401", "rpc_429", "params_404", "params_500"])
async def test_a_json_rpc_error_is_the_servers_own_answer(toolbox, name):
    answer = await call(toolbox, name)
    assert answer.success is False
    assert answer.error in {"over quota", "bad"}


@promise("tools:odd-codings")
@pytest.mark.parametrize("name", ["coded_none", "coded_charset", "coded_empty", "coded_twice", "coded_unknown"])
async def test_an_answer_that_only_says_that_it_is_encoded_is_read(toolbox, name):
    assert (await call(toolbox, name)).data == "fine"


@promise("tools:endless-answers")
@pytest.mark.parametrize("name", ["drip", "drip_401", "drip_500", "event"])
async def test_an_answer_that_never_ends_is_read_until_the_deadline_only(toolbox, web, eventually, name):
    web.left.clear()
    definition = (await toolbox.catalog("anyone")).definitions[f"web.{name}"]
    with pytest.raises(OutcomeUnknown) as caught:
        await toolbox.call(definition, {}, deadline_s=1, effect_id="w/r/1", before_send=intent)
    assert caught.value.facts["timed_out"]
    await eventually(lambda: web.left == [name])
    assert (await call(toolbox, "fine")).data == "fine"


@promise("tools:endless-answers")
async def test_an_answer_of_any_size_is_read_up_to_the_cap_only(toolbox, web, eventually, monkeypatch):
    monkeypatch.setattr("toolbox.mcp.http_transport.CAP", 4_000_000)
    web.left.clear()
    with pytest.raises(OutcomeUnknown, match="larger than"):
        await call(toolbox, "flood")
    await eventually(lambda: web.left == ["flood"])
    assert (await call(toolbox, "fine")).data == "fine"


@promise("tools:sent-once")
async def test_every_refusal_was_sent_once_and_leaves_the_client_usable(toolbox, web):
    before = len(web.calls)
    for name in ("http_401", "http_500", "broken"):
        with pytest.raises((NotSent, OutcomeUnknown)):
            await call(toolbox, name)
    assert web.calls[before:] == ["http_401", "http_500", "broken"]
    assert (await call(toolbox, "fine")).data == "fine"


@promise("tools:http")
async def test_headers_are_filled_from_the_environment_and_never_shown(web, opened, tmp_path):
    entry = {"url": f"{web.url}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "type": "http"}
    async with opened(tmp_path, {"mcpServers": {"web": entry}}, TOKEN="token-of-the-test") as toolbox:
        await toolbox.catalog("anyone")
        assert web.headers[-1]["authorization"] == "Bearer token-of-the-test"
        assert "token-of-the-test" in toolbox.secrets
        assert "token-of-the-test" not in repr(vars(toolbox) | {"secrets": None})


@promise("tools:login")
async def test_a_server_that_wants_credentials_is_unavailable_and_says_so(web, opened, tmp_path):
    async with opened(tmp_path, {"mcpServers": {"web": {"url": f"{web.url}/closed"}}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert catalog.unavailable["web"].startswith("needs login: the server answered HTTP 401")


@promise("tools:login")
async def test_a_server_that_wants_credentials_in_mid_run_becomes_unavailable_and_its_tools_stay_listed(toolbox):
    before = await toolbox.catalog("anyone")
    assert before.unavailable == {}
    with pytest.raises(NotSent, match="needs login"):
        await call(toolbox, "http_401")
    catalog = await toolbox.catalog("anyone")
    (hit,) = [hit for hit in catalog.search("web.fine") if hit.tool == "web.fine"]
    assert (hit.available, hit.reason.partition(":")[0]) == (False, "needs login")


@promise("tools:missing")
async def test_a_refused_connection_is_a_reason_and_not_an_error(opened, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/mcp"
        async with opened(tmp_path, {"mcpServers": {"web": {"url": url}}}) as toolbox:
            catalog = await toolbox.catalog("anyone")
    assert "ConnectError" in catalog.unavailable["web"]
    assert catalog.definitions == {}


@promise("effects:before-intent")
async def test_a_server_gone_before_the_intent_is_unavailable_and_the_intent_is_not_committed(web, opened, tmp_path):
    import asyncio

    import uvicorn

    server = uvicorn.Server(uvicorn.Config(web.app, host="127.0.0.1", port=0, log_level="critical", ws="none"))
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(10):
        while not server.started:
            await asyncio.sleep(0.02)
    url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    committed = []

    async def commit():
        committed.append(1)

    async with opened(tmp_path, {"mcpServers": {"web": {"url": url}}}) as toolbox:
        await toolbox.catalog("anyone")
        server.should_exit = True
        await serving
        with pytest.raises(ToolUnavailable):
            await call(toolbox, "fine", commit)
    assert committed == []


@promise("tools:kept-open")
async def test_a_stream_that_is_kept_open_by_comments_alone_brings_a_late_answer(web, opened, tmp_path, monkeypatch):
    monkeypatch.setattr("toolbox.mcp.http_transport.PIECE_S", web.LATE_S * 2 / 3)
    async with opened(tmp_path, {"mcpServers": {"web": {"url": f"{web.url}/sse", "type": "sse"}}}) as older:
        answer = await call(older, "late")
    assert (answer.success, answer.data) == (True, "fine")


ENDS = {
    "comments": ([b": ping\n", b": pi", b"ng\r\n", b":\r"], [True, False, True, True]),
    "a comment within an event": ([b"data: x\n", b": ping\n", b"\n", b": ping\n"], [False, False, True, True]),
    "an end that two chunks share": ([b"data: x\r", b"\ndata: y\r", b"\n", b"\r"], [False, False, False, True]),
    "an event behind another": ([b"data: x\n\nda", b"ta: y\n", b": ping\n"], [True, False, False]),
    "a line without an end": ([b": ", b"x" * 100, b""], [False, False, False]),
}


@promise("tools:kept-open")
@pytest.mark.parametrize("case", ENDS)
def test_a_stream_pauses_behind_events_and_behind_comments_between_them(case):
    chunks, reached = ENDS[case]
    ends = EventEnds()
    assert [ends.reached_in(chunk) for chunk in chunks] == reached


@promise("tools:answer-in-stream")
@pytest.mark.parametrize("name", ["open_200", "open_400", "open_500"])
async def test_an_answer_in_a_stream_counts_at_once_whatever_its_status_and_however_long_it_stays_open(toolbox, name):
    answer = await call(toolbox, name)
    assert (answer.success, answer.data) == (True, "fine")
