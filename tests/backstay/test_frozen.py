"""History is read whatever it holds besides; only what comes in at the door is held to the letter."""

import importlib
import json
import pickle
import pkgutil
import re

import pytest

import backstay
from backstay.approvals.approval import Approval, CallVerdict
from backstay.budgets.budget import Budget, TopUp
from backstay.calls import OpenRun
from backstay.client.connecting import DATA_CONVERTER
from backstay.errors import TaskInvalid
from backstay.frozen import Frozen
from backstay.task.decision import CallTools, Decision
from backstay.task.plan import Plan, PlanStep
from backstay.task.result import Result
from backstay.task.task import Task
from tests.requirements import promise


def every_noun():
    for module in pkgutil.iter_modules(backstay.__path__):
        if module.name != "__main__":
            importlib.import_module(f"backstay.{module.name}")
    waiting, found = [Frozen], []
    while waiting:
        for noun in waiting.pop().__subclasses__():
            waiting.append(noun)
            if noun.__module__.startswith("backstay."):
                found.append(noun)
    return sorted(set(found), key=lambda noun: noun.__qualname__)


@promise("runs:old-history")
@pytest.mark.parametrize("noun", every_noun(), ids=lambda noun: noun.__qualname__)
def test_no_noun_forbids_what_an_older_or_newer_history_holds_besides(noun):
    assert noun.model_config["extra"] == "ignore"
    assert noun.model_config["frozen"] is True


@promise("runs:old-history")
@pytest.mark.parametrize(
    ("noun", "data"),
    [
        (Task, {"text": "t", "budget": {"max_steps": 3, "later": 1}, "later": 1}),
        (Budget, {"max_steps": 3, "later": [1]}),
        (Decision, {"context": "c", "actions": [{"kind": "call_tools", "calls": [], "later": 1}], "later": 1}),
        (Result, {"outcome": "completed", "success": True, "budget": {"later": 1}, "later": None}),
    ],
    ids=["task", "budget", "decision", "result"],
)
def test_what_is_read_from_history_may_hold_unknown_fields_at_any_depth(noun, data):
    read = noun.model_validate(data)

    assert "later" not in read.model_dump_json()


@promise("runs:history-kinds")
def test_an_action_is_known_by_its_kind_whatever_else_it_holds():
    (action,) = Decision.model_validate(
        {"context": "c", "actions": [{"kind": "call_tools", "calls": [], "x": 1}]}
    ).actions

    assert isinstance(action, CallTools)


@promise("runs:history-door")
@pytest.mark.parametrize(
    ("noun", "data", "field"),
    [
        (Task, {"text": "t", "later": 1}, "later"),
        (Task, {"text": "t", "budget": {"later": 1}}, "budget.later"),
        (Plan, {"steps": [{"tool": "a.b", "later": 1}]}, "steps.0.later"),
        (Approval, {"request_id": "r1", "verdict": "approve", "by": "ana", "later": 1}, "later"),
    ],
    ids=["task", "task's budget", "plan's step", "approval"],
)
def test_what_comes_in_at_the_door_is_refused_by_the_name_of_the_unknown_field(noun, data, field):
    with pytest.raises(TaskInvalid, match=f"{field}: unknown field .*remove it or correct its name"):
        noun.admit(data)


@promise("runs:small-history")
def test_history_holds_of_a_message_what_says_something_and_of_a_noun_in_it_what_somebody_gave():
    task = Task.admit({"text": "t", "user_id": "singleton", "budget": {"max_steps": 20}})
    asked = OpenRun(task=task, at="", workflow_run_id="r", user_id="singleton", events=(), store="s")
    converter = DATA_CONVERTER.payload_converter
    (payload,) = converter.to_payloads([asked])

    assert json.loads(payload.data) == {
        "store": "s",
        "task": {"text": "t", "user_id": "singleton", "budget": {"max_steps": 20}},
        "at": "",
        "workflow_run_id": "r",
    }
    assert converter.from_payloads([payload], [OpenRun]) == [asked]
    assert asked.plain()["user_id"] == "singleton"


MISSPELLED = {
    "budgets": lambda: Task(text="x", budgets={"max_steps": 3}),
    "polcy": lambda: Task(text="x", polcy=None),
    "budget.max_step": lambda: Task(text="x", budget={"max_step": 3}),
    "follows.run": lambda: Task(text="x", follows={"workflow_id": "w", "run_id": "r", "run": "r"}),
    "plan.steps.0.argument": lambda: Task(plan={"steps": [{"tool": "mail.send", "argument": {}}]}),
    "max_step": lambda: Budget(max_step=3),
    "max_tool_call": lambda: TopUp(max_tool_call=3),
    "step": lambda: Plan(step=[]),
    "tool_name": lambda: PlanStep(tool="mail.send", tool_name="x"),
    "calls.0.argument": lambda: Approval(
        request_id="r1", verdict="approve", by="ana", calls={0: {"verdict": "approve", "argument": {}}}
    ),
    "toggles.process": lambda: Approval(request_id="r1", verdict="approve", by="ana", toggles={"process": False}),
    "args": lambda: CallVerdict(verdict="modify", args={"to": "bo"}),
}


@promise("runs:history-python")
@pytest.mark.parametrize("field", MISSPELLED)
def test_a_misspelled_field_of_a_python_program_is_refused_by_its_name(field):
    with pytest.raises(TaskInvalid, match=rf"^{re.escape(field)}: unknown field \(value .*\); remove it or correct"):
        MISSPELLED[field]()


@promise("runs:history-python")
def test_what_a_python_program_builds_is_still_read_from_history_with_unknown_fields():
    task = Task(text="x", budget=Budget(max_steps=3), follows={"workflow_id": "w", "run_id": "r"})

    assert Task.model_validate(task.plain() | {"later": 1, "budget": {"max_steps": 3, "later": 1}}) == task
    assert task.model_copy(update={"text": "y"}).budget == Budget(max_steps=3)
    assert pickle.loads(pickle.dumps(task)) == task
