"""What tests of sub-runs share: the words of their models, and what is known of a tree of runs."""

import asyncio

import opening
from backstay.testing import Reply

PROFILES = "default: {delegation: true}\n"
SEND = "mail__send_email"


def delegate(*tasks, **more):
    """Give each of these tasks to a sub-run, in one answer."""
    return Reply(calls=[("delegate", {"task": task["text"], **more}) for task in tasks])


def send(*recipients, subject="s"):
    return Reply(calls=[(SEND, {"to": to, "subject": subject, "body": "b"}) for to in recipients])


def finish(summary, *, success=True, outputs=None):
    return Reply(calls=[("finish", {"summary": summary, "outputs": outputs or {}, "success": success})])


async def children_of(handle):
    """Return the ids of the sub-runs of a run, in the order in which they were asked for."""
    return await _told(handle, "start_child_workflow_execution_initiated_event_attributes")


async def begun(handle, count=1):
    """Wait until a run has started so many sub-runs; return their ids."""
    async with asyncio.timeout(150):
        while len(await _told(handle, "child_workflow_execution_started_event_attributes")) < count:
            await asyncio.sleep(0.1)
    return await children_of(handle)


async def _told(handle, field):
    events = (await handle.fetch_history()).events
    found = [getattr(event, field) for event in events if event.HasField(field)]
    return [getattr(each, "workflow_id", "") or each.workflow_execution.workflow_id for each in found]


async def spent_by(engine, workflow_id):
    """Return what a run has spent by itself, without its sub-runs, as its own timeline tells."""
    async with opening.open_store(engine.settings) as store:
        row = await store.runs.get(workflow_id)
        events = await store.events.of_run(row.run)
    asked = [event for event in events if event.name == "model.asked"]
    calls = [event for event in events if event.name in {"action.called", "action.failed"}]
    return {
        "micro": sum(round(event.data["cost_usd"] * 1e6) for event in asked),
        "steps": len(asked),
        "calls": len(calls),
    }
