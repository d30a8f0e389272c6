"""What a run carries is one model, and comes back whole from its JSON."""

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.approvals.approval import ApprovalRequest, CallVerdict
from backstay.approvals.notice import NoticeDraft, NoticeKind
from backstay.budgets.budget import Budget, Ledger
from backstay.budgets.share import Share
from backstay.budgets.usage import ModelUsage, Usage
from backstay.effects.compensation import KEPT_UNDONE, Compensation, Undone, UndoStack
from backstay.plans.plan_run import PlanRun
from backstay.policies.accepted import AcceptedLine
from backstay.policies.policy import Policy
from backstay.responses import OpenedRun
from backstay.task.context import ContextItem
from backstay.task.decision import CallTools, Decision, Finish
from backstay.task.event import EventDraft
from backstay.task.plan import Plan, PlanStep
from backstay.task.result import Failure
from backstay.task.status import State, StepProgress
from backstay.task.task import Task
from backstay.tools.program import Halt, ProgramAnswer
from backstay.tools.tool import Tool, ToolCall, ToolResult
from tests.requirements import promise
from workflows.context.carrying import packed, unpacked
from workflows.state.state import KEPT_ANSWERS, KEPT_WRITES, RunState, Write, write_key
from workflows.state.work import (
    MOST_HELD,
    BegunBatch,
    BegunCall,
    EndedWork,
    OpenRequest,
    OpenSubrun,
    PlanAnswers,
    ProgramWork,
    RequestOutcome,
    Work,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)
TEXT = st.text(max_size=40)
COUNT = st.integers(0, 10**6)


@st.composite
def states(draw):
    """Draw a state in which every field differs from its default."""
    policy = Policy.admit({"ask": ["mail.send_email"]})
    opened = OpenedRun(store="s", model="m", policy=policy, policy_hash="p", prompt_hash="h", catalog="c", context="r")
    slot = Compensation(effect=draw(COUNT), tool=draw(TEXT), step=draw(COUNT), undo_tool="mail.recall", shown="how")
    held, reservation = Ledger(ceiling=10**9, finalize=5, spent=draw(COUNT)).reserve(draw(COUNT))
    state = RunState(
        run=f"{draw(TEXT)}/first",
        task=Task(text=draw(TEXT) or "t", input={"rows": draw(st.lists(COUNT, max_size=3))}),
        opened=opened,
        state=draw(st.sampled_from([state for state in State if state is not State.STARTING])),
        budget=Budget(max_steps=11, quotas={"mail.send_email": draw(COUNT)}),
        usage=Usage(steps=draw(COUNT), free_calls=1).called("mail.send_email").asked("m", ModelUsage(cost_micro=7)),
        ledger=held,
        undo=UndoStack().push(slot),
        context="ref",
        append=[ContextItem(kind="answer", call_id="c1", text=draw(TEXT))],
        next_effect=draw(st.integers(2, 99)),
        next_request=draw(st.integers(2, 99)),
        notices=[NoticeDraft(sequence=1, event=NoticeKind.EXPIRED, at=AT.isoformat(), request_id=draw(TEXT))],
        next_notice=draw(st.integers(2, 99)),
        next_plan=draw(st.integers(2, 99)),
        next_subrun=draw(st.integers(2, 99)),
        model="small",
        plans=[PlanRun.of(Plan(steps=(PlanStep(tool="mail.send_email"),)), state="PROPOSED", of_task=True)],
        step_results={draw(COUNT): "ref"},
        worst_micro=draw(st.integers(1, 99)),
        catalog="c2",
        first_event=2,
        active_seconds=draw(st.floats(0.5, 1e6)),
        paused=draw(TEXT),
        progress=[StepProgress(step=draw(COUNT), tool="mail.send_email", status="failed")],
        private=["crm"],
        programs_fault="no worker",
    )
    state.record_undone(Undone(effect=1, tool="mail.send_email", state="parked", detail=draw(TEXT)))
    state.record("run.started", draw(TEXT), AT, user_id=draw(TEXT))
    state.record_draft(EventDraft(name="action.called"), AT, kept_as=state.take_draft_number())
    state.remember_answer("", "e1", {"request_id": "r1", "answer": draw(TEXT)})
    state.remember_answer("ana", "e1", {"request_id": "r1", "answer": draw(TEXT)})
    state.record_decision("decide", draw(TEXT), AT, verified=True, verdict="approve", request_id="r1")
    state.record_refusal(draw(TEXT), AT, "DecisionRefused")
    state.keep_votes("undo", {"ana": 1000.5})
    state.record_write(ToolCall(id="c1", tool=Tool(name="mail.send_email"), arguments={"to": "a"}), 1, AT)
    state.record_write_ended(1, draw(TEXT))
    state.keep_digest("r1", "d")
    state.closed["r1"] = "approve by ana"
    state.proofs = 1
    state.undos = 1
    state.obey([AcceptedLine(verdict="allow", scope="run", tool="mail.send_email", definition="d")])
    state.work = work(draw(TEXT))
    assert reservation in state.ledger.open
    return state


def work(text):
    """Return work of which every field differs from its default."""
    call = ToolCall(id="c1", tool=Tool(name="mail.send_email"), arguments={"to": text})
    result = ToolResult(success=False, error=text, error_type="OutcomeUnknown")
    request = ApprovalRequest(id="r1", kind="call", question=text, answer_schema={"type": "object"})
    named = {0: CallVerdict(verdict="modify", arguments={"to": text})}
    share = Share(max_steps=1, max_tool_calls=0, max_code_runs=0)
    done = Work(
        searched=True,
        counted=True,
        decision=Decision(actions=(CallTools(calls=(call,)), Finish(summary=text)), context="ref"),
        unpaid=True,
        action=1,
        failed=True,
        agreed={"call": RequestOutcome(verdict="approve", calls=named, by=text)},
        batch=BegunBatch(
            refused={1: result},
            calls=(BegunCall(call=call, effect=1, send=2, result=result, question="q", reply={"sure": True}),),
        ),
        program=ProgramWork(halt=Halt(kind="waiting", calls=(call,)), made=1, answers=(ProgramAnswer(i=0),)),
        plan=PlanAnswers(answered={0: call, 1: result}, outputs=({"success": True},), proposed=("p1",), plan_id="p1"),
        planned=True,
        keeps=True,
        shares=(share,),
        subruns=(OpenSubrun(workflow_id="w", call=call, share=share),),
        ended=EndedWork(outcome="failed", error=Failure(type="Unfinished", message=text), undone={"parked": 1}),
        requests=(OpenRequest(key="call", request=request),),
        missing={"mail": "down"},
        repeats=2,
        ran=True,
        fault="line 1",
        said="FINAL_ANSWER: 1",
        succeeded=True,
        output_faults=1,
        output_fault="no number",
        looked_at={"proof": "signal 1"},
        message_bytes=7,
    )
    assert done.hold({"request_id": text}, 20)
    return done


@promise("runs:carried")
@settings(deadline=None, max_examples=5)
@given(TEXT)
def test_no_part_of_the_work_is_left_out_of_the_round_trip(text):
    done, fresh = work(text), Work()

    assert [name for name in Work.model_fields if getattr(done, name) == getattr(fresh, name)] == []
    assert Work.model_validate(done.model_dump(mode="json", by_alias=True)) == done


@promise("runs:carried")
def test_what_is_held_back_has_a_bound_and_comes_out_in_order():
    held = Work()

    assert [held.hold(number, MOST_HELD // 2) for number in range(3)] == [True, True, False]
    assert [held.take_held(), held.take_held()] == [0, 1]
    assert held.held_characters == 0


@promise("runs:carried")
@settings(deadline=None, max_examples=50)
@given(states())
def test_a_state_comes_back_whole_from_its_json(state):
    assert RunState.model_validate_json(state.model_dump_json()) == state


def write(number):
    return ToolCall(id="c1", tool=Tool(name="mail.send_email"), arguments={"to": f"{number}"})


@promise("runs:carried")
def test_the_writes_that_are_remembered_are_the_last_ones_also_after_the_state_was_carried_over():
    state = RunState(run="r", task=Task(text="t"))
    for number in range(KEPT_WRITES + 10):
        state.record_write(write(number), number, AT)
    state = RunState.model_validate(unpacked(packed(state.model_dump(mode="json", by_alias=True))))
    state.record_write(write("last"), 1000, AT)
    known = [number for number in range(KEPT_WRITES + 10) if state.same_write(write_key(write(number)))]

    assert known == list(range(11, KEPT_WRITES + 10))


@promise("runs:carried")
def test_a_repeated_write_that_failed_does_not_make_the_run_forget_the_first_one():
    state, same = RunState(run="r", task=Task(text="t")), write(1)
    state.record_write(same, 1, AT)
    state.record_write_ended(1, "sent")
    state.record_write(same, 2, AT)
    state.record_write_ended(2, None)

    assert state.same_write(write_key(same)) == Write(
        key=write_key(same), effect=1, at=AT.isoformat(timespec="seconds"), said="sent"
    )


@promise("runs:carried")
@settings(deadline=None, max_examples=5)
@given(states())
def test_no_field_is_left_out_of_the_round_trip(state):
    fresh = RunState(run="", task=Task(text="t"))

    assert [name for name in RunState.model_fields if getattr(state, name) == getattr(fresh, name)] == []


@promise("runs:history-state")
def test_a_state_of_a_newer_version_is_read_without_what_is_unknown():
    state = RunState(run="w/r", task=Task(text="t"))

    assert RunState.model_validate({**state.model_dump(mode="json"), "added_later": {"a": 1}}) == state


@promise("runs:carried")
def test_only_the_latest_answers_are_carried():
    state = RunState(run="w/r", task=Task(text="t"))
    for number in range(KEPT_ANSWERS + 3):
        state.remember_answer("", str(number), {"n": number})

    assert list(state.answered) == [str(number) for number in range(3, KEPT_ANSWERS + 3)]


@promise("undo:outcome")
def test_only_the_latest_undone_effects_are_carried_and_all_are_counted():
    state = RunState(run="w/r", task=Task(text="t"))
    for effect in range(3 * KEPT_UNDONE, 0, -1):
        state.record_undone(Undone(effect=effect, tool="t", state="compensated" if effect % 3 else "kept"))

    outcome = RunState.model_validate(state.model_dump(mode="json")).undo_outcome
    assert (outcome.compensated, outcome.kept, outcome.parked) == (2 * KEPT_UNDONE, KEPT_UNDONE, 0)
    assert [undone.effect for undone in outcome.last] == list(range(KEPT_UNDONE, 0, -1))


@promise("approvals:proofs-strangers")
def test_strangers_do_not_push_out_the_answers_of_verified_senders():
    state = RunState(run="w/r", task=Task(text="t"))
    state.remember_answer("ana", "e1", {"n": 1})
    for number in range(KEPT_ANSWERS + 3):
        state.remember_answer("", f"e{number}", {"n": number + 100})

    assert state.answer_to("ana", "e1") == {"n": 1}
    assert state.answer_to("", "e1") is None
    assert state.answer_to("bo", "e1") is None
