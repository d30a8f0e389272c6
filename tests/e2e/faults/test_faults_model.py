"""Faults of the model endpoint: the run is closed, waits for a person, or waits visibly as long as it was asked to."""

import asyncio
import socket

import pytest
import pytest_asyncio

from activities.endpoints import pausing
from activities.model import completion
from backstay.testing import Reply
from tests.e2e.labelled import DONE, Labelled, call, calls
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import assert_no_task_failure, engine, pending
from tests.requirements import promise

KEY = "sk-" + "q" * 30
ROOM = 3000
HTML = Reply(body=b"<html><body>Sign in</body></html>")
SCRIPTS = Labelled(
    html=[HTML, HTML, HTML, DONE],
    refused=[Reply(status=401, text=f"Incorrect API key provided: {KEY}"), DONE],
    quota=[Reply(status=429, code="insufficient_quota"), DONE],
    throttled=[Reply(status=429, headers={"retry-after": "2"}), DONE],
    hour=[Reply(status=429, headers={"retry-after": "600"}), DONE],
    forever=[Reply(status=429, headers={"retry-after": "inf"}), DONE],
    dated=[Reply(status=429, headers={"retry-after": "Wed, 21 Oct 2065 07:28:00 GMT"}), DONE],
    broken=[Reply(status=500), Reply(then="drop"), DONE],
    long=[
        calls(call("desk__look", {}), call("desk__look", {}, "c2")),
        calls(call("desk__look", {}), call("desk__look", {}, "c2")),
        Reply(status=400, code="context_length_exceeded"),
        DONE,
    ],
    azure=[
        calls(call("desk__look", {}), call("desk__look", {}, "c2")),
        calls(call("desk__look", {}), call("desk__look", {}, "c2")),
        Reply(status=400, code="context_length_exceeded", text=f"This model's maximum context length is {ROOM} tokens"),
        DONE,
    ],
    endless=[Reply(status=400, code="context_length_exceeded")] * 4 + [DONE],
)


@pytest.fixture(scope="module", autouse=True)
def _each_run_waits_alone():
    """Let no run wait for what the endpoint, which all of them share, has told another one."""
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(pausing, "LONGEST_PAUSE_S", 0.0)
        yield


@pytest_asyncio.fixture(scope="module")
async def endpoint(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("endpoint")
    rows = {"rows": [{"id": n, "text": "word " * 40} for n in range(9)]}
    desk = ScriptedServer(folder / "desk.json", [reads("look")], {"look": {"data": rows}})
    toolbox = toolbox_of_servers(folder, desk=desk)
    async with engine(temporal, folder, SCRIPTS, toolbox=toolbox, openai_api_key=KEY) as opened:
        yield opened


async def ended(handle):
    result = await handle.result()
    assert_no_task_failure(await handle.fetch_history())
    return result


async def decide(handle, request, verdict="retry"):
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": verdict, "by": "ana"})


async def decided(handle, verdict="retry"):
    (request,) = await pending(handle)
    await decide(handle, request, verdict)
    return request


def timers(history):
    started = [event for event in history.events if event.HasField("timer_started_event_attributes")]
    return [
        (event.timer_started_event_attributes.start_to_fire_timeout.seconds, event.user_metadata.summary.data.decode())
        for event in started
    ]


async def waiting(handle, seconds):
    """Wait until the run waits on a timer of so many seconds; return its summary."""
    async with asyncio.timeout(150):
        while True:
            found = [summary for length, summary in timers(await handle.fetch_history()) if length == seconds]
            if found:
                return found[0]
            await asyncio.sleep(0.1)


@promise("models:model-html")
async def test_a_page_of_html_is_tried_thrice_and_then_asked_about(endpoint):
    handle = await endpoint.start("<html>")
    (request,) = await pending(handle)
    assert request["kind"] == "outcome"
    assert "not a chat completion; check OPENAI_BASE_URL" in request["question"]
    assert SCRIPTS.asked["html"] == 3
    await decide(handle, request)
    assert (await ended(handle))["outcome"] == "completed"


@promise("models:model-401")
async def test_a_refused_key_is_asked_about_at_once_and_never_shown(endpoint):
    handle = await endpoint.start("<refused>")
    (request,) = await pending(handle)
    assert "HTTP 401; check OPENAI_API_KEY" in request["question"]
    assert SCRIPTS.asked["refused"] == 1
    await decide(handle, request)
    result = await ended(handle)
    assert result["outcome"] == "completed"
    history = b"".join(event.SerializeToString() for event in (await handle.fetch_history()).events)
    assert KEY.encode() not in history


@promise("models:model-quota")
async def test_an_exhausted_quota_is_asked_about_at_once(endpoint):
    handle = await endpoint.start("<quota>")
    assert "raise the quota" in (await decided(handle))["question"]
    result = await ended(handle)
    assert result["outcome"] == "completed"


@promise("models:lasting")
async def test_whoever_stops_after_a_fault_ends_the_run(endpoint):
    SCRIPTS.asked["quota"] = 0
    handle = await endpoint.start("<quota>")
    await decided(handle, "reject")
    result = await ended(handle)
    assert (result["outcome"], result["error"]["type"]) == ("failed", "ModelRefused")


@promise("models:model-429")
async def test_retry_after_is_a_timer_that_says_so_and_costs_nothing(endpoint):
    handle = await endpoint.start("<throttled>")
    result = await ended(handle)
    assert result["outcome"] == "completed"
    assert timers(await handle.fetch_history()) == [(2, '"the model asked to wait 2 s"')]
    assert SCRIPTS.asked["throttled"] == 2


@promise("models:model-429")
async def test_a_long_retry_after_shows_as_waiting(endpoint):
    handle = await endpoint.start("<hour>")
    assert "the model asked to wait 600 s" in await waiting(handle, 600)
    assert (await handle.query("status"))["state"] == "waiting"
    await handle.cancel()
    await asyncio.wait([asyncio.ensure_future(handle.result())])
    assert_no_task_failure(await handle.fetch_history())


@promise("models:model-429")
async def test_a_retry_after_without_end_or_with_a_date_is_bounded(endpoint):
    for label in ("forever", "dated"):
        handle = await endpoint.start(f"<{label}>")
        assert "asked to wait 3600 s" in await waiting(handle, 3600)
        await handle.cancel()
        await asyncio.wait([asyncio.ensure_future(handle.result())])
        assert_no_task_failure(await handle.fetch_history())


@promise("models:budget-charged")
async def test_errors_and_dropped_connections_are_charged_and_tried_again(endpoint):
    result = await ended(await endpoint.start("<broken>"))
    assert result["outcome"] == "completed"
    # Both lost answers are charged as reserved, which is more than all answers that came.
    billed = sum(model["cost_usd"] for model in result["usage"]["models"].values())
    assert result["usage"]["llm_cost_usd"] > 2 * billed


@promise("models:model-long")
async def test_a_context_that_is_too_long_is_sent_again_shorter_and_unbilled(endpoint):
    before = len(endpoint.model.requests)
    result = await ended(await endpoint.start("<long>"))
    assert result["outcome"] == "completed"
    *_, refused, shorter = (len(str(request["messages"])) for request in endpoint.model.requests[before:])
    assert shorter < refused
    assert result["usage"]["steps"] == 3
    billed = sum(model["cost_usd"] for model in result["usage"]["models"].values())
    assert result["usage"]["llm_cost_usd"] == round(billed, 6)


@promise("models:billed-too-long")
async def test_a_context_that_is_too_long_is_charged_where_that_is_billed_and_asked_again_shorter(
    temporal, tmp_path, monkeypatch
):
    monkeypatch.setattr(completion, "_BILLS_LONG_REQUESTS", ("127.0.0.1",))
    rows = {"rows": [{"id": n, "text": "word " * 40} for n in range(9)]}
    desk = ScriptedServer(tmp_path / "desk.json", [reads("look")], {"look": {"data": rows}})
    async with engine(temporal, tmp_path, SCRIPTS, toolbox=toolbox_of_servers(tmp_path, desk=desk)) as opened:
        result = await ended(await opened.start("<azure>"))
        *_, refused, shorter = (len(str(request["messages"])) for request in opened.model.requests)
    assert result["outcome"] == "completed"
    assert shorter < refused
    billed = sum(model["cost_usd"] for model in result["usage"]["models"].values())
    # What was reserved for the refused one is charged.
    assert result["usage"]["llm_cost_usd"] > billed


@promise("models:never-short")
async def test_a_context_that_nothing_makes_short_enough_is_asked_about(endpoint):
    handle = await endpoint.start("<endless>")
    request = await decided(handle)
    assert "the request is longer than the model takes" in request["question"]
    result = await ended(handle)
    assert result["outcome"] == "completed"


@promise("models:model-gone")
async def test_an_unreachable_endpoint_costs_nothing_and_is_asked_about(temporal, tmp_path):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        toolbox = toolbox_of_servers(tmp_path)
        async with engine(temporal, tmp_path, [], toolbox=toolbox, openai_base_url=address) as opened:
            handle = await opened.start("anything")
            request = await decided(handle, "reject")
            assert "the model endpoint does not answer" in request["question"]
            result = await ended(handle)
    assert (result["outcome"], result["error"]["type"]) == ("failed", "ModelUnavailable")
    assert result["usage"]["llm_cost_usd"] == 0
