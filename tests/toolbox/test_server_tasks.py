"""Tasks by which servers answer: offered where somebody follows them, and bounded whatever a server says of them."""

import pytest
import pytest_asyncio

from backstay.errors import OutcomeUnknown
from tests.requirements import promise
from tests.task_server import ASKED, EXTENSION, open_task_server
from toolbox.providers.elicitation import InputResponse
from toolbox.providers.provider import Caller
from toolbox.providers.server_tasks import TaskGone, TaskRequest, marks_of

WHOLE = {"content": [{"type": "text", "text": "fine"}]}


@pytest_asyncio.fixture(scope="module")
async def slow(tmp_path_factory, opened):
    folder = tmp_path_factory.mktemp("slow")
    async with open_task_server() as server:
        entry = {"mcpServers": {"slow": {"url": f"{server.address}/mcp"}}, "providers": {"slow": {"trusted": True}}}
        async with opened(folder, entry) as toolbox:
            yield toolbox, server


async def nothing():
    """Stand for the intent of a write."""


async def call(toolbox, name="slow.send", *, follows=True, **arguments):
    catalog = await toolbox.catalog("anyone", patience_s=10)
    sent = {"before_send": nothing} if name == "slow.send" else {}
    return await toolbox.call(catalog.definitions[name], arguments, deadline_s=10, follows=follows, **sent)


async def get(toolbox, task, **more):
    request = {"action": "get", "deadline_s": 5.0, **more}
    return await toolbox.follow("slow", TaskRequest(id=task.id, **request), Caller())


@promise("tools:server-task-offered")
async def test_a_task_is_offered_only_with_a_call_that_somebody_follows(slow):
    toolbox, server = slow
    answer = await call(toolbox, follows=False, mark="at once")
    assert (answer.task, answer.data["mark"]) == (None, "at once")
    task = (await call(toolbox, mark="later", lasts_s=0)).task
    assert task.id == server.works[-1].id
    assert task.id not in repr(task)
    done = await get(toolbox, task)
    assert (done.success, done.task, done.data["mark"]) == (True, None, "later")
    # By this header a request is routed to the host that works on the task.
    assert server.asked[-1] == ("tasks/get", task.id)


@promise("tools:server-task-offered")
@pytest.mark.parametrize("name", ["slow.send", "slow.look"])
async def test_a_task_for_a_call_that_offered_none_is_no_answer(slow, name):
    toolbox, server = slow
    server.begins = {"status": "working"}
    try:
        if name == "slow.look":
            assert "did not offer to follow" in (await call(toolbox, name, follows=False)).error
        else:
            with pytest.raises(OutcomeUnknown, match="did not offer to follow"):
                await call(toolbox, name, follows=False)
    finally:
        server.begins = {}


@promise("tools:server-task-hostile")
@pytest.mark.parametrize(
    ("begins", "said"),
    [
        ({"taskId": "x" * 1_000_000}, "1,000,000 bytes; 2,000 are the most"),
        ({"taskId": ""}, "without an id"),
        ({"taskId": 7}, "without an id"),
        ({"taskId": None}, "without an id"),
    ],
)
async def test_a_task_that_cannot_be_followed_leaves_the_outcome_unknown(slow, begins, said):
    toolbox, server = slow
    server.begins = begins
    try:
        with pytest.raises(OutcomeUnknown, match=said):
            await call(toolbox, mark="hostile")
    finally:
        server.begins = {}


@promise("tools:server-task-hostile")
@pytest.mark.parametrize(
    ("wanted", "poll_s"),
    [(0, 1), (-1, 1), (1e12, 300), (10**400, 2), ("soon", 2), (True, 2), (None, 2), ([], 2), (5000, 5)],
)
async def test_a_server_is_asked_neither_too_often_nor_too_seldom(slow, wanted, poll_s):
    toolbox, server = slow
    server.begins = {"pollIntervalMs": wanted, "ttlMs": wanted}
    try:
        task = (await call(toolbox, mark="paced")).task
    finally:
        server.begins = {}
    assert task.poll_s == poll_s
    assert task.ttl_s is None or task.ttl_s >= 0


@promise("tools:server-task-hostile")
@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"status": "completed", "result": {"resultType": "task", "taskId": "y"}}, "'task', which is not an answer"),
        ({"status": "completed", "result": {"resultType": "input_required"}}, "which is not an answer"),
        ({"status": "completed", "result": "done"}, "without a result"),
        ({"status": "completed"}, "without a result"),
        ({"status": "exploded" * 1000}, "a state that is not known here"),
        ({"status": ["working"]}, "a state that is not known here"),
        ({}, "a state that is not known here"),
        ({"taskId": "another", "status": "working"}, "about another one"),
        ({"status": "input_required", "inputRequests": "sure?"}, "does not fit"),
        ({"code": -32602, "message": "Task gone"}, "Task gone"),
        ({"code": -32601, "message": "no such method"}, "no such method"),
    ],
)
async def test_what_makes_no_sense_of_a_task_ends_it(slow, state, said):
    toolbox, server = slow
    task = (await call(toolbox, mark="odd")).task
    server.says = [state]
    with pytest.raises(TaskGone, match=said) as raised:
        await get(toolbox, task)
    assert len(str(raised.value)) < 400


@promise("tools:server-task-hostile")
@pytest.mark.parametrize("said", [{"code": -32603, "message": "busy"}, {"code": -32000, "message": "overloaded"}])
async def test_a_passing_fault_leaves_the_task_to_be_asked_about_again(slow, said):
    toolbox, server = slow
    task = (await call(toolbox, mark="busy", lasts_s=0)).task
    server.says = [said]
    with pytest.raises(OutcomeUnknown) as raised:
        await get(toolbox, task)
    assert not isinstance(raised.value, TaskGone)
    assert (await get(toolbox, task)).success


@promise("tools:server-task-hostile")
async def test_the_words_of_a_server_on_its_task_are_one_bounded_line(slow):
    toolbox, server = slow
    task = (await call(toolbox, mark="loud")).task
    server.says = [{"status": "working", "statusMessage": "a\nb\u202e" + "c" * 100_000}]
    said = (await get(toolbox, task)).task.said
    assert len(said) <= 200
    assert "\n" not in said


@promise("tools:server-task-asks")
async def test_a_question_is_asked_until_it_was_answered_and_another_under_its_key_is_another(slow):
    toolbox, server = slow
    task = (await call(toolbox, mark="asks", asks=True)).task
    question = (await get(toolbox, task)).question
    assert [asked.message for asked in question.requests] == ["Really?"]
    answered = marks_of(question.requests)
    # What was answered may be asked for a while longer, until the server has taken it in.
    assert (await get(toolbox, task, answered=answered)).question is None
    other = {"sure": {**ASKED["sure"], "params": {"mode": None, "message": "And now?"}}}
    server.says = [{"status": "input_required", "inputRequests": other}]
    assert (await get(toolbox, task, answered=answered)).question.requests[0].message == "And now?"
    await get(toolbox, task, action="update", reply=InputResponse(question, {"yes": True}))
    assert server.works[-1].answers == [{"sure": {"action": "accept", "content": {"yes": True}}}]


@promise("tools:server-task-asks")
async def test_a_task_that_asks_for_a_model_is_refused_that(slow):
    toolbox, server = slow
    task = (await call(toolbox, mark="sampling")).task
    wants = {"x": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}}}
    server.says = [{"status": "input_required", "inputRequests": wants}]
    answer = await get(toolbox, task)
    assert answer.question is None
    assert "sampling" in answer.task.refused


@promise("tools:server-task-offered")
async def test_a_server_of_an_older_revision_is_offered_no_task(tmp_path, opened, raw):
    tool = {"name": "send", "inputSchema": {"type": "object"}}
    result = {"resultType": "task", "taskId": "t", "status": "working", "ttlMs": None}
    entry = raw(tools=[tool], answers={"send": {"result": result}})
    async with opened(tmp_path, {"mcpServers": {"slow": entry}}) as toolbox:
        with pytest.raises(OutcomeUnknown, match="did not offer"):
            await call(toolbox)
    assert EXTENSION not in (tmp_path / "raw.script.json").read_text(encoding="utf-8")
