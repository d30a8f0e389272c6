"""What an operator reads through Temporal's own API, without any program of ours."""

import asyncio
import json

import pytest_asyncio
from cryptography.fernet import Fernet

from backstay.testing import Reply
from backstay.version import version
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise

POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: allow}
ask: [{tool: "mail.send_email", when: {to: {ends_with: "@asked.example"}}, timeout: 1h}]
"""
SCRIPTS = Scripts()


def mails(recipient):
    return Reply(calls=[("mail__send_email", {"to": recipient, "subject": "s", "body": "b"})])


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    async with engine(temporal, tmp_path_factory.mktemp("view"), SCRIPTS, policy=POLICY) as running:
        yield running


async def metadata(handle):
    """Ask what Temporal's Web UI asks for."""
    return await handle.query("__temporal_workflow_metadata")


async def attribute(handle, name, value):
    """Wait until the server tells a search attribute's new value."""
    async with asyncio.timeout(150):
        while (await handle.describe()).search_attributes.get(name) != [value]:
            await asyncio.sleep(0.1)


@promise("operations:details")
async def test_details_tell_state_limits_the_deciding_command_and_counts(opened):
    task = SCRIPTS.task(
        mails("one@free.example"), mails("two@asked.example"), budget={"max_steps": 7, "quotas": {"mail.send_email": 3}}
    )
    handle = await opened.start(task)
    (request,) = await pending(handle)
    details = (await metadata(handle)).current_details
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    await ended(handle)
    after = (await metadata(handle)).current_details

    assert "step 2" in details.splitlines()[0]
    lines = details.splitlines()
    (limits,) = [line for line in lines if line.startswith("steps ")]
    assert limits.startswith("steps 2 of 7 · tool calls 1 of 30 · USD 0.00")
    assert limits.endswith(" of 0.5 · calls of mail.send\\_email 1 of 3")
    flags = f"--by YOU --args-digest {request['args_digest']}"
    assert f"backstay approve {handle.id} {request['id']} {flags}" in lines
    assert f"backstay reject {handle.id} {request['id']} {flags}" in lines
    assert "Calls: 1 of mail.send\\_email" in lines
    assert f"All of it: `backstay show {handle.id} {request['id']}`" in lines
    assert f"Effects that stand: 1. What an undo would do: `backstay undo --preview {handle.id}`" in lines
    assert "two@asked.example" not in details
    assert "backstay approve" not in after
    assert after.startswith("**done**")


@promise("operations:summaries")
async def test_every_activity_and_timer_says_in_history_what_it_is_for(opened):
    handle = await opened.start(SCRIPTS.task(mails("one@free.example"), mails("two@asked.example")))
    (request,) = await pending(handle)
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    await ended(handle)
    events = (await handle.fetch_history()).events
    activities = [event for event in events if event.HasField("activity_task_scheduled_event_attributes")]
    timers = [event for event in events if event.HasField("timer_started_event_attributes")]
    said = {
        event.activity_task_scheduled_event_attributes.activity_type.name: summary_of(event) for event in activities
    }

    assert [summary_of(event) for event in timers] == [f"approval {request['id']}"]
    assert all(summary_of(event) for event in activities)
    assert set(said) >= {"open_run", "ask_model", "act_and_ask", "close_run"}
    assert "mail.send_email" in said["act_and_ask"]
    assert said["act_and_ask"].endswith("; then step 3: ask scripted")


def summary_of(event):
    data = event.user_metadata.summary.data
    return json.loads(data) if data else None


@promise("operations:attributes")
async def test_search_attributes_are_typed_and_find_the_run(opened):
    user = "ana-of-the-view"
    handle = await opened.start(SCRIPTS.task(mails("two@asked.example"), user_id=user))
    (request,) = await pending(handle)
    await attribute(handle, "BackstayState", "waiting")
    await attribute(handle, "BackstayPending", 1)
    query = f"BackstayUser = '{user}' AND BackstayState = 'waiting' AND BackstayPending > 0"
    await found(opened, query, handle.id)
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    result = await ended(handle)
    attributes = (await handle.describe()).search_attributes

    assert attributes["BackstayState"] == ["done"]
    assert attributes["BackstayPending"] == [0]
    assert attributes["BackstayUser"] == [user]
    assert attributes["BackstayCostUsd"] == [result["usage"]["llm_cost_usd"]]
    await found(opened, f"BackstayUser = '{user}' AND BackstayCostUsd > 0.0", handle.id)


@promise("operations:task")
async def test_the_list_says_what_each_run_is_without_its_secrets(opened):
    secret = "gh" + "p_" + "k3Jx9QpL2mN8vB5tR7wY4zA6cD1eF0gH2iJ3"
    task = SCRIPTS.task()
    named = f"{task['text']} with {secret} for {'long ' * 100}"
    handle = await opened.start({"text": f"{named}\nsecond line"})
    await ended(handle)
    (line,) = (await handle.describe()).search_attributes["BackstayTask"]
    assert line.startswith(f"{task['text']} with ⟦secret:")
    assert len(line.encode()) <= 200
    assert secret[:20] not in line


@promise("operations:task")
async def test_a_task_stays_out_of_search_attributes_where_payloads_are_encrypted(temporal, tmp_path):
    keys = {"encryption_keys": [Fernet.generate_key().decode()]}
    async with engine(temporal, tmp_path, SCRIPTS, **keys) as opened:
        handle = await opened.start(SCRIPTS.task())
        await ended(handle)
        known = (await handle.describe()).search_attributes
    assert known["BackstayState"] == ["done"]
    assert "BackstayTask" not in known


async def found(opened, query, workflow_id):
    """Wait until the server's list, which follows with a delay, holds exactly this run."""
    async with asyncio.timeout(150):
        while [workflow.id async for workflow in opened.client.list_workflows(query)] != [workflow_id]:
            await asyncio.sleep(0.1)


@promise("operations:release")
async def test_a_history_says_which_release_its_workers_were(opened):
    handle = await opened.start(SCRIPTS.task())
    await ended(handle)
    tasks = [
        event.workflow_task_completed_event_attributes.worker_version.build_id
        for event in (await handle.fetch_history()).events
        if event.HasField("workflow_task_completed_event_attributes")
    ]
    assert {*tasks} == {version()}


@promise("operations:descriptions")
async def test_every_door_of_a_run_says_what_it_is_for(opened):
    handle = await opened.start(SCRIPTS.task())
    await ended(handle)
    definition = (await metadata(handle)).definition
    doors = {
        kind: {
            handler.name: handler.description for handler in getattr(definition, f"{kind}_definitions") if handler.name
        }
        for kind in ("query", "update", "signal")
    }

    assert definition.type == "RunTask"
    assert set(doors["update"]) == {"decide", "message", "top_up", "undo", "pause", "read", "resume"}
    assert set(doors["query"]) >= {"status", "result", "timeline", "pending", "budget", "plan", "undo_preview"}
    assert "approval" in doors["signal"]
    ours = [(name, text) for kind in doors.values() for name, text in kind.items() if not name.startswith("__")]
    assert [name for name, text in ours if not text] == []
