"""Endpoints without function calling and without strict schemas drive whole runs; what was found out stays known."""

import asyncio
import json

import pytest
import yaml

from backstay.testing import Reply, ScriptedModel
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import assert_no_task_failure, engine, pending
from tests.requirements import promise
from tests.sizes import spread

PRICE = {"input": 1.0, "cached": 0.1, "output": 4.0}
REFUSED = Reply(status=400, code="unsupported_parameter")
CHAT = Reply(text="Let me look at that.")


def way(request):
    """Tell how a request asks."""
    if "tools" in request:
        return "functions"
    schema = request.get("response_format", {}).get("json_schema")
    return "free" if schema is None else "strict" if schema.get("strict") else "loose"


def answers(*refused, ignored=(), script):
    """Return rules of an endpoint that refuses some ways of asking, and ignores others."""

    def rule(conversation):
        asked = way(conversation.body)
        if asked in refused:
            return REFUSED
        if asked in ignored:
            return CHAT
        texts = [str(message.get("content")) for message in conversation.messages if message["role"] == "assistant"]
        said = sum('"calls":[{' in text for text in texts)
        name, arguments = script[min(said, len(script) - 1)]
        made = [{"name": name, "arguments": json.dumps(arguments)}]
        if asked == "functions":
            done = [call.name for call in conversation.calls()]
            return Reply(calls=[script[min(len(done), len(script) - 1)]])
        return Reply(text=json.dumps({"reason": "", "calls": made}))

    return rule


LOOK, ASK, FINISH = ("desk__look", {}), ("ask_person", {"question": "go on?"}), ("finish", {"summary": "seen"})


def listed(folder, model, **said):
    desk = ScriptedServer(folder / "desk.json", [reads("look")], {"look": {"data": {"seen": True}}})
    entry = {"endpoint": "here", "model": "m", "price": PRICE, **said}
    path = folder / "models.yaml"
    data = {"endpoints": {"here": {"base_url": model.base_url}}, "models": {"main": entry}}
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return {"models": path, "toolbox": toolbox_of_servers(folder, desk=desk)}


@promise("models:capabilities")
@pytest.mark.parametrize(
    ("refused", "ignored", "said", "ways"),
    spread(
        [
            ((), (), {}, ["functions", "functions"]),
            ((), ("functions",), {}, ["functions", "strict", "strict"]),
            (("functions",), (), {}, ["functions", "strict", "strict"]),
            (("functions", "strict"), (), {}, ["functions", "strict", "loose", "loose"]),
            (("strict",), ("functions",), {}, ["functions", "strict", "loose", "loose"]),
            (("functions", "strict", "loose"), (), {}, ["functions", "strict", "loose", "free", "free"]),
            (("functions",), (), {"tools": False}, ["strict", "strict"]),
            (("functions", "strict"), (), {"tools": False, "strict": False}, ["loose", "loose"]),
        ],
        4,
    ),
)
async def test_an_endpoint_is_driven_by_what_it_takes_and_nobody_is_asked(
    temporal, tmp_path, refused, ignored, said, ways
):
    async with (
        ScriptedModel(answers(*refused, ignored=ignored, script=[LOOK, FINISH])) as model,
        engine(temporal, tmp_path, [], **listed(tmp_path, model, **said)) as opened,
    ):
        handle = await opened.start({"text": "look", "model": "main"})
        result = await asyncio.wait_for(handle.result(), 150)
        assert_no_task_failure(await handle.fetch_history())
    assert not model.faults
    assert (result["outcome"], result["final_summary"], result["error"]) == ("completed", "seen", None)
    assert [way(request) for request in model.requests] == ways
    assert not [event for event in result["events"] if event["name"] == "model.failed"]
    assert any(event["name"] == "action.called" for event in result["events"])


@promise("models:capabilities")
@pytest.mark.thorough
async def test_what_a_run_has_found_out_of_its_endpoint_outlives_the_worker(temporal, tmp_path):
    rule = answers("functions", "strict", script=[LOOK, ASK, FINISH])
    async with ScriptedModel(rule) as model:
        shared = listed(tmp_path, model) | {"task_queue": "queue-capabilities"}
        async with engine(temporal, tmp_path, [], **shared) as opened:
            handle = await opened.start({"text": "look", "model": "main"})
            (request,) = await pending(handle)
        before = [way(request) for request in model.requests]
        async with engine(temporal, tmp_path, [], **shared):
            decision = {"request_id": request["id"], "verdict": "answer", "answer": "yes", "by": "ana"}
            await handle.execute_update("decide", decision)
            result = await asyncio.wait_for(handle.result(), 150)
    assert before == ["functions", "strict", "loose", "loose"]
    assert [way(request) for request in model.requests[len(before) :]] == ["loose"]
    assert result["outcome"] == "completed"


@promise("models:capabilities")
@pytest.mark.thorough
async def test_a_model_that_is_listed_no_more_is_asked_nowhere_else(temporal, tmp_path):
    async with ScriptedModel(answers(script=[ASK, FINISH])) as model:
        shared = listed(tmp_path, model) | {"task_queue": "queue-unlisted", "transient_seconds": 1}
        async with engine(temporal, tmp_path, [], **shared) as opened:
            handle = await opened.start({"text": "look", "model": "main"})
            (request,) = await pending(handle)
        listing = shared["models"].read_text(encoding="utf-8")
        shared["models"].write_text(listing.replace("main:", "other:"), encoding="utf-8")
        async with engine(temporal, tmp_path, [], **shared) as opened:
            decision = {"request_id": request["id"], "verdict": "answer", "answer": "yes", "by": "ana"}
            await handle.execute_update("decide", decision)
            async with asyncio.timeout(150):
                while (await handle.query("pending") or [request])[0]["kind"] != "outcome":
                    await asyncio.sleep(0.1)
            (fault,) = await pending(handle)
            assert "this worker knows no model 'main'" in fault["question"]
            assert (opened.model.requests, len(model.requests)) == ([], 1)
        shared["models"].write_text(listing, encoding="utf-8")
        async with engine(temporal, tmp_path, [], **shared):
            await handle.execute_update("decide", {"request_id": fault["id"], "verdict": "retry", "by": "ana"})
            result = await asyncio.wait_for(handle.result(), 150)
    assert (result["outcome"], len(model.requests)) == ("completed", 2)
