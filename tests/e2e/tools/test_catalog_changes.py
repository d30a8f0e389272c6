"""A catalog that changes during a run leads to a new search, and the model sees the new tools."""

from backstay.testing import Reply
from tests.e2e.labelled import DONE
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import assert_no_task_failure, engine
from tests.requirements import promise


@promise("runs:new-search")
async def test_a_changed_catalog_leads_to_a_new_search_at_the_next_step(temporal, tmp_path):
    desk = ScriptedServer(tmp_path / "desk.json", [reads("grow")], {"grow": {"notify": True, "data": {}}})

    def rules(conversation):
        if "desk__grown" in conversation.tools:
            return DONE if conversation.calls("desk__grown") else Reply(calls=[("desk__grown", {})])
        if not conversation.calls("desk__grow"):
            desk.tools = [*desk.tools, reads("grown")]
            desk.answers["grown"] = {"data": {"grown": True}}
            desk.write()
            return Reply(calls=[("desk__grow", {})])
        return Reply(calls=[("read_result", {"ref": "0" * 40})])

    async with engine(temporal, tmp_path, rules, toolbox=toolbox_of_servers(tmp_path, desk=desk)) as opened:
        handle = await opened.start("grow and use what has grown")
        result = await handle.result()
        assert_no_task_failure(await handle.fetch_history())
    assert result["outcome"] == "completed", result
    assert [call["tool"] for call in desk.calls()] == ["grow", "grown"]
    names = [event["name"] for event in result["events"]]
    assert names.count("search.run") == 2
    assert "grown" in desk.calls()[-1]["tool"]


@promise("runs:new-search")
async def test_an_unchanged_catalog_is_searched_once(temporal, tmp_path):
    desk = ScriptedServer(tmp_path / "desk.json", [reads("look")], {"look": {"data": {}}})
    script = [Reply(calls=[("desk__look", {})]), Reply(calls=[("desk__look", {})]), DONE]
    async with engine(temporal, tmp_path, script, toolbox=toolbox_of_servers(tmp_path, desk=desk)) as opened:
        result = await (await opened.start("look twice")).result()
    assert result["outcome"] == "completed"
    assert [event["name"] for event in result["events"]].count("search.run") == 1


@promise("runs:search-gone")
async def test_a_tool_that_is_gone_is_an_error_to_the_model(temporal, tmp_path):
    desk = ScriptedServer(
        tmp_path / "desk.json", [reads("look"), reads("leave")], {"leave": {"notify": True, "data": {}}}
    )

    def rules(conversation):
        if not conversation.calls("desk__leave"):
            desk.tools = [reads("leave")]
            desk.write()
            return Reply(calls=[("desk__leave", {})])
        return DONE if conversation.calls("desk__look") else Reply(calls=[("desk__look", {})])

    async with engine(temporal, tmp_path, rules, toolbox=toolbox_of_servers(tmp_path, desk=desk)) as opened:
        handle = await opened.start("look at what is gone")
        result = await handle.result()
        assert_no_task_failure(await handle.fetch_history())
        assert result["outcome"] == "completed", result
        assert "there is no function 'desk__look'" in opened.model.requests[-1]["messages"][-2]["content"]
    assert desk.calls("look") == []
