"""How a model is asked, with functions or with a JSON Schema, follows from evidence that no odd answer turns."""

import asyncio
import json
from contextlib import suppress

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests.e2e.labelled import DONE, Labelled, call, calls
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import PRICES, assert_no_task_failure, engine, pending
from tests.requirements import promise

CHAT = Reply(text="Sure, let me look at that for you!")
LOOK = calls(call("desk__look", {}))
MODELS = {f"{name}-model": PRICES["scripted"] for name in ("fresh", "known", "deaf", "strict")}


def in_json(*made):
    said = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in made]
    return Reply(text=json.dumps({"reason": "", "calls": said}))


IN_JSON = in_json(("finish", {"summary": "seen"}))


def strict(conversation):
    if "response_format" in conversation.body:
        return Reply(status=400, code="unsupported_parameter")
    return DONE if any(message["role"] == "assistant" for message in conversation.messages) else CHAT


def deaf(conversation):
    return IN_JSON if "response_format" in conversation.body else CHAT


SCRIPTS = Labelled(
    chatty=[CHAT, IN_JSON],
    plain=[LOOK, DONE],
    chattylater=[CHAT, LOOK, DONE],
    beside=[calls(call("desk__look", {})), DONE],
    strict=strict,
    deaf=deaf,
)


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wire")
    desk = ScriptedServer(folder / "desk.json", [reads("look")], {"look": {"data": {"seen": True}}})
    toolbox = toolbox_of_servers(folder, desk=desk)
    async with engine(temporal, folder, SCRIPTS, toolbox=toolbox, prices=PRICES | MODELS) as made:
        yield made


async def wires(opened, label, model):
    """Run a script; return for each of its requests whether it offered functions, and the Result."""
    asked = len(opened.model.requests)
    handle = await opened.start({"text": f"<{label}>", "model": f"{model}-model"})
    result = await asyncio.wait_for(handle.result(), 150)
    assert_no_task_failure(await handle.fetch_history())
    return ["tools" in request for request in opened.model.requests[asked:]], result


@promise("models:wire")
async def test_one_chatty_first_answer_changes_the_wire_of_no_other_run(opened):
    offered, result = await wires(opened, "chatty", "fresh")
    assert (offered, result["final_summary"]) == ([True, False], "seen")
    offered, result = await wires(opened, "plain", "fresh")
    assert (offered, result["outcome"]) == ([True, True], "completed")


@promise("models:wire")
async def test_a_model_known_to_call_functions_is_asked_for_them_again_after_chatting(opened):
    assert (await wires(opened, "beside", "known"))[0] == [True, True]
    offered, result = await wires(opened, "chattylater", "known")
    assert (offered, result["outcome"]) == ([True, True, True], "completed")


@promise("models:wire")
@pytest.mark.thorough
async def test_an_endpoint_that_ignored_functions_in_two_runs_is_asked_for_json_from_the_start(opened):
    seen = [(await wires(opened, "deaf", "deaf"))[0] for _ in range(4)]
    assert seen == [[True, False], [True, False], [False], [False]]


@promise("models:wire")
async def test_an_endpoint_that_takes_no_json_schema_is_asked_for_functions_again_and_nobody_is_asked(opened):
    offered, result = await wires(opened, "strict", "strict")
    assert (offered, result["outcome"]) == ([True, False, False, True], "completed")
    assert not [event for event in result["events"] if event["name"] == "model.failed"]


@promise("models:bounded")
@pytest.mark.thorough
async def test_an_endpoint_whose_answer_never_ends_is_a_fault_that_is_asked_about(temporal, tmp_path):
    async def answer(reader, writer):
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n")
            while True:
                writer.write(b"x" * 65_536)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    toolbox = toolbox_of_servers(tmp_path)
    async with server, engine(temporal, tmp_path, [], toolbox=toolbox, openai_base_url=address) as made:
        handle = await made.start("anything")
        (request,) = await pending(handle)
        assert "it answers with more than" in request["question"]
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
        result = await asyncio.wait_for(handle.result(), 150)

    assert (result["outcome"], result["error"]["type"]) == ("failed", "ModelUnavailable")
    # Each of the answers may have been billed.
    assert result["usage"]["llm_cost_usd"] > 0
