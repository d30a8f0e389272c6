"""One activity makes the calls of a step and asks the model for the next one, unless something speaks against it."""

import asyncio
import time
import uuid
from datetime import timedelta

import pytest
import pytest_asyncio
from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflowservice.v1 import PauseActivityRequest, ResetActivityRequest, UnpauseActivityRequest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.cached_runs import CachedRuns
from activities.records import Records
from activities.runs.notifications import PERSON
from activities.steps import Steps
from backstay.task.task import URGENT
from backstay.testing import Reply
from tests.e2e.labelled import DONE, Labelled, told
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import CACHED, ended, engine
from tests.histories import activities_in
from tests.requirements import promise
from workflows import WORKFLOWS
from workflows.dispatch.activity_calls import ActivityCalls

POLICY = (
    "default: {read_only: allow, write_safe: allow, restricted_write: allow}\nrepeated: allow\nundo: {default: allow}\n"
)
LOOK, PAY = Reply(calls=[("desk__look", {})]), Reply(calls=[("desk__pay", {})])
SLOW = Reply(calls=[("desk__look_slowly", {})])
TURNS = ("cancelled", "terminated")
"""The runs whose writes wait for files named after the run: the second one for `…2`, the third one for `…3`."""
BOTH = Reply(calls=[("desk__pay", {"n": 1}), ("desk__look", {}), ("desk__pay", {"n": 2})])
TOKEN = "ghp_" + "a1B2c3D4" * 4 + "e5F6"
INTERRUPTED_S = 20
"""A guard against waiting for the model's whole answer, which takes longer."""
ANSWER_S = 30


class Desk:
    """Scripts of models by the labels of their runs, and what each run waits for."""

    def __init__(self):
        self.scripts = Labelled()
        self.asked: dict[str, asyncio.Event] = {}
        self.held: dict[str, int] = {}
        self.answers_after: dict[str, float] = {}

    def add(self, label, replies, held, answers_after=ANSWER_S):
        """Answer a run in turn; the request of the number `held` is answered only after a while."""
        self.asked[label], self.held[label] = asyncio.Event(), held
        self.answers_after[label] = answers_after
        self.scripts.scripts[label] = [*replies, DONE]

    async def __call__(self, conversation):
        reply = self.scripts(conversation)
        label = next(label for label in self.asked if f"<{label}>" in conversation.task)
        if self.scripts.asked[label] == self.held[label]:
            self.asked[label].set()
            await asyncio.sleep(self.answers_after[label])
        return reply


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ahead")
    declared = {"pay": {"undo": {"tool": "desk.pay_back", "arguments": {}}}, "send": {"idempotent": True}}
    tools = [reads("look"), reads("look_slowly"), reads("look_long"), reads("fail")]
    tools += [writes("pay"), writes("pay_back"), writes("pay_slowly"), writes("send"), writes("keep")]
    tools += [writes(f"pay_{name}") for name in TURNS]
    answers = {
        "look": {"data": "seen"},
        "look_slowly": {"data": "seen at last", "until": "go"},
        "look_long": {"data": "seen", "until": "long"},
        "fail": {"error": "no such thing"},
        "pay": {"data": {"id": "p1"}},
        "pay_back": {"data": {}},
        "keep": {"data": {}},
        "pay_slowly": {"data": {"id": "p2"}, "until": "paid"},
        "send": [{"die": True}, {"data": {}}],
    }
    for name in TURNS:
        answers[f"pay_{name}"] = [{"data": {}}, *({"data": {}, "until": f"{name}{n}"} for n in (2, 3)), {"data": {}}]
    server = ScriptedServer(folder / "desk.json", tools, answers, declared)
    desk = Desk()
    async with engine(temporal, folder, desk, policy=POLICY, toolbox=toolbox_of_servers(folder, desk=server)) as made:
        made.desk, made.server, made.folder = desk, server, folder
        yield made


async def begun(made, label, *replies, held=0, answers_after=ANSWER_S, **task):
    made.desk.add(label, replies, held, answers_after)
    return await made.start({"text": f"<{label}>", **task})


async def names_of(handle):
    events = (await handle.fetch_history()).events
    scheduled = [event.activity_task_scheduled_event_attributes.activity_type.name for event in events]
    return [name for name in scheduled if name]


async def reached(made, label):
    await asyncio.wait_for(made.desk.asked[label].wait(), 150)


async def called(made, tool, times):
    async with asyncio.timeout(150):
        while len(made.server.calls(tool)) < times:
            await asyncio.sleep(0.05)


async def assert_interrupted_first(handle):
    """Assert that the activity was interrupted before anybody had looked at what the person wrote."""
    looked, interrupted = None, None
    for event in (await handle.fetch_history()).events:
        if event.activity_task_scheduled_event_attributes.activity_type.name == "hide_secrets":
            looked = event.event_id
        if event.HasField("activity_task_cancel_requested_event_attributes"):
            interrupted = interrupted or event.event_id
        if looked and event.activity_task_completed_event_attributes.scheduled_event_id == looked:
            assert interrupted, "the words were looked at before"
            return
    raise AssertionError("nobody has looked at the words")


def charged(result):
    return result["usage"]["llm_cost_usd"]


@promise("runs:one-activity")
async def test_a_step_is_one_activity_and_its_calls_keep_their_order(opened):
    handle = await begun(opened, "plain", LOOK, BOTH, PAY)
    before = len(opened.server.calls("pay"))
    result = await ended(handle)

    assert result["outcome"] == "completed"
    assert await names_of(handle) == ["open_run", "ask_model", *["act_and_ask"] * 3, "close_run"]
    assert [call["arguments"] for call in opened.server.calls("pay")][before:] == [{"n": 1}, {"n": 2}, {}]
    assert [effect["n"] for effect in result["effects"]] == [1, 2, 3]
    named = [(event["name"], event["step_index"]) for event in result["events"]]
    assert named.count(("action.called", 2)) == 3
    assert named[-3:-1] == [("action.called", 3), ("model.asked", 4)]
    assert result["usage"]["steps"] == 4


@promise("runs:one-activity")
async def test_the_same_activity_asks_after_calls_of_which_one_is_known_to_have_failed(opened):
    handle = await begun(opened, "failing", Reply(calls=[("desk__fail", {}), ("desk__look", {})]))
    assert (await ended(handle))["outcome"] == "completed"

    assert await names_of(handle) == ["open_run", "ask_model", "act_and_ask", "close_run"]
    assert "no such thing" in opened.desk.scripts.heard["failing"]


@promise("runs:one-activity")
@pytest.mark.parametrize("lives", ["here", "elsewhere", "left-behind-here"])
async def test_what_a_person_says_while_a_call_takes_its_time_is_read_at_that_same_step(opened, monkeypatch, lives):
    asked = asked_through_the_server(monkeypatch)
    # However long the call takes here: only a run that was terminated is worth asking the server about.
    monkeypatch.setattr("activities.steps.ENDED_UNSEEN_S", 600)
    if lives == "elsewhere":
        monkeypatch.setattr(CachedRuns, "says", lambda *_: None)
    if lives == "left-behind-here":
        behind = property(lambda calls: {"news": calls.news, "step": calls.ahead - 1})
        monkeypatch.setattr(ActivityCalls, "heard", behind)
    (opened.folder / "go").unlink(missing_ok=True)
    before = len(opened.server.calls("look_slowly"))
    handle = await begun(opened, f"message-{lives}", SLOW, LOOK)
    await called(opened, "look_slowly", before + 1)
    await handle.execute_update("message", {"text": "leave out France", "by": "ana"})
    heard = listened(opened.desk, f"message-{lives}")
    (opened.folder / "go").touch()
    assert (await ended(handle))["outcome"] == "completed"

    assert "seen at last" in heard[0]
    assert (handle.id in asked) == (lives != "here" or not CACHED)
    assert "leave out France" in heard[0]
    made = activities_in((await handle.fetch_history()).events)
    assert [name for name, _, _ in made].count("ask_model") == 3


@promise("runs:one-activity")
async def test_a_run_that_has_left_the_cache_of_its_worker_is_asked_through_the_server(temporal, tmp_path, monkeypatch):
    asked = asked_through_the_server(monkeypatch)
    monkeypatch.setattr("activities.steps.ENDED_UNSEEN_S", 600)
    rules = Desk()
    server = ScriptedServer(tmp_path / "desk.json", [reads("look")], {"look": {"data": "seen", "until": "go"}})
    site = {"policy": POLICY, "toolbox": toolbox_of_servers(tmp_path, desk=server), "replayed": False}
    async with engine(temporal, tmp_path, rules, cached=1, **site) as made:
        made.desk, made.server = rules, server
        first = await begun(made, "first", LOOK)
        await called(made, "look", 1)
        # There is room for a single one.
        assert (await ended(await begun(made, "second")))["outcome"] == "completed"
        (tmp_path / "go").touch()
        assert (await ended(first))["outcome"] == "completed"

    assert first.id in asked


@promise("runs:one-activity")
async def test_what_is_looked_at_for_secrets_while_a_call_ends_is_read_at_that_same_step(opened, monkeypatch):
    looks, go = slow_looks(monkeypatch)
    handle = await begun(opened, "looked-at", Reply(calls=[("desk__look_long", {})]), LOOK)
    await called(opened, "look_long", 1)
    sending = asyncio.ensure_future(handle.execute_update("message", {"text": "leave out France", "by": "ana"}))
    await asyncio.wait_for(looks.wait(), 150)
    heard = listened(opened.desk, "looked-at")
    (opened.folder / "long").touch()
    async with asyncio.timeout(150):
        while await completed(handle) < 3:
            await asyncio.sleep(0.1)
    go.set()
    await sending
    assert (await ended(handle))["outcome"] == "completed"

    assert "leave out France" in heard[0]


def asked_through_the_server(monkeypatch):
    """Return a list that takes up the runs that activities ask through the server from now on."""
    says, asked = Steps._run_says, []

    async def noted(steps):
        asked.append(activity.info().workflow_id)
        return await says(steps)

    monkeypatch.setattr(Steps, "_run_says", noted)
    return asked


def slow_looks(monkeypatch):
    """Return what is set when words of people are looked at, and what they wait for then."""
    show, looks, go = Records.show, asyncio.Event(), asyncio.Event()

    async def shown(records, run, payload, source, *more):
        if source == PERSON:
            looks.set()
            await asyncio.wait_for(go.wait(), 150)
        return await show(records, run, payload, source, *more)

    monkeypatch.setattr(Records, "show", shown)
    return looks, go


def listened(desk, label):
    """Return a list that takes up what the model is told from now on, after its first answer."""
    heard, replies = [], desk.scripts.scripts[label]
    desk.scripts.scripts[label] = lambda conversation: (
        heard.append(told(conversation)) or replies[min(len(heard), len(replies) - 1)]
    )
    return heard


async def completed(handle):
    """Return how many activities of a run have answered."""
    events = (await handle.fetch_history()).events
    return sum(event.HasField("activity_task_completed_event_attributes") for event in events)


@promise("runs:one-activity")
async def test_a_pause_interrupts_the_model_whose_reservation_is_charged_and_no_call_is_made_again(opened):
    handle = await begun(opened, "pause", PAY, LOOK, held=2)
    before = len(opened.server.calls("pay"))
    await reached(opened, "pause")
    began = time.monotonic()
    await handle.execute_update("pause", {"reason": f"wait, and never tell {TOKEN}", "by": "ana"})
    async with asyncio.timeout(INTERRUPTED_S):
        while (await handle.query("status"))["state"] != "paused":
            await asyncio.sleep(0.1)
    took = time.monotonic() - began
    budget, shown = await handle.query("budget"), (await handle.query("status"))["paused"]
    await handle.execute_update("resume", {"by": "ana"})
    result = await ended(handle)

    assert took < INTERRUPTED_S
    await assert_interrupted_first(handle)
    assert "wait, and never tell ⟦secret:" in shown
    assert TOKEN not in shown
    assert budget["reserved_usd"] == 0
    assert budget["usage"]["llm_cost_usd"] > 0
    assert len(opened.server.calls("pay")) == before + 1
    assert result["outcome"] == "completed"
    interrupted = [made for made in activities_in((await handle.fetch_history()).events) if made.name == "ask_model"]
    assert [made.answer is None for made in interrupted] == [False, True, False]


@promise("runs:one-activity")
async def test_a_run_goes_on_after_a_pause_that_is_refused(opened):
    handle = await begun(opened, "refused", PAY, LOOK, held=2, answers_after=2)
    await reached(opened, "refused")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("pause", {"by": TOKEN})
    assert "a secret is in it" in str(refused.value.cause)
    assert (await ended(handle))["outcome"] == "completed"


@promise("runs:one-activity")
@pytest.mark.thorough
async def test_a_pause_whose_words_are_still_looked_at_holds_the_run_and_can_be_lifted(opened, monkeypatch):
    looks, go = slow_looks(monkeypatch)
    handle = await begun(opened, "lifted", PAY, LOOK, held=2)
    await reached(opened, "lifted")
    pausing = asyncio.ensure_future(handle.execute_update("pause", {"reason": "wait for me", "by": "ana"}))
    await asyncio.wait_for(looks.wait(), 150)
    async with asyncio.timeout(INTERRUPTED_S):
        while (await handle.query("status"))["state"] != "paused":
            await asyncio.sleep(0.1)
    assert (await handle.query("interruption"))["held_up"] == "paused"
    resuming = asyncio.ensure_future(handle.execute_update("resume", {"by": "ana"}))
    await asyncio.sleep(1)
    assert not resuming.done()
    go.set()

    assert await pausing == {"paused": True}
    assert await resuming == {"paused": False, "was": "wait for me"}
    assert (await ended(handle))["outcome"] == "completed"


@promise("runs:one-activity")
async def test_an_undo_interrupts_the_model_and_the_run_goes_on(opened):
    both = Reply(calls=[("desk__pay", {}), ("desk__keep", {})])
    handle = await begun(opened, "undo", both, LOOK, held=2)
    await reached(opened, "undo")
    ask = {"reason": "it was too much", "by": "ana"}
    undone = await asyncio.wait_for(handle.execute_update("undo", ask), INTERRUPTED_S)
    result = await ended(handle)
    await assert_interrupted_first(handle)

    assert [effect["state"] for effect in undone["undone"]] == ["kept", "compensated"]
    assert result["outcome"] == "completed"
    ordered = [event.activity_task_scheduled_event_attributes for event in (await handle.fetch_history()).events]
    urgent = [given.activity_type.name for given in ordered if given.priority.priority_key == URGENT]
    assert sorted(urgent) == ["call_tool", "hide_secrets", "settle_effect"]


@promise("runs:one-activity")
async def test_a_cancellation_interrupts_the_model(opened):
    handle = await begun(opened, "cancel", PAY, LOOK, held=2)
    await reached(opened, "cancel")
    await handle.cancel()
    async with asyncio.timeout(INTERRUPTED_S):
        while (await handle.describe()).close_time is None:
            await asyncio.sleep(0.1)
    assert (await handle.query("result"))["outcome"] == "cancelled"


@promise("runs:one-activity")
async def test_a_fault_of_the_model_hides_no_result_and_is_tried_again(opened):
    handle = await begun(opened, "fault", PAY, Reply(status=500, text="overloaded"), LOOK)
    before = len(opened.server.calls("pay"))
    result = await ended(handle)

    assert result["outcome"] == "completed"
    assert len(opened.server.calls("pay")) == before + 1
    assert [event["name"] for event in result["events"]].count("model.failed") == 1
    assert "p1" in opened.desk.scripts.heard["fault"]


@promise("runs:one-activity")
async def test_what_a_call_may_cost_at_most_is_learned_where_too_little_was_reserved(opened):
    long = Reply(calls=[("desk__look", {"why": "x" * 20_000})])
    handle = await begun(opened, "small", LOOK, long, LOOK, budget={"max_llm_cost_usd": 0.5})
    result = await ended(handle)

    assert result["outcome"] == "completed"
    assert [event for event in result["events"] if event["name"] == "model.failed"] == []
    made = [made for made in activities_in((await handle.fetch_history()).events) if made.name == "ask_model"]
    assert charged(result) <= sum(made.given["micro"] for made in made) / 1e6


@promise("runs:one-activity")
async def test_a_run_that_is_out_of_time_after_its_calls_asks_no_model(opened):
    opened.server.path.with_name("go").unlink(missing_ok=True)
    before = len(opened.server.calls("look_slowly"))
    task = {"budget": {"max_wall_seconds": 3, "on_exhausted": "fail"}}
    handle = await begun(opened, "late", SLOW, LOOK, **task)
    async with asyncio.timeout(150):
        while len(opened.server.calls("look_slowly")) == before:
            await asyncio.sleep(0.05)
    await asyncio.sleep(3)
    (opened.folder / "go").touch()
    result = await ended(handle)

    assert result["outcome"] == "budget_exceeded"
    assert opened.desk.scripts.asked["late"] == 1


@promise("runs:one-activity")
async def test_writes_to_one_provider_keep_their_order_where_the_first_is_sent_again(opened):
    both = Reply(calls=[("desk__send", {"n": 1}), ("desk__send", {"n": 2})])
    result = await ended(await begun(opened, "again", both))

    assert result["outcome"] == "completed"
    assert [call["arguments"]["n"] for call in opened.server.calls("send")] == [1, 1, 2]


@promise("runs:one-activity")
async def test_a_cancelled_run_makes_no_call_that_waited_for_another_one(opened):
    both = Reply(calls=[("desk__pay_slowly", {"n": 1}), ("desk__pay_slowly", {"n": 2})])
    handle = await begun(opened, "waiting", both)
    await called(opened, "pay_slowly", 1)
    await handle.cancel()
    await asyncio.sleep(4)
    (opened.folder / "paid").touch()
    async with asyncio.timeout(150):
        while (await handle.describe()).close_time is None:
            await asyncio.sleep(0.1)

    assert (await handle.query("result"))["outcome"] == "cancelled"
    assert [call["arguments"]["n"] for call in opened.server.calls("pay_slowly")] == [1]


async def paused_at_its_second_call(opened, label):
    """Begin a run of five writes one after the other; return it when its pause has reached the activity."""
    handle = await begun(opened, label, Reply(calls=[(f"desk__pay_{label}", {"n": n}) for n in range(1, 6)]))
    await called(opened, f"pay_{label}", 2)
    await handle.execute_update("pause", {"reason": "wait", "by": "ana"})
    # The worker learns of it with a heartbeat, once a second.
    await asyncio.sleep(4)
    (opened.folder / f"{label}2").touch()
    await called(opened, f"pay_{label}", 3)
    return handle


@promise("runs:one-activity")
async def test_a_run_that_is_paused_and_then_ends_makes_no_call_that_waited_for_another_one(opened):
    handle = await paused_at_its_second_call(opened, "cancelled")
    await handle.cancel()
    async with asyncio.timeout(150):
        while (await handle.query("interruption"))["held_up"] != "cancelled":
            await asyncio.sleep(0.1)
    (opened.folder / "cancelled3").touch()
    async with asyncio.timeout(150):
        while (await handle.describe()).close_time is None:
            await asyncio.sleep(0.1)

    assert (await handle.query("result"))["outcome"] == "cancelled"
    assert [call["arguments"]["n"] for call in opened.server.calls("pay_cancelled")] == [1, 2, 3]


@promise("runs:one-activity")
@pytest.mark.thorough
async def test_a_run_that_is_paused_and_then_terminated_makes_no_further_call(opened):
    handle = await paused_at_its_second_call(opened, "terminated")
    await handle.terminate()
    (opened.folder / "terminated3").touch()
    await asyncio.sleep(4)

    assert [call["arguments"]["n"] for call in opened.server.calls("pay_terminated")] == [1, 2, 3]


@promise("runs:one-activity")
@pytest.mark.thorough
async def test_a_decision_that_comes_after_the_cancellation_is_not_carried_out(opened):
    question = Reply(calls=[("ask_person", {"question": "Go on?"})])
    for label, reply in (("cancelled-finish", DONE), ("cancelled-ask", question)):
        handle = await begun(opened, label, PAY, reply, held=2, answers_after=0.7)
        await reached(opened, label)
        await handle.cancel()
        async with asyncio.timeout(INTERRUPTED_S):
            while (await handle.describe()).close_time is None:
                await asyncio.sleep(0.1)
        result = await handle.query("result")
        assert result["outcome"] == "cancelled"
        assert [effect["state"] for effect in result["undone"]] == ["compensated"]


@promise("runs:one-activity")
@pytest.mark.thorough
async def test_a_pause_ends_no_run_whose_activity_no_worker_has_begun(temporal, tmp_path):
    rules = Desk()
    server = ScriptedServer(tmp_path / "desk.json", [writes("pay")], {"pay": {"data": {"id": "p1"}}})
    site = {"policy": POLICY, "task_queue": f"queue-{uuid.uuid4()}"}
    site["toolbox"] = toolbox_of_servers(tmp_path, desk=server)
    async with engine(temporal, tmp_path, rules, replayed=False, **site) as made:
        made.desk = rules
        handle = await begun(made, "gone", PAY, held=1, answers_after=2)
        await reached(made, "gone")
    runner = UnsandboxedWorkflowRunner()
    async with Worker(temporal, task_queue=site["task_queue"], workflows=WORKFLOWS, workflow_runner=runner):
        async with asyncio.timeout(150):
            while (await names_of(handle))[-1] != "act_and_ask":
                await asyncio.sleep(0.1)
        await handle.execute_update("pause", {"reason": "wait", "by": "ana"})
    async with engine(temporal, tmp_path, rules, **site):
        async with asyncio.timeout(150):
            while (await handle.query("status"))["state"] != "paused":
                await asyncio.sleep(0.1)
        assert (await handle.query("budget"))["reserved_usd"] == 0
        await handle.execute_update("resume", {"by": "ana"})
        result = await ended(handle)

    assert result["outcome"] == "completed"
    assert len(server.calls("pay")) == 1


@promise("runs:one-activity")
@pytest.mark.thorough
async def test_what_a_person_says_during_calls_too_fast_to_ask_the_run_after_them_is_read_soon(
    temporal, tmp_path, monkeypatch
):
    monkeypatch.setattr("activities.steps.UNSEEN_S", 600)
    monkeypatch.setattr("workflows.dispatch.activity_calls.UNASKED", timedelta(seconds=600))
    rules = Desk()
    server = ScriptedServer(tmp_path / "desk.json", [reads("look")], {"look": {"data": "seen", "until": "go"}})
    site = {"policy": POLICY, "toolbox": toolbox_of_servers(tmp_path, desk=server), "replayed": False}
    async with engine(temporal, tmp_path, rules, **site) as made:
        made.desk, made.server = rules, server
        handle = await begun(made, "fast", LOOK, LOOK)
        await called(made, "look", 1)
        await handle.execute_update("message", {"text": "leave out France", "by": "ana"})
        # The worker learns of it with a heartbeat, once a second.
        await asyncio.sleep(4)
        heard = listened(rules, "fast")
        (tmp_path / "go").touch()
        assert (await ended(handle))["outcome"] == "completed"

    assert "leave out France" in heard[0]


@promise("runs:one-activity")
@pytest.mark.thorough
async def test_calls_that_are_too_large_together_are_made_by_themselves(temporal, tmp_path, monkeypatch):
    monkeypatch.setattr("workflows.dispatch.activity_calls.PAYLOAD", 9_000)
    large = Reply(calls=[("desk__pay", {"n": n, "many": list(range(1_200))}) for n in range(2)])
    server = ScriptedServer(tmp_path / "desk.json", [writes("pay")], {"pay": {"data": {"id": "p1"}}})
    site = {"policy": POLICY, "toolbox": toolbox_of_servers(tmp_path, desk=server), "replayed": False}
    async with engine(temporal, tmp_path, [large, DONE], **site) as made:
        handle = await made.start("pay")
        result = await ended(handle)

    assert result["outcome"] == "completed"
    assert sorted(call["arguments"]["n"] for call in server.calls("pay")) == [0, 1]
    assert await names_of(handle) == ["open_run", "ask_model", "call_tool", "call_tool", "ask_model", "close_run"]


@promise("runs:one-activity")
@pytest.mark.thorough
@pytest.mark.parametrize("forgets", [False, True], ids=["heartbeats kept", "heartbeats forgotten"])
async def test_an_activity_that_is_reset_after_the_model_was_asked_does_not_ask_it_again(opened, monkeypatch, forgets):
    decided = Steps._decided

    async def lost(steps, ask, acted):
        monkeypatch.undo()
        await decided(steps, ask, acted)
        raise ApplicationError("the worker is lost", next_retry_delay=timedelta(seconds=600))

    monkeypatch.setattr(Steps, "_decided", lost)
    # It takes long enough for a heartbeat.
    handle = await begun(opened, f"reset-{forgets}", PAY, LOOK, held=2, answers_after=4)
    async with asyncio.timeout(150):
        while not (waiting := [left for left in await pending_activities(handle) if left.attempt == 2]):
            await asyncio.sleep(0.2)
    await opened.client.workflow_service.reset_activity(
        ResetActivityRequest(**named(opened, handle, waiting[0]), reset_heartbeat=forgets)
    )
    result = await ended(handle)

    assert result["outcome"] == "completed"
    assert await names_of(handle) == ["open_run", "ask_model", "act_and_ask", "ask_model", "close_run"]
    assert [effect["n"] for effect in result["effects"]] == [1]


@promise("runs:by-operator")
async def test_a_run_whose_activity_is_reset_while_the_model_is_asked_asks_anew_and_undoes_nothing(opened):
    handle, waiting = await asking_alone(opened, "reset-alone")
    await opened.client.workflow_service.reset_activity(ResetActivityRequest(**named(opened, handle, waiting)))
    await assert_asked_anew(opened, handle, "reset-alone")


@promise("runs:by-operator")
@pytest.mark.parametrize("anew", [False, True], ids=["attempts counted", "attempts forgotten"])
async def test_a_run_whose_activity_is_paused_while_the_model_is_asked_asks_anew_by_a_reservation_of_its_own(
    opened, anew
):
    handle, waiting = await asking_alone(opened, f"paused-{anew}")
    service, named_so = opened.client.workflow_service, named(opened, handle, waiting)
    await service.pause_activity(PauseActivityRequest(**named_so))
    async with asyncio.timeout(150):
        while (await pending_activities(handle))[0].state != PendingActivityState.PENDING_ACTIVITY_STATE_PAUSED:
            await asyncio.sleep(0.2)
    await service.unpause_activity(UnpauseActivityRequest(**named_so, reset_attempts=anew, reset_heartbeat=anew))
    await assert_asked_anew(opened, handle, f"paused-{anew}")


async def asking_alone(opened, label):
    """Begin a run that has paid; return it with the activity that asks its model, after a fault of the first one."""
    handle = await begun(opened, label, PAY, Reply(status=500, text="overloaded"), LOOK, held=3)
    await reached(opened, label)
    (waiting,) = await pending_activities(handle)
    return handle, waiting


async def assert_asked_anew(opened, handle, label):
    """Assert that a run goes on with what it did, and asks the model once in each activity."""
    result = await ended(handle)
    assert (result["outcome"], result["undone"]) == ("completed", [])
    assert [effect["state"] for effect in result["effects"]] == ["applied"]
    names = await names_of(handle)
    assert names == ["open_run", "ask_model", "act_and_ask", "ask_model", "ask_model", "close_run"]
    assert opened.desk.scripts.asked[label] == 4


def named(opened, handle, waiting):
    execution = WorkflowExecution(workflow_id=handle.id)
    return {"namespace": opened.client.namespace, "execution": execution, "id": waiting.activity_id}


async def pending_activities(handle):
    return (await handle.describe()).raw_description.pending_activities
