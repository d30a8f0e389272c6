"""A plan whose tool changes between the approval and its step is stale, unless the call still fits."""

import pytest

from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import Scripts, ended, engine, pending, update
from tests.requirements import promise

ASKS = "default: {read_only: allow, write_safe: ask, restricted_write: ask}"
NARROW = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"], "additionalProperties": False}
CHANGES = {
    "gone": ([], "stale"),
    "does not fit": ([writes("post", NARROW)], "stale"),
    "still fits": ([writes("post", description="Post a note, and keep a copy.")], ""),
}


@promise("plans:stale")
@pytest.mark.parametrize("change", CHANGES)
async def test_a_plan_is_stale_when_its_tool_changed_after_the_approval_so_that_the_call_no_longer_fits(
    temporal, tmp_path, change
):
    tools, reason = CHANGES[change]
    answers = {"look": {"notify": True, "data": {}}, "post": {"data": {}}}
    desk = ScriptedServer(tmp_path / "desk.json", [reads("look"), writes("post")], answers)
    plan = {"steps": [{"tool": "desk.look"}, {"tool": "desk.post", "arguments": {"n": 1}}]}
    async with engine(temporal, tmp_path, Scripts(), policy=ASKS, toolbox=toolbox_of_servers(tmp_path, desk=desk)) as (
        opened
    ):
        handle = await opened.start({"plan": plan})
        (request,) = await pending(handle)
        desk.tools = [reads("look"), *tools]
        desk.write()
        await update(handle, "decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
        if not reason:
            (again,) = await pending(handle)
            assert "has changed since it was ruled on" in again["rule"]
            await update(handle, "decide", {"request_id": again["id"], "verdict": "approve", "by": "ana"})
        result = await ended(handle)
        shown = await handle.query("plan")
    assert shown["reason"] == reason
    assert shown["state"] == ("FAILED" if reason else "COMPLETED")
    assert len(desk.calls("post")) == (0 if reason else 1)
    last = [event["data"] for event in result["events"] if event["name"] == "plan.changed"][-1]
    assert (last["state"], last["reason"]) == (shown["state"], reason)
    if reason:
        assert result["error"]["type"] == "StepFailed"
        assert shown["steps"][1]["error"].startswith("Tool")
