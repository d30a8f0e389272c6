from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

import workflows
from backstay.client.connecting import DATA_CONVERTER
from backstay.effects.effect import Effect, EffectState
from backstay.tools.tool import ToolResult
from tests.engine import assert_no_task_failure, replayer
from tests.replay import models
from tests.replay.marks import holds
from tests.replay.merging import MergingRunner
from tests.replay.shapes import SHAPES, rules
from tests.replay.steps import ended, options
from tests.requirements import promise
from tests.sizes import FULL, spread
from workflows import run_task
from workflows.asking.approvals import Approvals
from workflows.calls import model_calls
from workflows.calls.reconcile import Reconcile
from workflows.calls.rollback import Rollback
from workflows.calls.tool_calls import ToolCalls

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))
SANDBOXED = spread(HISTORIES, 6)
"""Those that are also held to what a workflow may import and read; each such replay imports the workflows anew."""
UNKNOWN = "-> OutcomeUnknown"
HOLDS = {
    "lost-checked": ["call_tool", UNKNOWN, "settle_effect look", "call_tool verify"],
    "lost-proven": [UNKNOWN, *["call_tool verify"] * 3, "settle_effect did_not_happen", "call_tool"],
    "lost-happened": [UNKNOWN, "update decide", "settle_effect happened"],
    "lost-denied": [UNKNOWN, "update decide", "settle_effect did_not_happen", "ask_model"],
    "lost-again": [UNKNOWN, "call_tool verify", "update decide", "settle_effect did_not_happen", "call_tool"],
    "lost-undo": ["call_tool undo", UNKNOWN, "call_tool undo", "close_run"],
    "lost-undo-settled": [
        *["call_tool undo", UNKNOWN, "settle_effect look", "call_tool verify_undo"],
        *["call_tool undo", UNKNOWN, "settle_effect look", *["call_tool verify_undo"] * 3],
        *["settle_effect did_not_happen", "call_tool undo", "close_run"],
    ],
    "lost-cancelled": ["activity cancelled", UNKNOWN, "call_tool verify", *["call_tool undo"] * 2, "canceled"],
    "doubtful": ["call_tool", "call_tool verify", "ask_model"],
    "ordered": [*["call_tool"] * 2, "ask_model"],
    "repeated": ["call_tool", "update decide", "call_tool"],
    "quorum": [*["update decide", "check_proof"] * 2, "call_tool"],
    "authorised": [
        *["update decide", "check_proof"],
        *["update pause", "check_proof", "update resume", "check_proof", "update undo", "check_proof", "update undo"],
        *["call_tool undo", "update decide", "close_run"],
    ],
    "withheld": ["call_tool", "close_run", "canceled"],
    "topped-up": ["call_tool", "update top_up", "ask_model"],
    "budget-answered": ["call_tool", "update decide", "ask_model"],
    "reminded": ["announce", "timer", "announce", "timer", "announce", "update decide", "announce", "close_run"],
    "escalated": [*["timer", "announce"] * 2, "announce", "ask_model", "close_run"],
    "left-open": ["announce", "close_run", "canceled"],
    "told-apart": ["announce", "update decide", "announce", "close_run"],
    "paused": ["update pause", "update decide", "update resume", "call_tool"],
    "rehearsed": [
        *["call_tool", *["call_tool simulate"] * 2, "update decide"],
        *["call_tool", "check_call", "call_tool", "check_call", "call_tool", "close_run"],
    ],
    "program-rehearsed": [
        *["call_tool", *["call_tool simulate"] * 2, "update decide"],
        *["call_tool", "check_call", "call_tool", "check_call", "call_tool", "ask_model"],
    ],
    "fallback": ["open_run", "ask_model", "search_tools", *["ask_model"] * 2, "call_tool", "ask_model", "close_run"],
    "proposed": [
        *[*["keep_plan"] * 2, "update decide", "keep_plan", "update decide"],
        *["call_tool"] * 4,
        "ask_model",
    ],
    "plan-rejected": ["keep_plan", "update decide", "close_run"],
    "plan-expired": ["keep_plan", "timer", "announce", "close_run"],
    "plan-dry-run": ["keep_plan", "update decide", "call_tool", "call_tool simulate", "close_run"],
    "plan-reviewed": [*["call_tool"] * 3, "review", "update decide", "call_tool undo", "close_run"],
    "stopped-beside": [*["keep_plan"] * 2, "close_run"],
    "grouped": ["keep_plan", "update decide", *["call_tool"] * 4, "call_tool undo"],
    "followed": ["open_run", "ask_model", "call_tool", "ask_model", "close_run"],
    "message": ["ask_model", *["update message"] * 2, "update decide", "ask_model", "close_run"],
    "cancelled": ["call_tool", "activity cancelled", *["call_tool undo"] * 2, "close_run", "canceled"],
    "recalled": ["open_run", "ask_model", "call_tool", "ask_model", "recall", "call_tool", "ask_model", "close_run"],
    "undo-run": ["load_effects", *["settle_effect look", "call_tool undo"] * 2],
    "undo-run-lost": ["load_effects", "settle_effect look", "call_tool undo", UNKNOWN],
    "undo-run-found": ["load_effects", "settle_effect look", "call_tool undo", UNKNOWN],
    "undo-by-hand": ["load_effects", "hide_secrets", "settle_effect undone_by_hand", "load_effects"],
    "started": ["begin_start", "end_start"],
    "start-cancelled": ["begin_start", "end_start", "canceled"],
    "delegated": ["ask_model", "update decide", "begin_subruns", "end_subruns", "ask_model", "close_run"],
    "delegated-part": ["open_run", "ask_model", "update decide", "call_tool", "ask_model", "close_run"],
    "delegated-cancelled": ["update decide", "begin_subruns", "end_subruns", "close_run", "canceled"],
    "program-fed": ["resume_program", "update decide", "resume_program", "timed out", "resume_program", "digest"],
    "program-reads": ["resume_program", "call_together", *["call_tool"] * 3, "resume_program", "digest"],
    "program-asked-back": ["resume_program", "call_tool", "update decide", "call_tool answering", "resume_program"],
    "lifelines": [
        *["ask_model", "ask_model", "resume_program", "digest", "ask_model", "resume_program"],
        *["call_tool", "resume_program", "ask_model", "call_tool", "ask_model", "close_run"],
    ],
    "lifelines-exhausted": [*["ask_model"] * 3, "close_run"],
    "continued": ["update decide", "check_proof", "carry_over"],
    "continued-2": ["load_carried", "update decide", "check_proof", "call_tool", "ask_model", "carry_over"],
    "continued-program": ["resume_program", "carry_over"],
    "continued-program-2": ["load_carried", "resume_program", "update decide", *["call_tool"] * 2, "resume_program"],
    "continued-undo": ["load_effects", *["call_tool undo"] * 3, "carry_over"],
    "continued-undo-2": ["load_carried", *["call_tool undo"] * 3],
}
"""What a shape is kept for, in this order; other things may stand between."""


def history_of(path):
    told = path.read_text(encoding="utf-8")
    began = WorkflowHistory.from_json(path.stem, told).events[0].workflow_execution_started_event_attributes
    # A run names its sub-runs after itself.
    return WorkflowHistory.from_json(began.workflow_id or path.stem, told)


def history_named(shape):
    return history_of(next(path for path in HISTORIES if path.stem == shape))


@promise("runs:replay")
def test_a_history_of_every_shape_is_kept():
    kept = {path.stem for path in HISTORIES}

    assert set(SHAPES) <= kept


@promise("runs:replay")
@pytest.mark.parametrize("shape", HOLDS)
def test_a_kept_history_holds_what_it_is_kept_for(shape):
    assert holds(history_named(shape), HOLDS[shape])


@promise("runs:replay")
@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_kept_history_replays(path):
    await replayer(sandboxed=path in SANDBOXED).replay_workflow(history_of(path))


@promise("approvals:told-apart")
async def test_the_commands_are_the_same_where_the_worker_gets_at_once_that_people_were_told_and_a_decision():
    runner = MergingRunner()
    replayed = Replayer(workflows=workflows.WORKFLOWS, data_converter=DATA_CONVERTER, workflow_runner=runner)
    await replayed.replay_workflow(history_named("told-apart"))

    assert ["do_update", "resolve_activity"] in runner.merged


async def _no_search(desk, query, **options):
    return None


async def _hasty(self):
    return None


async def _not_perceived(self):
    return None


def _not_left(self, asking, error, facts):
    return False


async def _unchecked(self, tool, effect, *, undo=False):
    return None


async def _no_wait(self, seconds, tool):
    return None


async def _presumed(self, flight, result):
    return ToolResult(success=False, error="it did not happen", error_type="DidNotHappen")


async def _trusted(self, slot):
    return slot


async def _sent_twice(self, slot, undo_tool):
    await _COMPENSATED(self, slot, undo_tool)
    return await _COMPENSATED(self, slot, undo_tool)


async def _never_sent(self, effect, *, undo=False):
    return Effect(id="", n=effect, tool="", args_digest="", state=EffectState.PLANNED)


def _forgotten(self, requests):
    return None


async def _search_first(self, purpose, batch, **options):
    await run_task.search(self.context, "look again", limit=1)
    return await _PERFORM(self, purpose, batch, **options)


_PERFORM = ToolCalls.perform
_COMPENSATED = Rollback._compensated


@promise("runs:mutants")
@pytest.mark.parametrize(
    ("owner", "name", "mutation", "shape"),
    [
        (run_task, "search", _no_search, "fallback"),
        (ToolCalls, "perform", _search_first, "approve"),
        (model_calls.ModelCalls, "closing_summary", _hasty, "budget"),
        (model_calls.ModelCalls, "perceive", _not_perceived, "fallback"),
        (model_calls.ModelCalls, "_falls_back", _not_left, "fallback"),
        (Reconcile, "check", _unchecked, "lost-checked"),
        (Reconcile, "check", _unchecked, "lost-proven"),
        (Reconcile, "wait_out", _no_wait, "lost-happened"),
        (Reconcile, "_ask", _presumed, "lost-denied"),
        (Reconcile, "_ask", _presumed, "lost-again"),
        (Rollback, "_known", _trusted, "lost-cancelled"),
        (Rollback, "_compensated", _sent_twice, "lost-undo"),
        (Reconcile, "look", _never_sent, "undo-run"),
        (Approvals, "reopen", _forgotten, "continued-2"),
    ],
    ids=[
        "an activity is left out",
        "an activity is added",
        "an ending is shortened",
        "no model is asked what the task is about",
        "no other model is asked",
        "an outcome is not checked",
        "an outcome is not proven",
        "a lost answer is not waited for",
        "nobody says what happened",
        "nobody asks for another send",
        "an unknown effect is undone unchecked",
        "a lost compensation is made again",
        "earlier compensations are not looked up",
        "a request of the execution before is asked again",
    ],
)
async def test_a_changed_workflow_is_noticed(monkeypatch, owner, name, mutation, shape):
    monkeypatch.setattr(owner, name, mutation)

    with pytest.raises(NondeterminismError):
        await replayer(sandboxed=False).replay_workflow(history_named(shape))


TODAY = ("approve", "plan", "catalog", "elicitation", "quorum", "topped-up", "paused", "cancelled", "undo-run")


@promise("runs:replay")
@pytest.mark.thorough
async def test_runs_of_today_replay_too(open_engine, tmp_path):
    async with open_engine(rules, **options(tmp_path), **models.options(tmp_path)) as engine:
        for shape in spread([*TODAY, "fallback", "lost-checked", "lost-undo"], 4):
            handle = await SHAPES[shape](engine)
            await ended(handle)
            history = await handle.fetch_history()
            assert_no_task_failure(history)
            assert holds(history, HOLDS.get(shape, [])), shape
            await replayer(sandboxed=FULL).replay_workflow(history)
