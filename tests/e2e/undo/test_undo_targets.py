"""What an undo is aimed at is what an answer names: one that names nothing leaves the effect to people."""

import pytest

from tests.e2e.scripted_server import ScriptedServer, toolbox_of_servers, writes
from tests.engine import Scripts, ended, engine
from tests.requirements import promise

NAMES_NOTHING = {"null": None, "nothing": "", "object": {"a": 1}, "true": True, "blank": " "}
NAMES = {"text": "a1", "number": 7}
AS_A_WHOLE = {"null", "nothing", "blank"}


@promise("undo:target")
@pytest.mark.parametrize("whole", [False, True])
async def test_an_answer_that_names_nothing_is_undone_by_people_and_by_no_call(temporal, tmp_path, whole):
    answers = {name: {"data": {"id": value}} for name, value in (NAMES_NOTHING | NAMES).items()}
    target = "{{ result.id }}" if whole else "/items/{{ result.id }}"
    undo = {"undo": {"tool": "remove", "arguments": {"path": target}}}
    server = ScriptedServer(
        tmp_path / "shop.json",
        [writes(name) for name in (*answers, "remove")],
        answers | {"remove": {"data": {"removed": True}}},
        dict.fromkeys(answers, undo),
    )
    named = toolbox_of_servers(tmp_path, shop=server)
    steps = [{"tool": f"shop.{name}", "arguments": {}} for name in answers]
    async with engine(temporal, tmp_path, Scripts(), policy="allow: ['shop.*']", toolbox=named) as opened:
        handle = await opened.start({"plan": {"steps": steps}})
        assert (await ended(handle))["outcome"] == "completed"
        undone = await ended(await opened.undo(handle.id))

    parked = {name for name in NAMES_NOTHING if not whole or name in AS_A_WHOLE}
    removed = [call["arguments"]["path"] for call in server.calls("remove")]
    assert removed == [
        value if whole else f"/items/{value}"
        for name, value in reversed((NAMES_NOTHING | NAMES).items())
        if name not in parked
    ]
    assert undone["outcome"] == "rollback_failed"
    left = {each["tool"]: each["detail"] for each in undone["undone"] if each["state"] == "parked"}
    assert set(left) == {f"shop.{name}" for name in parked}
    assert all(detail.startswith("its compensation could not be prepared; undo it by hand") for detail in left.values())
