"""Delegation: what a sub-run is given, what it may spend, and what comes back to the run that delegated."""

import asyncio

import pytest_asyncio

from backstay.testing import Reply
from tests.engine import Scripts, ended, engine, pending, update
from tests.requirements import promise

POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: allow}
allow: ["engine.delegate"]
ask: [{tool: "mail.send_email", when: {subject: {equals: "ask"}}}]
"""
PROFILES = "default: {delegation: true}\n"
SCRIPTS = Scripts()
READ = Reply(calls=[("mail__list_customers", {"offset": 0, "limit": 1})])


def delegate(*tasks, **more):
    return Reply(calls=[("delegate", {"task": task["text"], **more}) for task in tasks])


def send(to, subject="s"):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": subject, "body": "b"})])


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("subruns")
    async with engine(temporal, folder, SCRIPTS, policy=POLICY, profiles=PROFILES) as running:
        yield running


async def children_of(opened, handle):
    """Return the ids of the sub-runs of a run, in the order in which they were started."""
    history = await handle.fetch_history()
    named = "start_child_workflow_execution_initiated_event_attributes"
    return [getattr(event, named).workflow_id for event in history.events if event.HasField(named)]


@promise("subruns:delegate")
async def test_a_sub_run_works_within_its_share_and_its_answer_comes_back(opened):
    told = []

    def looks(talk):
        told.extend(talk.answers("delegate"))
        return Reply(calls=[("finish", {"summary": "done", "outputs": {}})])

    child = SCRIPTS.task(READ, send("one@example.com"))
    handle = await opened.start(SCRIPTS.task(delegate(child, share=0.5), looks, budget={"max_steps": 9}))
    result = await ended(handle)
    (name,) = await children_of(opened, handle)
    theirs = await ended(opened.client.get_workflow_handle(name))

    assert result["outcome"] == theirs["outcome"] == "completed"
    assert theirs["budget"]["max_steps"] == 4
    assert told[0]["data"]["summary"] == "done", told
    assert result["usage"]["delegated_steps"] == theirs["usage"]["steps"] == 3
    print(result["usage"], theirs["usage"], told)
