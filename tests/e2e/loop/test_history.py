import json

from backstay.testing import Reply
from examples.mailbox.seed import seed
from tests.engine import assert_no_task_failure
from tests.histories import asks_model
from tests.requirements import promise

STEPS = 36


@promise("runs:constant")
async def test_history_per_step_is_small_and_constant_whatever_the_results_weigh(open_engine, tmp_path):
    await seed(tmp_path / "mailbox.db", customers=20, invoices=70)

    def rules(talk):
        if len(talk.answers("mail__list_invoices")) == STEPS:
            return Reply(calls=[("finish", {"summary": "done"})])
        return Reply(calls=[("mail__list_invoices", {"offset": 0, "limit": 70})])

    # Every workflow task replayed from the beginning would make a long run quadratic; that is shown elsewhere.
    async with open_engine(rules, cached=10) as engine:
        task = {"text": "read on", "budget": {"max_steps": 100, "max_tool_calls": 100, "max_llm_cost_usd": None}}
        handle = await engine.start(task)
        result = await handle.result()
        history = await handle.fetch_history()

    assert result["outcome"] == "completed"
    assert_no_task_failure(history)
    sizes = per_step(history)
    early, late = sum(sizes[10:18]) / 8, sum(sizes[26:34]) / 8
    assert max(sizes[10:34]) <= 4096
    assert abs(late - early) <= 0.1 * early
    assert sum(sizes[10:34]) / 24 <= 2475


def per_step(history):
    """Return the bytes from one model call to the next, without the worker's name, whose length is the machine's."""
    sizes = []
    for event in history.events:
        scheduled = event.activity_task_scheduled_event_attributes
        if asks_model(event):
            assert len(json.loads(scheduled.input.payloads[0].data)) > 3
            sizes.append(0)
        if sizes:
            sizes[-1] += len(without_worker(event).SerializeToString())
    return sizes


def without_worker(event):
    """Return an event without the name of the worker: its process number, its host, and its own queue."""
    bare = type(event).FromString(event.SerializeToString())
    attributes = getattr(bare, bare.WhichOneof("attributes"))
    if attributes.DESCRIPTOR.fields_by_name.get("identity"):
        attributes.ClearField("identity")
    if bare.workflow_task_scheduled_event_attributes.task_queue.normal_name:
        bare.workflow_task_scheduled_event_attributes.task_queue.ClearField("name")
    return bare
