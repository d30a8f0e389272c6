"""What an operator's own check denies nobody is asked about."""

import json
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from temporalio.client import WorkflowUpdateFailedError

from backstay.testing import Reply
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import Scripts, ended, engine, pending, update
from tests.requirements import promise

SAFETY = """
from backstay import Deny, ProposedCall, safety_policy


@safety_policy("bank.pay")
def usual(call: ProposedCall) -> Deny | None:
    return Deny("nobody pays so much") if call.arguments["cents"] > 1000 else None
"""
DENIED = "denied by a safety policy: nobody pays so much"


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        folder, scripts = tmp_path_factory.mktemp("checks"), Scripts()
        answers = {"quote": {"data": {"cents": 90000}}, "pay": {"data": {}}}
        bank = ScriptedServer(folder / "bank.json", [reads("quote"), writes("pay")], answers)
        toolbox = toolbox_of_servers(folder, bank=bank)
        (folder / "safe.py").write_text(SAFETY, encoding="utf-8")
        data = json.loads(toolbox.read_text(encoding="utf-8")) | {"safety": ["safe.py"]}
        toolbox.write_text(json.dumps(data), encoding="utf-8")
        opened = await stack.enter_async_context(engine(temporal, folder, scripts, policy="", toolbox=toolbox))
        yield opened, scripts, bank


def events(result, name):
    return [event for event in result["events"] if event["name"] == name]


@promise("python:checks-first")
@pytest.mark.thorough
async def test_nobody_is_asked_about_a_call_that_a_check_denies(shared):
    opened, scripts, bank = shared
    calls = Reply(calls=[("bank__pay", {"cents": 5000}), ("bank__pay", {"cents": 5})])
    task = scripts.task(calls)
    handle = await opened.start(task)
    (request,) = await pending(handle)
    assert [call["arguments"] for call in request["calls"]] == [{"cents": 5}]
    said = {"request_id": request["id"], "by": "ana", "verdict": "modify"}
    change = {str(request["calls"][0]["index"]): {"verdict": "modify", "arguments": {"cents": 6000}}}
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await update(handle, "decide", said | {"calls": change})
    assert DENIED in refused.value.cause.message
    await update(handle, "decide", said | {"verdict": "approve"})
    result = await ended(handle)
    assert result["outcome"] == "completed"
    assert [call["arguments"] for call in bank.calls("pay")] == [{"cents": 5}]
    assert DENIED in str([r for r in opened.model.requests if task["text"] in str(r["messages"])][-1]["messages"])


@promise("python:checks-first")
async def test_a_plan_is_not_proposed_with_a_step_that_a_check_denies(shared):
    opened, _, bank = shared
    before = len(bank.calls())
    quote = {"tool": "bank.quote", "arguments": {}}
    handle = await opened.start({"plan": {"steps": [quote, {"tool": "bank.pay", "arguments": {"cents": 5000}}]}})
    result = await ended(handle)
    assert (result["outcome"], events(result, "approval.asked")) == ("failed", [])
    assert DENIED in result["error"]["message"]
    assert len(bank.calls()) == before


@promise("python:checks-first")
async def test_a_check_sees_what_a_reference_brings_as_soon_as_it_is_known(shared):
    opened, _, bank = shared
    before = len(bank.calls("pay"))
    quote = {"tool": "bank.quote", "arguments": {}}
    pay = {"tool": "bank.pay", "arguments": {"cents": "${steps.0.result.cents}"}}
    handle = await opened.start({"plan": {"steps": [quote, pay]}})
    (request,) = await pending(handle)
    await update(handle, "decide", {"request_id": request["id"], "by": "ana", "verdict": "approve"})
    result = await ended(handle)
    assert DENIED in result["error"]["message"]
    assert len(bank.calls("pay")) == before
