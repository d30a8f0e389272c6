"""What informs the model and people: digests with whole entries, servers that start late, servers that are missing."""

import asyncio
import json

import pytest

from backstay.testing import Reply
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import ended, engine
from tests.requirements import promise

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
VARIANTS = {
    str(9612497925 + n * 777): {
        "item_id": str(9612497925 + n * 777),
        "options": {"color": "blue", "size": "M", "material": "cotton"},
        "available": n % 2 == 0,
        **{f"note_{k}": "of no interest " * 20 for k in range(9)},
        "unit_price": 46.85 + n,
    }
    for n in range(60)
}
LOOK = Reply(calls=[("desk__look", {})])
DONE = Reply(calls=[("finish", {"summary": "done"})])


def look_then_finish(conversation):
    if "desk__look" in conversation.tools and not conversation.calls("desk__look"):
        return LOOK
    return DONE


def look_when_it_can(conversation):
    if "desk__look" in conversation.tools:
        return look_then_finish(conversation)
    return Reply(calls=[("search_tools", {"query": "look"})])


def desk_in(folder, answer, **more):
    return ScriptedServer(folder / "desk.json", [reads("look")], {"look": {"data": answer}}, **more)


def with_patience(toolbox, **entry):
    """Add to the entry of the desk in a toolbox file."""
    data = json.loads(toolbox.read_text(encoding="utf-8"))
    data["mcpServers"]["desk"] |= entry
    toolbox.write_text(json.dumps(data), encoding="utf-8")
    return toolbox


async def searches(handle, count):
    """Wait until a run has searched so many times."""
    async with asyncio.timeout(150):
        while True:
            events = (await handle.fetch_history()).events
            made = [event.activity_task_scheduled_event_attributes.activity_type.name for event in events]
            if made.count("search_tools") >= count:
                return
            await asyncio.sleep(0.1)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("workflows.run_task.PATIENCE_S", 0.2)
    monkeypatch.setattr("toolbox.mcp.provider._PATIENCE_S", 0.2)
    # What has answered before is given up soon; these servers have not.
    monkeypatch.setattr("toolbox.mcp.provider.CONNECT_S", 0.2)


@promise("context:entries-task")
async def test_a_cut_object_keyed_by_ids_shows_entries_with_the_field_that_the_task_names(temporal, tmp_path):
    toolbox = toolbox_of_servers(tmp_path, desk=desk_in(tmp_path, {"name": "T-Shirt", "variants": VARIANTS}))
    options = {"policy": POLICY, "toolbox": toolbox, "digest_characters": 1500}
    async with engine(temporal, tmp_path, look_then_finish, **options) as opened:
        await ended(await opened.start({"text": "What are the prices of all T-Shirts?"}))
        told = next(m["content"] for m in opened.model.requests[-1]["messages"] if m["role"] == "tool")
    digest = json.loads(told)
    assert len(told) < 1600
    assert digest["sample"]["9612497925"]["unit_price"] == 46.85
    assert digest["aggregates"]["columns"]["unit_price"]["max"] == 105.85
    assert digest["aggregates"]["beside"] == {"name": "T-Shirt"}


@promise("tools:late")
@pytest.mark.parametrize("entry", [{}, {"initTimeout": 60_000}], ids=["by itself", "as it says"])
async def test_a_server_that_starts_late_is_waited_for_as_its_init_timeout_says(temporal, tmp_path, impatient, entry):
    desk = desk_in(tmp_path, {"seen": 1}, starts="open")
    toolbox = with_patience(toolbox_of_servers(tmp_path, desk=desk), **entry)
    async with engine(temporal, tmp_path, look_then_finish, policy=POLICY, toolbox=toolbox) as opened:
        handle = await opened.start({"text": "look"})
        await searches(handle, 3)
        assert not opened.model.requests
        (tmp_path / "open").touch()
        result = await ended(handle)
        offered = [tool["function"]["name"] for tool in opened.model.requests[0]["tools"]]
    assert result["outcome"] == "completed"
    assert "desk__look" in offered
    assert len(desk.calls()) == 1
    assert "tools.missing" not in [event["name"] for event in result["events"]]


@promise("tools:named-missing")
async def test_a_server_that_is_missing_is_named_to_people_and_to_the_model_once(temporal, tmp_path):
    toolbox = with_patience(toolbox_of_servers(tmp_path, desk=desk_in(tmp_path, {})), command="no-such-command")
    rounds = [Reply(calls=[("search_tools", {"query": "look"})]), DONE]
    async with engine(temporal, tmp_path, rounds, policy=POLICY, toolbox=toolbox) as opened:
        result = await ended(await opened.start({"text": "look"}))
        told = json.dumps(opened.model.requests[-1]["messages"])
    (missing,) = [event for event in result["events"] if event["name"] == "tools.missing"]
    assert missing["text"].startswith("desk cannot be used: the command 'no-such-command' was not found")
    assert missing["data"]["provider"] == "desk"
    assert told.count("The tools of desk cannot be used now: the command 'no-such-command' was not found") == 1


@promise("tools:late")
@pytest.mark.thorough
async def test_a_server_that_comes_back_is_found_and_named(temporal, tmp_path, impatient):
    desk = desk_in(tmp_path, {"seen": 1}, starts="open")
    toolbox = with_patience(toolbox_of_servers(tmp_path, desk=desk), initTimeout=3)
    async with engine(temporal, tmp_path, look_when_it_can, policy=POLICY, toolbox=toolbox) as opened:
        handle = await opened.start({"text": "look", "budget": {"max_steps": 1000, "max_llm_cost_usd": None}})
        await opened.model.asked(1)
        (tmp_path / "open").touch()
        result = await ended(handle)
    names = [event["name"] for event in result["events"] if event["name"].startswith("tools.")]
    assert names in (["tools.missing", "tools.back"], ["tools.back"])
    assert len(desk.calls()) == 1
