"""Bad input: refused at the start, naming field, value and fix; a worker refuses with exit code 2."""

import json
import os
import socket

import pytest
import pytest_asyncio
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.common import RawValue

from backstay.testing import Conversation, Reply
from tests.e2e.labelled import DONE
from tests.e2e.scripted_server import toolbox_of_servers
from tests.engine import assert_no_task_failure, engine, pending
from tests.nursery.nursery import OPERATORS_WORKER
from tests.requirements import promise

STEP = {"tool": "desk.look"}
TASKS = {
    "nothing": (None, "Task: "),
    "a list": ([], "Task: "),
    "empty": ({}, "text: empty; say in a sentence what is wanted, or give a plan"),
    "blank": ({"text": "  "}, "text: empty"),
    "unknown field": ({"text": "x", "colour": 1}, "colour: unknown field (value 1); remove it"),
    "mistyped": ({"text": 7}, "text: Input should be a valid string (value 7)"),
    "budget unknown": ({"text": "x", "budget": {"max_step": 1}}, "budget.max_step: unknown field (value 1)"),
    "budget mistyped": ({"text": "x", "budget": {"max_steps": "many"}}, "budget.max_steps: "),
    "budget negative": ({"text": "x", "budget": {"max_llm_cost_usd": -1}}, "budget.max_llm_cost_usd: "),
    "budget choice": ({"text": "x", "budget": {"on_exhausted": "beg"}}, "budget.on_exhausted: "),
    "quota": ({"text": "x", "budget": {"quotas": {"a.b": "one"}}}, "budget.quotas.a.b: "),
    "a quota of several": (
        {"text": "x", "budget": {"quotas": {"mail.*": 1}}},
        "budget.quotas: mail.*: a quota counts the calls of one tool; name each tool by itself",
    ),
    "plan empty": ({"plan": {"steps": []}}, "plan.steps: "),
    "plan missing": ({"plan": {"steps": [{}]}}, "plan.steps.0.tool: required field is missing; add it"),
    "plan unknown": ({"plan": {"steps": [{**STEP, "args": {}}]}}, "plan.steps.0.args: unknown field"),
    "on_failure": ({"text": "x", "on_failure": "shrug"}, "on_failure: "),
    "policy unknown": ({"text": "x", "policy": {"forbid": []}}, "policy: forbid"),
    "policy mistyped": ({"text": "x", "policy": {"default": {"read_only": "maybe"}}}, "policy: default.read_only"),
    "files of nothing": ({"text": "x", "filesystem": True}, "workspace: required for filesystem"),
    "a shell nowhere": ({"text": "x", "shell": True}, "workspace: required for shell"),
    "an idle workspace": ({"text": "x", "workspace": "here"}, "workspace: of no use without filesystem or shell"),
    "a workspace without a name": ({"text": "x", "workspace": "", "shell": True}, "workspace:"),
    "too many steps": ({"text": "x", "budget": {"max_steps": 100_001}}, "budget.max_steps: "),
    "a name of hidden signs": ({"text": "x", "user_id": "\x01" * 200}, "user_id: longer than 200 characters"),
    "a policy of many names": (
        {"text": "x", "policy": {"ask": [{"tool": "a.b", "approvers": [f"{n:0120}" for n in range(1_100)]}]}},
        "policy: 135,",
    ),
    "unpriced": ({"text": "x", "model": "nobodys-model"}, "model: no price is known for 'nobodys-model'"),
}
DEFAULTS = {
    "profile": "default",
    "mode": "act",
    "workspace": None,
    "filesystem": False,
    "shell": False,
    "rehearse": False,
    "session_id": None,
    "plan": None,
    "policy": None,
    "budget": {"max_steps": 100_000, "max_code_runs": 3, "max_calls_per_program": None},
}
BESIDE = {
    "an id": ("UndoRun", {"workflow_id": "x" * 150_000}, "workflow_id: "),
    "an id to read": ("ReadRun", {"workflow_id": "x" * 150_000, "after": 0}, "workflow_id: "),
    "a proof": ("UndoRun", {"workflow_id": "x", "proof": "中" * 600_000}, "proof: 1,800,002 bytes"),
    "a step": ("UndoRun", {"workflow_id": "x", "to_step": 10**30}, "to_step: "),
    "an event": ("ReadRun", {"workflow_id": "x", "after": 10**30}, "after: "),
}
UPDATES = [
    ("pause", {"reason": "\x01" * 3_000}, "pause.reason: 18,002 bytes"),
    ("resume", {"proof": "\x01" * 300}, "resume.proof: 1,802 bytes"),
    ("undo", {"to_step": 10**30}, "undo.to_step: "),
    ("top_up", {"quotas": {"中" * 20_000: 1}}, "quotas: 60,006 bytes"),
    ("read", {"after": 10**30}, "read: after: "),
    ("message", {"text": "中" * 11_000}, "message.text: 33,002 bytes"),
    ("decide", {"request_id": "r1", "verdict": "reject", "comment": "\x01" * 3_000}, "comment: 18,002 bytes"),
]
NO_JSON = {
    "no JSON": ("json/plain", b"{nope"),
    "too deep": ("json/plain", b'{"text": "x", "input": ' + b'{"a":' * 400 + b"1" + b"}" * 400 + b"}"),
    "half a character": ("json/plain", b'{"text": "\\ud800"}'),
    "a number without end": ("json/plain", b'{"text": "x", "input": {"a": ' + b"9" * 5000 + b"}}"),
    "encrypted": ("binary/encrypted", b"x"),
    "of no encoding": ("", b'{"text": "x"}'),
    "a message of no type": ("json/protobuf", b"{}"),
    "an encoding that is no text": (b"\xff", b"x"),
}


def encoded(encoding: str | bytes, data: bytes) -> RawValue:
    name = encoding.encode() if isinstance(encoding, str) else encoding
    return RawValue(Payload(metadata={"encoding": name} if name else {}, data=data))


def answers(conversation: Conversation) -> Reply:
    if "<ask>" in conversation.task and not conversation.calls("ask_person"):
        return Reply(calls=[("ask_person", {"question": "Which one?"})])
    return DONE


@pytest_asyncio.fixture(scope="module")
async def door(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("door")
    async with engine(temporal, folder, answers, toolbox=toolbox_of_servers(folder)) as opened:
        yield opened


async def refused(handle):
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert_no_task_failure(await handle.fetch_history())
    assert caught.value.cause.type == "TaskInvalid"
    return caught.value.cause.message


@promise("runs:fault-task")
@pytest.mark.parametrize("name", TASKS)
async def test_a_task_that_is_not_valid_is_refused_naming_field_value_and_fix(door, name):
    task, said = TASKS[name]
    assert said in await refused(await door.start(task))


@promise("runs:bounds-in-bytes")
@pytest.mark.parametrize("name", BESIDE)
async def test_what_is_too_large_for_a_workflow_beside_a_run_is_refused_by_field(door, name):
    kind, ask, said = BESIDE[name]
    queue = door.settings.task_queue
    handle = await door.client.start_workflow(kind, ask, id=f"beside {name}", task_queue=queue)
    assert said in await refused(handle)


@promise("runs:bounds-in-bytes")
async def test_what_is_too_large_for_an_update_is_refused_by_field(door):
    handle = await door.start("<ask>")
    (request,) = await pending(handle)
    for update, ask, said in UPDATES:
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await handle.execute_update(update, {**ask, "by": "ana"} if update != "read" else ask)
        assert said in caught.value.cause.message
    decision = {"request_id": request["id"], "verdict": "answer", "answer": "this", "by": "ana"}
    await handle.execute_update("decide", decision)
    assert (await handle.result())["outcome"] == "completed"
    assert_no_task_failure(await handle.fetch_history())


@promise("runs:task-fields")
async def test_a_field_is_accepted_at_its_default(door):
    handle = await door.start({"text": "x", **DEFAULTS})
    assert (await handle.result())["outcome"] == "completed"
    assert_no_task_failure(await handle.fetch_history())


@promise("runs:no-task-failure")
@pytest.mark.parametrize("name", NO_JSON)
async def test_a_task_that_is_no_json_is_refused_and_fails_no_workflow_task(door, name):
    assert "what is not JSON" in await refused(await door.start(encoded(*NO_JSON[name])))


@promise("runs:no-task-failure")
async def test_more_than_one_argument_is_refused(door):
    handle = await door.client.start_workflow(
        "RunTask", args=[{"text": "x"}, {"text": "y"}], id="two-tasks", task_queue=door.settings.task_queue
    )
    assert "give one JSON object" in await refused(handle)


@promise("budget:unpriced")
async def test_an_unpriced_model_may_be_used_without_a_limit_in_usd(door):
    task = {"text": "x", "model": "nobodys-model", "budget": {"max_llm_cost_usd": None}}
    result = await (await door.start(task)).result()
    assert (result["outcome"], result["usage"]["llm_cost_usd"]) == ("completed", 0)


@promise("approvals:verdicts")
async def test_decisions_that_are_not_valid_are_refused_and_the_request_stays(door):
    handle = await door.start("<ask>")
    (request,) = await pending(handle)
    good = {"request_id": request["id"], "verdict": "answer", "answer": "this", "by": "ana"}
    for decision, said in (
        ({**good, "remember": True}, "remember: not here, because more than a default of policy.yaml asks"),
        ({**good, "colour": 1}, "colour: unknown field"),
        ({**good, "verdict": "perhaps"}, "verdict: "),
        ({"verdict": "answer"}, "request_id: required field is missing"),
        ([], "Approval: "),
        *((encoded(*NO_JSON[name]), "what is not JSON") for name in ("no JSON", "encrypted")),
    ):
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await handle.execute_update("decide", decision)
        assert said in str(caught.value.cause), decision
        await handle.signal("approval", decision)
    assert len(await pending(handle)) == 1
    await handle.execute_update("decide", good)
    assert (await handle.result())["outcome"] == "completed"
    assert_no_task_failure(await handle.fetch_history())


async def started(nursery, folder, **variables):
    """Start a worker as an operator does; return its exit code and what it said."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME"}}
    (folder / "toolbox.json").exists() or (folder / "toolbox.json").write_text('{"mcpServers": {}}', encoding="utf-8")
    log, out = folder / "said", folder / "printed"
    environment = {**kept, "BACKSTAY_TRUSTED": str(folder), **variables}
    child = await nursery.raised(OPERATORS_WORKER, environment=environment, folder=folder, log=log, out=out)
    return await child.ended(100), child.said()


FILES = {
    "toolbox unknown field": ("toolbox.json", json.dumps({"mcpServer": {}}), "mcpServer"),
    "toolbox missing command": ("toolbox.json", json.dumps({"mcpServers": {"desk": {}}}), "mcpServers.desk"),
    "toolbox mistyped": ("toolbox.json", json.dumps({"mcpServers": []}), "mcpServers"),
    "policy unknown field": ("policy.yaml", "forbid: []\n", "forbid"),
    "policy mistyped": ("policy.yaml", "default: {read_only: maybe}\n", "read_only"),
    "policy no YAML": ("policy.yaml", "default: {read_only\n", "YAML"),
}


@promise("clients:exit-2")
@pytest.mark.thorough
async def test_a_worker_refuses_files_that_are_not_valid_with_exit_code_2(nursery, tmp_path):
    for name, (file, text, said) in FILES.items():
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        (folder / file).write_text(text, encoding="utf-8")
        code, error = await started(nursery, folder)
        assert (code, said in error, "Traceback" in error) == (2, True, False), (name, error)


@promise("clients:exit-2")
async def test_a_worker_refuses_an_unknown_setting_with_exit_code_2(nursery, tmp_path):
    code, error = await started(nursery, tmp_path, BACKSTAY_TOOLBX="x")
    assert code == 2
    assert "BACKSTAY_TOOLBX: unknown setting; did you mean BACKSTAY_TOOLBOX?" in error


@promise("clients:temporal")
async def test_a_worker_says_that_temporal_cannot_be_reached_with_exit_code_1(nursery, tmp_path):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        code, error = await started(nursery, tmp_path, TEMPORAL_ADDRESS=f"127.0.0.1:{held.getsockname()[1]}")
    assert code == 1
    assert "Temporal cannot be reached at 127.0.0.1" in error
    assert "Traceback" not in error


@promise("clients:temporal")
async def test_a_worker_names_a_namespace_that_does_not_exist_with_exit_code_2(temporal, nursery, tmp_path):
    address = temporal.service_client.config.target_host
    code, error = await started(nursery, tmp_path, TEMPORAL_ADDRESS=address, TEMPORAL_NAMESPACE="nowhere")
    assert code == 2
    assert "TEMPORAL_NAMESPACE" in error
    assert "'nowhere'" in error
    assert "Traceback" not in error
