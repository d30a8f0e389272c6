"""What is started to undo a run is the undo of that run, to the step that was asked for, or is refused."""

import uuid
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from backstay.client import Backstay
from backstay.errors import DecisionRefused
from backstay.testing import Reply
from tests.engine import Scripts, ended, engine
from tests.requirements import promise

POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: allow}
undo: {ask: [{tool: "mail.*"}]}
"""
QUESTION = Reply(calls=[("ask_person", {"question": "Go on?"})])


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        scripts, folder = Scripts(), tmp_path_factory.mktemp("named")
        opened = await stack.enter_async_context(engine(temporal, folder, scripts, policy=POLICY))
        yield opened, scripts, Backstay(temporal, task_queue=opened.settings.task_queue)


@promise("undo:rules")
@pytest.mark.parametrize("named", ["mail.send_email", "mail.recall_email"])
async def test_a_rule_about_undo_holds_whether_it_names_what_was_done_or_what_takes_it_back(temporal, tmp_path, named):
    rules = f"undo: {{deny: [{{tool: {named}}}]}}"
    policy = f"default: {{read_only: allow, write_safe: allow, restricted_write: allow}}\n{rules}"
    async with engine(temporal, tmp_path, Scripts(), policy=policy) as opened:
        name = await paid(opened)
        undo = await Backstay(temporal, task_queue=opened.settings.task_queue).start_undo(name)
        result = await undo.result()
    assert [undone.state for undone in result.undone] == ["parked", "parked"]
    assert f"denied by the policy: undo.deny[0]: {named}" in result.undone[0].detail


def plan(*recipients):
    arguments = ({"to": to, "subject": "s", "body": "b"} for to in recipients)
    return {"plan": {"steps": [{"tool": "mail.send_email", "arguments": given} for given in arguments]}}


async def paid(opened):
    handle = await opened.start(plan("a@x.example", "b@x.example"))
    assert (await ended(handle))["outcome"] == "completed"
    return handle.id


@promise("undo:the-one-asked")
async def test_a_run_under_the_id_of_an_undo_passes_for_no_undo_and_an_undo_for_no_run(shared):
    opened, scripts, backstay = shared
    name = await paid(opened)
    squatter = await opened.start(scripts.task(QUESTION), f"undo-{name}")
    with pytest.raises(DecisionRefused, match="is no UndoRun"):
        await backstay.start_undo(name)
    await squatter.terminate()
    undo = await backstay.start_undo(name)
    with pytest.raises(DecisionRefused, match="is no RunTask"):
        await backstay.start("Pay", undo.id)
    await opened.client.get_workflow_handle(undo.id).terminate()


@promise("undo:the-one-asked")
async def test_an_undo_of_another_run_passes_for_no_undo_of_this_one(shared):
    opened, _, backstay = shared
    name, other = await paid(opened), await paid(opened)
    given = {"workflow_id": other}
    queue = opened.settings.task_queue
    squatter = await opened.client.start_workflow("UndoRun", given, id=f"undo-{name}", task_queue=queue)
    with pytest.raises(DecisionRefused, match="undoes another run"):
        await backstay.start_undo(name)
    await squatter.terminate()


@promise("undo:the-one-asked")
async def test_an_undo_to_another_step_is_refused_while_one_is_under_way_and_the_same_one_is_attached_to(shared):
    opened, _, backstay = shared
    name = await paid(opened)
    undo = await backstay.start_undo(name, to_step=1)
    for to_step in (None, 0, 2):
        with pytest.raises(DecisionRefused, match="which undoes what came after step 1"):
            await backstay.start_undo(name, to_step=to_step)
    assert (await backstay.start_undo(name, to_step=1, by="bo")).id == undo.id
    await opened.client.get_workflow_handle(undo.id).terminate()


@promise("undo:the-one-asked")
@pytest.mark.thorough
@pytest.mark.parametrize("length", [995, 996, 1000])
async def test_a_run_with_as_long_an_id_as_there_is_can_be_undone(shared, length):
    opened, _, backstay = shared
    # The mailbox takes no id as long as that with a mail, so this run only reads.
    reads = {"plan": {"steps": [{"tool": "mail.list_customers", "arguments": {"limit": 1}}]}}
    handle = await opened.start(reads, f"{uuid.uuid4()}-".ljust(length, "x"))
    assert (await ended(handle))["outcome"] == "completed"
    undo = await backstay.start_undo(handle.id)
    assert (await undo.result()).final_summary == "already undone"
