"""A server whose names clash and whose schemas cost time harms its own calls only, through a whole engine."""

from backstay.testing import Reply
from tests.e2e.labelled import DONE
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import assert_no_task_failure, engine
from tests.requirements import promise

SLOW = {
    "type": "object",
    "properties": {f"p{n}": {"type": "string", "pattern": f"(?i)x{n}" + r"[^\pL]" * 160} for n in range(200)},
}
ARGUMENTS = {f"p{n}": "text" for n in range(200)}


def rules(conversation):
    tool, arguments = ("evil__slow", ARGUMENTS) if "<slow>" in conversation.task else ("desk__look", {})
    # A call that is refused before it is made is answered in the message that follows.
    return DONE if len(conversation.calls()) else Reply(calls=[(tool, arguments)])


@promise("tools:schema-bounds")
async def test_a_server_that_clashes_and_is_slow_to_check_leaves_the_others_working(temporal, tmp_path):
    desk = ScriptedServer(tmp_path / "desk.json", [reads("look")], {"look": {"data": {}}})
    listed = [reads("x.y"), reads("x_y"), reads("slow", SLOW)]
    evil = ScriptedServer(tmp_path / "evil.json", listed, {"slow": {"data": {}}})
    toolbox = toolbox_of_servers(tmp_path, desk=desk, evil=evil)
    async with engine(temporal, tmp_path, rules, toolbox=toolbox) as opened:
        slow, fine = await opened.start("<slow>"), await opened.start("look")
        assert (await fine.result())["outcome"] == "completed"
        assert (await slow.result())["outcome"] == "completed"
        for handle in (slow, fine):
            assert_no_task_failure(await handle.fetch_history())
        said = [str(request["messages"]) for request in opened.model.requests if "<slow>" in str(request["messages"])]
    assert "schema takes too long to check" in said[-1]
    assert len(desk.calls("look")) == 1
    assert evil.calls() == []
