"""Faults of tools and their servers: an error to the model, a repair, or a question; never a second send."""

import asyncio
import json
import resource

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests.e2e.labelled import DONE, Labelled
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import assert_no_task_failure, engine, pending
from tests.requirements import promise

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\nask: [desk.changing]\n"
CHECK = {"tool": "journal", "arguments": {"id": "{{ effect.id }}"}}


def call_of(tool, **arguments):
    return [Reply(calls=[(f"desk__{tool}", arguments)]), DONE]


SCRIPTS = Labelled(
    huge=call_of("huge"),
    slow=call_of("slow"),
    stuck=call_of("stuck"),
    checked=call_of("checked"),
    idempotent=call_of("idempotent"),
    mortal=call_of("mortal"),
    dying=call_of("dying"),
    killing=call_of("killing"),
    noisy=call_of("noisy"),
    changing=call_of("changing", amount=7),
    absent=[Reply(calls=[("absent__anything", {})]), DONE],
    missing=[Reply(calls=[("search_tools", {"query": "slow"})]), DONE],
)


@pytest_asyncio.fixture(scope="module")
async def office(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    names = ("stuck", "checked", "idempotent", "killing", "changing")
    tools = [*map(reads, ("huge", "slow", "mortal", "dying", "noisy", "journal")), *map(writes, names)]
    answers = {
        "huge": {"megabytes": 20},
        "slow": {"hang": True},
        "stuck": {"hang": True},
        "checked": {"die": True},
        "idempotent": [{"die": True}, {"data": {"done": True}}],
        "mortal": [{"die": True}, {"data": {"fine": True}}],
        "dying": {"die": True},
        "killing": {"die": True},
        "noisy": {"garbage": "<<< no JSON at all", "data": {"fine": True}},
        "journal": {"data": {"found": True}},
        "changing": {"data": {"done": True}},
    }
    declared = {
        "checked": {"verify": {**CHECK, "applied_if": "{{ result.found }}"}},
        "idempotent": {"idempotent": True, "idempotency_ttl": 600},
    }
    desk = ScriptedServer(folder / "desk.json", tools, answers, declared)
    toolbox = toolbox_of_servers(folder, desk=desk)
    data = json.loads(toolbox.read_text(encoding="utf-8"))
    data["mcpServers"]["absent"] = {"command": "no-such-command-anywhere"}
    toolbox.write_text(json.dumps(data), encoding="utf-8")
    short = {"request_deadline_seconds": 3, "transient_seconds": 4, "settle_after_seconds": 0.2}
    async with engine(temporal, folder, SCRIPTS, policy=POLICY, toolbox=toolbox, **short) as opened:
        yield opened, desk


async def ended(handle):
    result = await handle.result()
    history = await handle.fetch_history()
    assert_no_task_failure(history)
    return result, sum(event.ByteSize() for event in history.events)


async def decided(handle, verdict):
    (request,) = await pending(handle)
    decision = {"request_id": request["id"], "verdict": verdict, "by": "ana"}
    await handle.execute_update("decide", decision)
    return request


def last_answer(opened, label):
    """Return what the model was told last of a run."""
    requests = [request for request in opened.model.requests if f"<{label}>" in json.dumps(request["messages"])]
    return [message["content"] for message in requests[-1]["messages"] if message["role"] == "tool"][-1]


@promise("context:20mb")
@pytest.mark.thorough
async def test_twenty_megabytes_leave_a_few_kilobytes_of_history(office):
    opened, _ = office
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    handle = await opened.start("<huge>")
    result, size = await ended(handle)
    assert result["outcome"] == "completed"
    events = (await handle.fetch_history()).events
    own = [
        event for event in events if b"desk.huge" in event.SerializeToString() or b'"ref"' in event.SerializeToString()
    ]
    assert sum(event.ByteSize() for event in own) < 10_000
    assert size < 40_000
    assert len(last_answer(opened, "huge")) < 17_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500 * 1024


@promise("recovery:tool-hangs")
async def test_a_read_that_hangs_is_an_error_to_the_model(office):
    opened, desk = office
    result, _ = await ended(await opened.start("<slow>"))
    assert result["outcome"] == "completed"
    assert "no answer within 3 s" in last_answer(opened, "slow")
    assert len(desk.calls("slow")) == 1


@promise("recovery:tool-hangs")
@pytest.mark.thorough
async def test_an_effect_that_hangs_is_asked_about_and_not_sent_again(office):
    opened, desk = office
    handle = await opened.start("<stuck>")
    request = await decided(handle, "did_not_happen")
    assert request["kind"] == "outcome"
    assert request["options"] == ["happened", "did_not_happen", "retry"]
    result, _ = await ended(handle)
    assert result["outcome"] == "completed"
    assert "it did not happen (ana says so)" in last_answer(opened, "stuck")
    assert len(desk.calls("stuck")) == 1


@promise("effects:verify")
async def test_a_declared_check_settles_an_effect_whose_server_died(office):
    opened, desk = office
    result, _ = await ended(await opened.start("<checked>"))
    assert result["outcome"] == "completed"
    assert [effect["state"] for effect in result["effects"]] == ["applied"]
    assert len(desk.calls("checked")) == 1


@promise("effects:idempotent")
async def test_an_effect_declared_idempotent_is_sent_again_under_the_same_id(office):
    opened, desk = office
    result, _ = await ended(await opened.start("<idempotent>"))
    assert result["outcome"] == "completed"
    assert len({call["meta"]["backstay/effect-id"] for call in desk.calls("idempotent")}) == 1
    assert len(desk.calls("idempotent")) == 2


@promise("recovery:read-again")
async def test_a_read_whose_server_died_once_is_made_again(office):
    opened, desk = office
    result, _ = await ended(await opened.start("<mortal>"))
    assert result["outcome"] == "completed"
    assert "fine" in last_answer(opened, "mortal")
    assert len(desk.calls("mortal")) == 2


@promise("recovery:read-dies-always")
async def test_a_read_whose_server_dies_every_time_is_asked_about(office):
    opened, _ = office
    handle = await opened.start("<dying>")
    request = await decided(handle, "reject")
    assert "A fault lasts: call_tool" in request["question"]
    result, _ = await ended(handle)
    assert (result["outcome"], result["error"]["type"]) == ("failed", "ToolUnavailable")


@promise("recovery:tool-dies")
@pytest.mark.thorough
async def test_an_effect_whose_server_died_in_mid_call_is_a_question(office):
    opened, desk = office
    handle = await opened.start("<killing>")
    await decided(handle, "happened")
    result, _ = await ended(handle)
    assert [effect["state"] for effect in result["effects"]] == ["applied"]
    assert len(desk.calls("killing")) == 1


@promise("recovery:tool-dies")
async def test_garbage_between_the_answers_is_passed_over(office):
    opened, _ = office
    result, _ = await ended(await opened.start("<noisy>"))
    assert result["outcome"] == "completed"
    assert "fine" in last_answer(opened, "noisy")


@promise("recovery:tool-dies")
async def test_a_missing_server_takes_only_its_own_tools_away(office):
    opened, _ = office
    for label in ("absent", "missing"):
        result, _ = await ended(await opened.start(f"<{label}>"))
        assert result["outcome"] == "completed", label
    assert "there is no function 'absent__anything'" in last_answer(opened, "absent")
    assert "desk.slow" in last_answer(opened, "missing")


@promise("recovery:tool-changed")
async def test_a_tool_that_changes_after_approval_is_asked_about_again(office):
    opened, desk = office
    handle = await opened.start("<changing>")
    (first,) = await pending(handle)
    desk.tools = [
        writes("changing", description="Do something else.") if tool["name"] == "changing" else tool
        for tool in desk.tools
    ]
    desk.answers["noisy"] = {"notify": True, "data": {}}
    desk.write()
    SCRIPTS.asked["noisy"] = 0
    await ended(await opened.start("<noisy>"))
    await handle.execute_update("decide", {"request_id": first["id"], "verdict": "approve", "by": "ana"})
    async with asyncio.timeout(150):
        while not (found := [request for request in await handle.query("pending") if request["id"] != first["id"]]):
            await asyncio.sleep(0.1)
    assert desk.calls("changing") == []
    assert "definition has changed" in found[0]["rule"]
    await handle.execute_update("decide", {"request_id": found[0]["id"], "verdict": "approve", "by": "ana"})
    result, _ = await ended(handle)
    assert result["outcome"] == "completed"
    assert [call["arguments"] for call in desk.calls("changing")] == [{"amount": 7}]
