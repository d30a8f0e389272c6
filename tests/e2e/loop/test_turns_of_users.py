"""The runs of one user do not hold up those of another: Temporal hands out their work in turns."""

import uuid

from temporalio.api.enums.v1 import EventType

from activities import slots
from backstay.client.backstay import Backstay
from tests.engine import engine
from tests.requirements import promise
from tests.sizes import sized
from tests.turns import finished

MANY = sized(24, 12)
LONG_NAME = "no key may be this long " * 8


@promise("runs:turns-of-users")
async def test_a_run_overtakes_the_many_that_another_user_started_before(temporal, tmp_path):
    queue = f"queue-{uuid.uuid4()}"
    before = Backstay(temporal, task_queue=queue)
    flood = [await before.start({"text": f"one of many {number}", "user_id": LONG_NAME}) for number in range(MANY)]
    late = await before.start({"text": "the only one", "user_id": "few"})
    async with engine(temporal, tmp_path, lambda talk: finished(talk.task), task_queue=queue):
        for run in [*flood, late]:
            assert (await run.result()).success
    taken = {run.id: await taken_up(temporal, run.id) for run in [*flood, late]}
    assert sorted(taken, key=taken.__getitem__).index(late.id) < MANY // 2


@promise("runs:begun-first")
async def test_runs_that_have_begun_end_before_others_begin(temporal, tmp_path, monkeypatch):
    monkeypatch.setattr(slots, "FEWEST", 2)
    monkeypatch.setattr(slots, "MOST", 2)
    queue = f"queue-{uuid.uuid4()}"
    before = Backstay(temporal, task_queue=queue)
    runs = [await before.start({"text": f"one of many {number}", "user_id": "ana"}) for number in range(MANY)]
    # A run that no worker keeps waits for its turn at each workflow task, too.
    async with engine(temporal, tmp_path, lambda talk: finished(talk.task), task_queue=queue, cached=1000):
        for run in runs:
            assert (await run.result()).success
    spans = [await begun_and_ended(temporal, run.id) for run in runs]
    last_begun = max(begun for begun, _ in spans)
    # Some are always under way at once; without priorities the last run begins before the first one ends.
    assert len([ended for _, ended in spans if ended < last_begun]) >= MANY // 4


@promise("workers:slots")
async def test_runs_whose_models_take_long_are_under_way_together(temporal, tmp_path):
    def slow(talk):
        return finished(talk.task).model_copy(update={"delay_s": 4})

    async with engine(temporal, tmp_path, slow) as opened:
        runs = [await opened.start({"text": f"one of some {number}"}) for number in range(2 * slots.FEWEST)]
        for run in runs:
            await run.result()
    asked = [span for run in runs for span in await spans_of(temporal, run.id, "ask_model")]
    together = max(sum(begun <= moment < ended for begun, ended in asked) for moment, _ in asked)
    assert slots.FEWEST < together <= len(runs)


@promise("runs:turns-started-elsewhere")
async def test_activities_of_a_run_that_came_without_a_key_take_turns_as_its_user(temporal, tmp_path):
    async with engine(temporal, tmp_path, lambda talk: finished("done")) as opened:
        handle = await temporal.start_workflow(
            "RunTask",
            {"text": "from elsewhere", "user_id": "ana@example.com"},
            id=f"task-{uuid.uuid4()}",
            task_queue=opened.settings.task_queue,
        )
        await handle.result()
    asked = [event async for event in handle.fetch_history_events()]
    kind = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    keys = {
        event.activity_task_scheduled_event_attributes.priority.fairness_key
        for event in asked
        if event.event_type == kind
    }
    assert keys == {"ana@example.com"}


async def begun_and_ended(temporal, workflow_id):
    """Return when the first activity of a run was started, and when the run ended."""
    begun, ended = 0, 0
    async for event in temporal.get_workflow_handle(workflow_id).fetch_history_events():
        ended = event.event_time.ToNanoseconds()
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED and not begun:
            begun = ended
    return begun, ended


async def spans_of(temporal, workflow_id, activity):
    """Return when each activity of a name was started, and when it was completed."""
    scheduled, begun, spans = {}, {}, []
    async for event in temporal.get_workflow_handle(workflow_id).fetch_history_events():
        at = event.event_time.ToNanoseconds()
        if event.HasField("activity_task_scheduled_event_attributes"):
            scheduled[event.event_id] = event.activity_task_scheduled_event_attributes.activity_type.name
        elif event.HasField("activity_task_started_event_attributes"):
            begun[event.activity_task_started_event_attributes.scheduled_event_id] = at
        elif event.HasField("activity_task_completed_event_attributes"):
            order = event.activity_task_completed_event_attributes.scheduled_event_id
            spans += [(begun[order], at)] if scheduled[order] == activity else []
    return spans


async def taken_up(temporal, workflow_id):
    """Return when a worker first took a run up."""
    kind = EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
    async for event in temporal.get_workflow_handle(workflow_id).fetch_history_events():
        if event.event_type == kind:
            return event.event_time.ToNanoseconds()
    raise AssertionError(f"{workflow_id} was never taken up")
