"""The calls of a program wait for the tasks by which their server answers."""

from backstay.testing import Reply
from tests.engine import assert_no_task_failure, engine
from tests.requirements import promise
from tests.task_server import open_task_server

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
CODE = (
    "import asyncio\n"
    "first = await slow.send(mark='alone', lasts_s=0.2)\n"
    "both = await asyncio.gather(slow.look(mark='one', lasts_s=0.2), slow.look(mark='two', now=True))\n"
    "return [first['mark'], *(found['mark'] for found in both)]"
)


def rules(conversation):
    """Run one program and finish with what it returned."""
    runs = conversation.calls("run_program")
    if runs:
        return Reply(calls=[("finish", {"summary": "done", "outputs": {"answer": runs[0].answer}, "success": True})])
    return Reply(calls=[("run_program", {"code": CODE})])


@promise("tools:server-task-program")
async def test_a_program_waits_for_the_tasks_of_its_calls_and_goes_on_with_their_answers(temporal, sandbox, tmp_path):
    async with open_task_server() as server:
        options = {"sandbox": sandbox, "toolbox": server.toolbox(tmp_path), "policy": POLICY}
        async with engine(temporal, tmp_path, rules, **options) as opened:
            handle = await opened.start({"text": "work"})
            result = await handle.result()
            assert_no_task_failure(await handle.fetch_history())
    assert result["raw_outputs"]["answer"]["data"]["result"] == ["alone", "one", "two"], result
    assert (server.marks("send"), server.marks("look")) == (["alone"], ["one"])
    assert [(effect["state"], effect["send"]) for effect in result["effects"]] == [("applied", 1)]
