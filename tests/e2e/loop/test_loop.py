"""The loop itself: what it resolves once, what it does first, and what a fault of its own leads to."""

import asyncio
import itertools
import json
from datetime import timedelta

import pytest
import pytest_asyncio
from temporalio import workflow
from temporalio.client import WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.workflow import NondeterminismError

from activities.model.request import prompt_hash
from backstay.client import Backstay
from backstay.errors import TaskInvalid
from backstay.profile import Profile
from backstay.testing import Reply
from examples.mailbox.seed import seed
from tests.e2e.scripted_server import ScriptedServer, toolbox_of_servers, writes
from tests.engine import Scripts, assert_no_task_failure, ended, engine, pending, replay_all
from tests.histories import activities_in
from tests.requirements import promise
from workflows import run_task

ALLOWING = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
ASKING = "default: {read_only: allow, write_safe: ask, restricted_write: ask}\n"
READ = Reply(calls=[("mail__list_customers", {"offset": 0, "limit": 1})])
SCRIPTS = Scripts()
TOLD = []
"""What the run that reads on was answered."""
FAILED = "workflow_execution_failed_event_attributes"


def rules(conversation):
    return read_on(conversation.answers()) if conversation.task == "<read on>" else SCRIPTS(conversation)


def read_on(answers):
    match answers:
        case []:
            return Reply(calls=[("mail__list_invoices", {"offset": 0, "limit": 70})])
        case [digest]:
            where = {"ref": digest["storage_ref"], "path": "invoices", "offset": 30, "limit": 5}
            return Reply(calls=[("read_result", where)])
        case [digest, part]:
            TOLD[:] = [digest, part["data"]]
    return Reply(calls=[("finish", {"summary": "read"})])


def mail(number=1, body="b"):
    return ("mail__send_email", {"to": f"{number}@example.com", "subject": "s", "body": body})


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("loop")
    await seed(folder / "mailbox.db", customers=20, invoices=70)
    async with engine(temporal, folder, rules, policy=ASKING, system_role="developer") as running:
        yield running


async def scheduled(handle):
    """Return name, input and answer of every activity, in order."""
    return activities_in((await handle.fetch_history()).events)


def requests_of(opened, task):
    return [request for request in opened.model.requests if task["text"] in json.dumps(request["messages"])]


@promise("runs:open-once")
async def test_what_a_run_must_not_read_again_is_resolved_once_and_recorded(opened):
    handle = await opened.start(SCRIPTS.task(READ, READ))
    await ended(handle)
    made = await scheduled(handle)
    (resolved,) = [answer for name, _, answer in made if name == "open_run"]

    assert made[0][0] == "open_run"
    assert set(resolved) >= {"store", "model", "policy", "policy_hash", "prompt_hash", "catalog", "context"}
    assert resolved["prompt_hash"] == prompt_hash(Profile())
    assert {given["model"] for name, given, _ in made if name == "ask_model"} == {resolved["model"]}


@promise("runs:first-search")
async def test_one_search_of_the_task_text_comes_before_the_first_step(opened):
    task = SCRIPTS.task(READ)
    handle = await opened.start(task)
    result = await ended(handle)
    made = await scheduled(handle)
    (told,) = [event for event in result["events"] if event["name"] == "search.run"]
    opening, found = made[0].given, made[0].answer["found"]

    assert [name for name, _, _ in made][:2] == ["open_run", "ask_model"]
    assert opening["search"]["limit"] == 40
    assert told["text"].startswith(f"searched tools: {task['text'][:40]}")
    assert made[1].given["append"] == [{"kind": "tools", "ref": found["ref"]}]
    assert "mail__send_email" in [tool["function"]["name"] for tool in requests_of(opened, task)[0]["tools"]]


@promise("runs:visible")
async def test_the_list_of_functions_keeps_its_beginning_from_step_to_step(opened):
    task = SCRIPTS.task(READ, Reply(calls=[("search_tools", {"query": "recall a mail"})]), READ)
    await ended(await opened.start(task))
    lists = [[tool["function"]["name"] for tool in request["tools"]] for request in requests_of(opened, task)]

    assert len(lists) == 4
    assert all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(lists))


@promise("runs:developer-role")
async def test_the_prompt_has_the_role_that_is_set(opened, open_engine):
    task = SCRIPTS.task()
    await ended(await opened.start(task))
    async with open_engine(SCRIPTS) as usual:
        await ended(await usual.start(task))
        roles = [request["messages"][0]["role"] for request in usual.model.requests]

    assert [request["messages"][0]["role"] for request in requests_of(opened, task)] == ["developer"]
    assert roles == ["system"]


@promise("runs:mixed")
async def test_searches_and_reads_then_one_batch_then_one_question_then_finish(opened):
    everything = Reply(
        calls=[
            ("finish", {"summary": "all of it", "outputs": {}, "success": True}),
            ("ask_person", {"question": "Which day?"}),
            mail(1),
            ("search_tools", {"query": "invoices"}),
            mail(2),
        ]
    )
    before = opened.mailbox.requests("send_email")
    handle = await opened.start(SCRIPTS.task(everything))
    (batch,) = await pending(handle)
    names = [event["name"] for event in (await handle.query("timeline"))["events"]]
    assert [call["arguments"]["to"] for call in batch["calls"]] == ["1@example.com", "2@example.com"]
    assert names.count("search.run") == 2
    assert opened.mailbox.requests("send_email") == before
    await handle.execute_update("decide", {"request_id": batch["id"], "verdict": "approve", "by": "ana"})
    async with asyncio.timeout(150):
        while not (question := [request for request in await handle.query("pending") if request["kind"] == "question"]):
            await asyncio.sleep(0.1)
    assert opened.mailbox.requests("send_email") == before + 2
    await handle.execute_update(
        "decide", {"request_id": question[0]["id"], "verdict": "answer", "answer": "Monday", "by": "ana"}
    )
    result = await ended(handle)

    assert (result["outcome"], result["final_summary"], result["usage"]["steps"]) == ("completed", "all of it", 1)


@promise("runs:read-result")
async def test_a_stored_result_is_read_further_by_path_offset_and_limit(opened):
    handle = await opened.start("<read on>")
    await ended(handle)
    digest, part = TOLD

    assert digest["truncated"] is True
    assert (part["offset"], len(part["items"]), part["total"], part["has_more"]) == (30, 5, 70, True)


@promise("runs:refused-retry")
@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"retry_policy": RetryPolicy(maximum_attempts=3)}, "retry_policy: a run is not retried as a whole"),
        ({"cron_schedule": "@every 1s"}, "cron_schedule: '@every 1s' is refused"),
        ({"execution_timeout": timedelta(hours=1)}, "execution_timeout: refused, since it ends a run without undo"),
        ({"run_timeout": timedelta(hours=1)}, "run_timeout: refused, since it ends a run without undo"),
    ],
    ids=["retry", "cron", "execution-timeout", "run-timeout"],
)
async def test_what_temporal_would_do_with_a_whole_run_is_refused(opened, option, said):
    task = SCRIPTS.task()
    handle = await opened.start(task, **option)
    first = opened.client.get_workflow_handle(handle.id, run_id=handle.result_run_id)
    async with asyncio.timeout(150):
        while not (failed := [e for e in (await first.fetch_history()).events if e.HasField(FAILED)]):
            await asyncio.sleep(0.1)
    if "cron_schedule" in option:
        await opened.client.get_workflow_handle(handle.id).terminate()

    failure = getattr(failed[0], FAILED).failure
    assert failure.application_failure_info.type == "TaskInvalid"
    assert said in failure.message
    assert requests_of(opened, task) == []


@promise("runs:refused-retry")
async def test_a_task_that_the_server_could_not_carry_is_refused(opened):
    long = {"text": "t", "input": {"x": "y" * 1_000_001}}
    with pytest.raises(TaskInvalid, match="Task: larger than 1,000,000 bytes of JSON"):
        await Backstay(opened.client, task_queue=opened.settings.task_queue).start(long)
    with pytest.raises(WorkflowFailureError) as failed:
        await (await opened.start(long)).result()
    assert failed.value.cause.type == "TaskInvalid"


@promise("effects:hint")
async def test_an_idempotent_hint_of_the_server_alone_is_no_reason_to_send_again(temporal, tmp_path):
    hinted = writes("send") | {"annotations": {"idempotentHint": True}}
    desk = ScriptedServer(tmp_path / "desk.json", [hinted], {"send": {"die": True}})
    script = [Reply(calls=[("desk__send", {})]), Reply(calls=[("finish", {"summary": "done"})])]
    options = {"toolbox": toolbox_of_servers(tmp_path, desk=desk), "request_deadline_seconds": 2}
    async with engine(temporal, tmp_path, script, policy=ALLOWING, **options) as running:
        handle = await running.start("send it")
        (request,) = await pending(handle)
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "happened", "by": "ana"})
        await ended(handle)

    assert request["kind"] == "outcome"
    assert len(desk.calls("send")) == 1


@promise("runs:recoverable")
@pytest.mark.thorough
async def test_code_that_no_longer_fits_a_history_fails_a_workflow_task_and_never_the_run(open_engine, monkeypatch):
    script = [Reply(calls=[mail()]), Reply(calls=[("finish", {"summary": "done"})])]

    async def waits(run):
        await workflow.sleep(1)

    async with open_engine(script, policy=ASKING, cached=0) as running:
        handle = await running.start("send")
        (request,) = await pending(handle)
        with monkeypatch.context() as patched:
            patched.setattr(run_task.RunTask, "_until_free", waits)
            await handle.signal("approval", {"request_id": "r99", "verdict": "approve", "by": "ana"})
            async with asyncio.timeout(150):
                while not any(map(failed_task, (await handle.fetch_history()).events)):
                    await asyncio.sleep(0.1)
        with pytest.raises(AssertionError):
            assert_no_task_failure(await handle.fetch_history())
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
        result = await asyncio.wait_for(handle.result(), 150)

        assert result["outcome"] == "completed"
        assert len(running.mailbox.sent()) == 1


@promise("runs:recoverable")
async def test_a_run_of_a_test_that_would_do_something_else_in_a_replay_fails_the_test(open_engine, monkeypatch):
    async def waits(run):
        await workflow.sleep(1)

    async with open_engine([Reply(calls=[("finish", {"summary": "done"})])]) as running:
        handle = await running.start("nothing to do")
        assert (await handle.result())["outcome"] == "completed"
        assert [name for name, _ in running.ran.executions] == [handle.id]
        await replay_all(running.client, running.ran)
        with monkeypatch.context() as patched:
            patched.setattr(run_task.RunTask, "_until_free", waits)
            with pytest.raises(NondeterminismError):
                await replay_all(running.client, running.ran)


def failed_task(event):
    return event.HasField("workflow_task_failed_event_attributes")
