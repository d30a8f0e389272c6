"""The Python client: start, follow, decide, result, undo; against a real engine."""

import asyncio
import socket
import uuid
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from enum import IntEnum

import pytest
import pytest_asyncio
from temporalio.client import Client, Interceptor, OutboundInterceptor, WorkflowExecutionStatus
from temporalio.service import GrpcCompression, RPCError, RPCStatusCode

from activities.records import Records
from backstay import Approval, Task, connect
from backstay.client import Backstay, executions
from backstay.client import run as client_run
from backstay.client.connecting import compression
from backstay.errors import (
    DecisionRefused,
    NotVerified,
    Pruned,
    RunNotFound,
    RunTerminated,
    RunTimedOut,
    SettingsInvalid,
    TaskInvalid,
    Unreachable,
)
from backstay.task.result import Outcome
from backstay.task.status import State
from backstay.testing import Reply
from gateways.terminal.chat.turns import Turns
from tests.engine import Scripts, engine, held_by_temporal, reset
from tests.requirements import promise

KEY = "an approver key of this test"
POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
allow: [{tool: "mail.send_email", when: {to: {ends_with: "@free.example"}}}]
ask: [{tool: "mail.send_email", when: {to: {ends_with: "@strict.example"}}, approvers: ["ana@example.com"]}]
"""


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        scripts = Scripts()
        made = await stack.enter_async_context(
            engine(temporal, tmp_path_factory.mktemp("client"), scripts, policy=POLICY, approver_key=KEY)
        )
        # The policy names approvers, so that whoever tops up or undoes has to prove it as well.
        yield made, scripts, Backstay(temporal, task_queue=made.settings.task_queue, approver_key=KEY)


@pytest.fixture
def made(opened):
    return opened[0]


@pytest.fixture
def scripts(opened):
    return opened[1]


@pytest.fixture
def backstay(opened):
    return opened[2]


def mails(*recipients):
    return Reply(
        text="I write.", calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"}) for to in recipients]
    )


async def asked(run, count=1):
    """Follow the timeline until so many requests wait."""
    async with asyncio.timeout(150):
        async for event in run.events():
            if event.name == "approval.asked" and len(found := await run.pending()) >= count:
                return found
    raise AssertionError("the run ended without asking")


@asynccontextmanager
async def bounded(seconds=60):
    async with asyncio.timeout(seconds):
        yield


@promise("approvals:early")
async def test_a_decision_is_tried_again_while_its_request_is_not_open_yet(backstay, scripts, monkeypatch):
    monkeypatch.setattr(client_run, "OPENING_S", 30.0)
    run = await backstay.start(scripts.task(mails("a@strict.example")))
    await run.approve("r1", by="ana@example.com")
    assert (await run.result()).outcome is Outcome.COMPLETED
    monkeypatch.setattr(client_run, "OPENING_S", 0.5)
    run = await backstay.start(scripts.task(mails("a@strict.example")))
    with pytest.raises(DecisionRefused, match="request_id: no request r2"):
        await run.approve("r2", by="ana@example.com")
    await run.cancel()


@promise("approvals:early-proof")
async def test_a_proof_that_was_made_just_before_its_request_opened_is_made_again(backstay, scripts, monkeypatch):
    run = await backstay.start(scripts.task(mails("a@strict.example")))
    await asked(run)
    query, early = client_run.Run._query, []

    async def answered_early(self, name, *given):
        answer = await query(self, name, *given)
        if name != "status" or early:
            return answer
        early.append(name)
        return {**answer, "pending": []}

    monkeypatch.setattr(client_run.Run, "_query", answered_early)
    await run.decide({"request_id": "r1", "verdict": "approve", "by": "ana@example.com"})
    assert (early, (await run.result()).outcome) == (["status"], Outcome.COMPLETED)


@promise("clients:client")
async def test_who_holds_the_key_reads_what_an_open_run_has_stored(backstay, scripts):
    long = {"to": "a@strict.example", "subject": "s", "body": "b" * 10_000}
    run = await backstay.start(scripts.task(Reply(calls=[("mail__send_email", long)])))
    (request,) = await asked(run)
    assert await run.arguments(request.id) == long
    names = [event.name async for event in run.stored_events()]
    assert names[0] == "run.started"
    await run.cancel()


@promise("clients:client")
async def test_a_run_is_started_followed_approved_and_its_result_read(backstay, scripts, made):
    run = await backstay.start(Task.admit(scripts.task(mails("one@start.example"))))
    names = []

    async with bounded():
        async for event in run.events():
            names.append((event.n, event.name))
            if event.name == "approval.asked":
                (request,) = await run.pending()
                answered = await run.approve(request.id, by="ana@example.com")
    result = await run.result()

    assert [n for n, _ in names] == list(range(1, len(names) + 1))
    assert (names[0][1], names[-1][1]) == ("run.started", "run.ended")
    assert answered == {"request_id": "r1", "verdict": "approve", "state": "decided", "by": "ana@example.com"}
    assert (result.outcome, result.workflow_id) == (Outcome.COMPLETED, run.id)
    assert made.mailbox.sent().count("one@start.example") == 1
    assert (await run.status()).state is State.DONE


@promise("runs:attach")
async def test_the_same_id_while_open_attaches_instead_of_starting_twice(backstay, scripts):
    task = scripts.task(mails("one@attach.example"))
    first = await backstay.start(task, id="attached")
    (request,) = await asked(first)

    second = await backstay.start(task, id="attached")

    assert [request.id for request in await second.pending()] == [request.id]
    await second.reject(request.id, by="ana@example.com", stop=True)
    assert (await first.result()).outcome is Outcome.REJECTED


@promise("clients:once")
async def test_a_start_that_is_sent_again_starts_nothing_anew_though_the_run_has_ended(backstay, scripts):
    task = {**scripts.task(Reply(text="done")), "by": "ana@example.com"}
    runs = await asyncio.gather(*(backstay.start(task, "first-words", once=True) for _ in range(5)))
    ended = await runs[0].result()
    again = await backstay.start(task, "first-words", once=True)
    assert (await again.result()).run_id == ended.run_id
    with pytest.raises(DecisionRefused, match="id: another task was started as first-words; use another id"):
        await backstay.start(scripts.task(Reply(text="else")), "first-words", once=True)
    with pytest.raises(TaskInvalid, match="id: required with once"):
        await backstay.start(task, once=True)
    next_words = scripts.task(Reply(text="done too"))["text"]
    following = [await again.follow_up(next_words, id="second-words", once=True, by="ana@example.com")]
    last = await following[0].result()
    following.append(await again.follow_up(next_words, id="second-words", once=True, by="ana@example.com"))
    assert (await following[1].result()).run_id == last.run_id


class Lost(Interceptor):
    """Lose the answers to starts that Temporal has taken."""

    def __init__(self, status=RPCStatusCode.UNAVAILABLE, times=100):
        self.status = status
        self.left = times

    def intercept_client(self, next):  # noqa: A002 - Temporal's word
        return LostAnswers(next, self)


class LostAnswers(OutboundInterceptor):
    def __init__(self, next, lost):  # noqa: A002 - Temporal's word
        super().__init__(next)
        self.lost = lost

    async def start_workflow(self, input):  # noqa: A002 - Temporal's word
        started = await super().start_workflow(input)
        if self.lost.left:
            self.lost.left -= 1
            raise RPCError("the answer is lost", self.lost.status, b"")
        return started


@promise("clients:given-up")
async def test_a_start_that_temporal_gave_up_is_sent_again_only_where_nothing_begins_anew(backstay, scripts, temporal):
    lost = Lost(RPCStatusCode.CANCELLED, times=1)
    client = Client(**{**temporal.config(), "interceptors": [lost]})
    unheard = Backstay(client, task_queue=backstay.task_queue)
    task = {**scripts.task(Reply(text="done")), "by": "ana@example.com"}

    run = await unheard.start(task, "given-up", once=True)

    assert (await run.result()).success
    assert not lost.left
    lost.left = 1
    with pytest.raises(Unreachable):
        await unheard.start(task, "given-up-too")
    assert not lost.left


@promise("sessions:said-again")
async def test_what_is_said_again_in_a_chat_after_a_lost_answer_is_one_turn(backstay, scripts, temporal):
    lost = Lost()
    client = Client(**{**temporal.config(), "interceptors": [lost]})
    unheard = Backstay(client, task_queue=backstay.task_queue, approver_key=KEY)
    turns = Turns(unheard, "lost-answers", {"by": "ana@example.com"})
    for said in (scripts.task(Reply(text="done"))["text"] for _ in "12"):
        lost.left = 100
        with pytest.raises(Unreachable):
            await turns.start(said)
        lost.left = 0
        run = await turns.start(said)
        assert (await run.result()).outcome is Outcome.COMPLETED
    found = Turns(backstay, "lost-answers", {})
    async with asyncio.timeout(60):
        while len(found.runs) < 2:  # Temporal lists a run some moments after its start
            await found.find()
    assert [run.id for run in found.runs] == [run.id for run in turns.runs]


@promise("clients:refused")
async def test_an_invalid_task_is_refused_before_anything_is_sent(backstay):
    with pytest.raises(TaskInvalid, match=r"txt: unknown field"):
        await backstay.start({"txt": "x"}, id="never-begun")
    with pytest.raises(RunNotFound):
        await backstay.run("never-begun").is_open()


@promise("clients:refused")
async def test_refusals_come_back_as_errors_of_ours(backstay, scripts):
    run = await backstay.start(scripts.task(mails("one@refused.example")))
    (request,) = await asked(run)

    with pytest.raises(DecisionRefused, match=r"request_id: no request r99; open requests: r1"):
        await run.approve("r99", by="ana@example.com")
    with pytest.raises(DecisionRefused, match=r"args_digest: stale"):
        await run.approve(request.id, by="ana@example.com", args_digest="0" * 64)
    with pytest.raises(TaskInvalid, match=r"max_steps"):
        await run.top_up(by="ana@example.com", max_steps=-1)
    await run.approve(request.id, by="ana@example.com")
    await run.result()
    with pytest.raises(DecisionRefused, match=r"has ended"):
        await run.approve(request.id, by="ana@example.com")
    with pytest.raises(RunNotFound):
        await backstay.run("no-such-run").status()


@promise("approvals:bound")
async def test_an_approval_holds_for_the_arguments_that_were_given_however_long_they_are(backstay, scripts):
    letter = [("mail__send_email", {"to": "a@strict.example", "subject": "s", "body": "long " * 700})]
    run, other = [await backstay.start(scripts.task(Reply(calls=letter))) for _ in range(2)]
    (request,) = await asked(run)
    (theirs,) = await asked(other)
    assert request.calls[0].clipped > 0

    changed = theirs.model_copy(update={"args_digest": "0" * 64})
    with pytest.raises(DecisionRefused, match=r"args_digest: stale"):
        await run.approve(changed, by="ana@example.com")
    await run.approve(request, by="ana@example.com")
    await backstay.run(other.id).approve("r1", by="ana@example.com")

    assert [(await ended.result()).outcome for ended in (run, other)] == [Outcome.COMPLETED] * 2


@promise("clients:verified")
async def test_a_person_whom_the_rule_names_is_believed_with_a_key_and_not_without(backstay, scripts, made):
    unproven = Backstay(backstay.client, task_queue=backstay.task_queue)
    run = await unproven.start(scripts.task(mails("one@strict.example")))
    (request,) = await asked(run)

    with pytest.raises(NotVerified):
        await run.approve(request.id, by="ana@example.com")
    with pytest.raises(NotVerified):
        await run.approve(request.id, by="ana@example.com", key=b"another key")
    with pytest.raises(NotVerified):
        await run.top_up(by="ana@example.com", max_steps=1)
    await backstay.run(run.id).approve(request.id, by="ana@example.com", calls={0: {"verdict": "approve"}})

    assert (await run.result()).outcome is Outcome.COMPLETED
    assert made.mailbox.sent().count("one@strict.example") == 1


@promise("clients:decides")
@pytest.mark.thorough
async def test_a_batch_is_decided_call_by_call_and_with_other_arguments(backstay, scripts, made):
    run = await backstay.start(scripts.task(mails("keep@each.example", "drop@each.example", "change@each.example")))
    (request,) = await asked(run)

    await run.modify(
        request.id,
        {2: {"to": "changed@each.example"}},
        by="ana@example.com",
        comment="as agreed",
        args_digest=request.args_digest,
    )
    async with asyncio.timeout(150):
        while not (changed := [waiting for waiting in await run.pending() if waiting.id == "r2"]):
            await asyncio.sleep(0.1)
    assert made.mailbox.sent().count("keep@each.example") == 0
    await run.approve(changed[0], by="ana@example.com")
    await run.result()
    again = await backstay.start(scripts.task(mails("keep@again.example", "drop@again.example")))
    (request,) = await asked(again)
    await again.decide(
        Approval(
            request_id=request.id,
            verdict="approve",
            by="ana@example.com",
            calls={1: {"verdict": "reject"}},
            event_id="e1",
        )
    )
    await again.result()

    sent = made.mailbox.sent()
    assert {to for to in sent if to.endswith("@each.example")} == {
        "keep@each.example",
        "drop@each.example",
        "changed@each.example",
    }
    assert [to for to in sent if to.endswith("@again.example")] == ["keep@again.example"]


@promise("clients:event-id")
async def test_an_event_id_repeats_only_the_very_same_and_never_stands_for_something_else(backstay, scripts, made):
    run = await backstay.start(scripts.task(mails("one@event.example"), mails("two@event.example")))
    (first,) = await asked(run)
    yes = Approval(request_id=first.id, verdict="approve", by="ana@example.com", event_id="e")
    answer = await run.decide(yes)
    async with asyncio.timeout(150):
        while not (more := await run.pending()) or more[0].id == first.id:
            await asyncio.sleep(0.05)
    assert await run.decide(yes) == answer
    with pytest.raises(DecisionRefused, match="used for another decision"):
        await run.decide(Approval(request_id=more[0].id, verdict="reject", by="ana@example.com", event_id="e"))
    await run.message("Be quick.", by="ana@example.com", event_id="said")
    raised = await run.top_up(max_steps=3, by="ana@example.com", event_id="said")
    assert raised["max_steps"] == (await run.budget())["budget"]["max_steps"]
    await run.approve(more[0], by="ana@example.com")
    await run.result()
    assert {"one@event.example", "two@event.example"} <= set(made.mailbox.sent())


@promise("clients:event-id")
async def test_what_failed_under_an_event_id_is_not_lost_for_good_and_what_was_done_is_told_after_the_end(
    backstay, scripts, monkeypatch
):
    run = await backstay.start(scripts.task(mails("one@strict.example")))
    (request,) = await asked(run)
    show, left = Records.show, ["the store is away"]

    async def fails_once(self, run, payload, provider):
        if left and "axolotl" in str(payload):
            raise Pruned(left.pop())
        return await show(self, run, payload, provider)

    monkeypatch.setattr(Records, "show", fails_once)
    unsigned = Backstay(backstay.client, task_queue=backstay.task_queue)
    with pytest.raises(Pruned, match="the store is away"):
        await unsigned.run(run.id).message("Feed the axolotl.", event_id="said")
    told = await unsigned.run(run.id).message("Feed the axolotl.", event_id="said")
    assert await unsigned.run(run.id).message("Feed the axolotl.", event_id="said") == told

    yes = Approval(request_id=request.id, verdict="approve", by="ana@example.com", event_id="yes")
    for refused in (b"a key that is mended later", b"another one"):
        with pytest.raises(NotVerified):
            await backstay.run(run.id).decide(yes, key=refused)
    answer = await run.decide(yes)
    names = [event.name async for event in run.events()]
    assert names.count("message.received") == 1
    assert await backstay.run(run.id).decide(yes) == answer


@promise("clients:undo")
async def test_an_undo_is_signed_by_a_key_that_is_given_with_it_before_the_end_and_after_it(temporal, scripts, made):
    unsigned = Backstay(temporal, task_queue=made.settings.task_queue)
    run = await unsigned.start(scripts.task(mails("key@free.example")))
    await run.result()
    with pytest.raises(NotVerified):
        await run.undo(by="ana@example.com")
    assert [effect.state for effect in await run.undo(by="ana@example.com", key=KEY.encode())] == ["compensated"]


@promise("clients:earlier-run")
async def test_the_handle_of_an_earlier_run_of_a_name_undoes_reads_and_follows_that_run(backstay, scripts, made):
    results = []
    for to in ("old@free.example", "new@free.example"):
        run = await backstay.start({**scripts.task(mails(to)), "by": "ana@example.com"}, id="of-one-name")
        results.append(await run.result())
    old, new = (backstay.run("of-one-name", run_id=result.run_id) for result in results)

    following = await old.follow_up(scripts.task(Reply(text="done"))["text"], by="ana@example.com")
    follows = (await backstay.task_of(following.id, (await following.result()).run_id))["follows"]
    assert follows["run_id"] == results[0].run_id
    assert [event.at async for event in old.stored_events()] == [event.at for event in results[0].events]
    with pytest.raises(NotVerified):
        await old.undo(by="ana@example.com", key=b"another key")
    assert [effect.state for effect in await old.undo(by="ana@example.com")] == ["compensated"]
    assert [to for to in made.mailbox.sent() if to in {"old@free.example", "new@free.example"}] == ["new@free.example"]
    assert [effect.state for effect in await new.undo(by="ana@example.com")] == ["compensated"]


@promise("clients:earlier-run")
async def test_an_undo_of_one_run_of_a_name_is_not_taken_for_that_of_another(backstay, scripts, temporal):
    name = f"twice-{uuid.uuid4()}"
    first, second = [
        (await (await backstay.start(scripts.task(Reply(text="done")), id=name)).result()).run_id for _ in "12"
    ]
    # No worker polls this queue, so the undo stays open.
    waiting = Backstay(temporal, task_queue=f"nobody-{name}")
    open_undo = await waiting.start_undo(name, run_id=first)
    assert (await waiting.start_undo(name, run_id=first)).id == open_undo.id
    for other in (second, None):
        with pytest.raises(DecisionRefused, match="is open and undoes another run"):
            await waiting.start_undo(name, run_id=other)


@promise("clients:undo")
async def test_a_cancelled_run_keeps_what_the_policys_people_must_undo_and_still_tells_how_it_ended(
    backstay, scripts, made
):
    run = await backstay.start(scripts.task(mails("one@free.example"), mails("two@cancel.example")))
    await asked(run)

    await run.cancel()
    result = await run.result()

    assert (result.outcome, result.undone) == (Outcome.CANCELLED, ())
    assert "the effects are kept" in result.final_summary
    assert [effect.state for effect in await run.undo(by="ana@example.com")] == ["compensated"]
    assert "one@free.example" not in made.mailbox.sent()


@promise("clients:decides")
async def test_a_question_is_answered_and_a_held_run_goes_on_when_it_is_resumed(backstay, scripts):
    run = await backstay.start(scripts.task(Reply(calls=[("ask_person", {"question": "Which colour?"})])))
    (request,) = await asked(run)

    assert await run.pause("a walk", by="ana@example.com") == {"paused": True}
    await run.answer(request.id, {"colour": "blue"}, by="ana@example.com")
    assert (await run.top_up(by="ana@example.com", max_steps=5))["max_steps"] == 15
    assert (await run.resume(by="ana@example.com"))["was"] == "a walk"

    assert (await run.result()).budget.max_steps == 15


@promise("clients:undo")
@pytest.mark.thorough
async def test_undo_covers_an_open_run_and_later_an_ended_one(backstay, scripts, made):
    run = await backstay.start(scripts.task(mails("first@free.example"), mails("second@open.example")))
    (request,) = await asked(run)

    assert [slot["tool"] for slot in (await run.preview())["effects"]] == ["mail.send_email"]
    assert [effect.state for effect in await run.undo(by="ana@example.com")] == ["compensated"]
    assert "first@free.example" not in made.mailbox.sent()
    await run.approve(request.id, by="ana@example.com")
    await run.result()
    assert [effect.state for effect in await run.undo(by="ana@example.com")] == ["compensated"]
    assert "second@open.example" not in made.mailbox.sent()
    assert await run.undo(by="ana@example.com") == ()


@promise("clients:outages")
@pytest.mark.thorough
async def test_events_go_on_over_a_worker_that_ends_and_another_that_starts(temporal, tmp_path):
    scripts = Scripts()
    task = scripts.task(mails("one@restart.example"))
    async with AsyncExitStack() as first:
        made = await first.enter_async_context(engine(temporal, tmp_path, scripts))
        queue = made.settings.task_queue
        run = await Backstay(temporal, task_queue=queue).start(task)
        seen: list[str] = []
        waiting = asyncio.Event()

        async def follow():
            async for event in run.events():
                seen.append(event.name)
                if event.name == "approval.asked":
                    waiting.set()

        following = asyncio.create_task(follow())
        async with bounded(45):
            await waiting.wait()

    async with engine(temporal, tmp_path, scripts, task_queue=queue), bounded():
        await run.approve("r1", by="ana@example.com")
        await following
        assert (await run.result()).outcome is Outcome.COMPLETED
    assert seen[-1] == "run.ended"
    assert len([name for name in seen if name == "approval.asked"]) == 1


@promise("budget:unpriced")
async def test_a_run_whose_task_only_the_engine_can_judge_fails_with_the_same_error(backstay, scripts):
    run = await backstay.start(scripts.task(model="a model that nobody has priced"))

    with pytest.raises(TaskInvalid, match=r"model: no price is known"):
        await run.result()


@promise("clients:terminated")
async def test_a_terminated_run_says_so(backstay, scripts, temporal):
    run = await backstay.start(scripts.task(mails("one@terminated.example")))
    await asked(run)
    await temporal.get_workflow_handle(run.id).terminate("by a test")

    async with bounded():
        names = [event.name async for event in run.events()]
        with pytest.raises(RunTerminated, match=r"its effects are kept, `backstay undo"):
            await run.result()
    assert names[-1] == "approval.asked"


@promise("clients:paused-by-temporal")
async def test_a_run_that_temporal_itself_has_paused_says_so_and_how_it_goes_on(
    backstay, scripts, temporal, monkeypatch
):
    run = await backstay.start(scripts.task(mails("one@paused.example")))
    await asked(run)
    unsigned = Backstay(temporal, task_queue=backstay.task_queue).run(run.id)
    async with held_by_temporal(temporal, run.id):
        asks = [run.status, run.pending, run.preview, unsigned.pause, lambda: run.approve("r1", by="ana@example.com")]
        for ask in asks:
            with pytest.raises(Unreachable, match=f"has paused the run.+unpause --workflow-id {run.id}"):
                await ask()
        assert await run.is_open()
        assert (await backstay.execution(run.id)).is_open
        states = {state.name: state.value for state in WorkflowExecutionStatus}
        with monkeypatch.context() as newer:  # an SDK that has a name for it
            newer.setattr(executions, "WorkflowExecutionStatus", IntEnum("Status", states | {"PAUSED": 8}))
            assert (await backstay.execution(run.id)).is_open

    await run.approve("r1", by="ana@example.com")
    assert (await run.result()).outcome is Outcome.COMPLETED


@promise("clients:reset")
async def test_a_run_that_an_operator_resets_is_waited_for_to_its_end(backstay, scripts, made, temporal):
    run = await backstay.start(scripts.task(mails("one@reset.example")))
    await asked(run)
    first = (await run.status()).run_id
    waiting = [asyncio.ensure_future(each.result()) for each in (run, backstay.run(run.id, first))]
    for _ in range(5):
        await run.is_open()
    await reset(made, temporal.get_workflow_handle(run.id), task=0, execution=first)
    await asked(run)
    await run.approve("r1", by="ana@example.com")

    assert [(await each).outcome for each in waiting] == [Outcome.COMPLETED] * 2
    assert (await backstay.run(run.id, first).result()).outcome is Outcome.COMPLETED


@promise("approvals:at-the-end")
async def test_a_decision_that_comes_just_as_the_run_ends_is_told_that_it_has_ended(temporal):
    # Without a worker the server holds the decision until the run ends.
    backstay = Backstay(temporal, task_queue=f"nobody-{uuid.uuid4()}")
    runs = [await backstay.start("nothing") for _ in range(5)]

    async with asyncio.TaskGroup() as group:
        deciding = [group.create_task(_decided(run)) for run in runs]
        for run in runs:
            for _ in range(5):
                await run.is_open()
            await temporal.get_workflow_handle(run.id).terminate()

    assert [said.result() for said in deciding] == [f"the run {run.id} has ended" for run in runs]


async def _decided(run):
    with pytest.raises(DecisionRefused) as refused:
        await run.decide({"request_id": "r1", "verdict": "approve", "by": "ana"})
    return str(refused.value)


@promise("workers:time-limit")
async def test_a_run_that_a_time_limit_of_temporal_ended_says_so(backstay, scripts, temporal):
    name = f"late-{uuid.uuid4()}"
    # No worker polls this queue.
    await temporal.start_workflow(
        "RunTask", scripts.task(), id=name, task_queue=name, execution_timeout=timedelta(seconds=1)
    )

    async with bounded():
        with pytest.raises(RunTimedOut, match=r"a time limit of Temporal ended the run; its effects are kept"):
            await backstay.run(name).result()


@promise("clients:compression")
@pytest.mark.parametrize(
    ("address", "compressed"),
    [
        ("localhost:7233", False),
        ("127.0.0.1:7233", False),
        ("[::1]:7233", False),
        ("10.0.0.7:7233", True),
        ("temporal:7233", True),
        ("localhost.example:7233", True),
    ],
)
def test_messages_are_compressed_only_where_they_leave_the_machine(address, compressed):
    assert compression(address) is (GrpcCompression.GZIP if compressed else GrpcCompression.NONE)


@promise("clients:connect")
async def test_where_nothing_listens_connecting_fails_at_once_naming_the_address(unused_tcp_port):
    async with bounded(10):
        with pytest.raises(Unreachable, match=rf"127\.0\.0\.1:{unused_tcp_port}.*backstay dev"):
            async with connect(f"127.0.0.1:{unused_tcp_port}"):
                pass


@promise("clients:connect")
async def test_where_something_listens_that_is_no_temporal_connecting_fails_within_seconds():
    # The kernel takes connections, and nobody ever says a word.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        async with bounded(20):
            with pytest.raises(Unreachable, match=rf"127\.0\.0\.1:{port}"):
                async with connect(f"127.0.0.1:{port}"):
                    pass


@promise("clients:connect")
async def test_a_namespace_that_does_not_exist_is_named(temporal):
    with pytest.raises(SettingsInvalid, match=r"TEMPORAL_NAMESPACE: .*'nowhere'"):
        async with connect(temporal.service_client.config.target_host, namespace="nowhere"):
            pass


@promise("clients:connect")
async def test_an_existing_client_is_used_as_it_is(temporal):
    async with connect(client=temporal) as backstay:
        assert backstay.client is temporal
