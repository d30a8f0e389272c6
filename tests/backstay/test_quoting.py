"""What refusals quote of what was refused."""

import json
from types import SimpleNamespace

import pytest

from backstay.approvals.admission import DecisionInvalid
from backstay.approvals.approval import Approval, CallVerdict
from backstay.approvals.edits import edited
from backstay.budgets.budget import Budget
from backstay.errors import PolicyInvalid, SettingsInvalid, TaskInvalid, ToolboxInvalid
from backstay.policies.policy import Policy
from backstay.settings import Settings
from backstay.task.task import Task
from tests.requirements import promise
from toolbox.configuration.load import load
from workflows.asking.approvals import Approvals
from workflows.asking.said import said_in

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
WRONG_TASKS = [
    {"text": "x", "api_key": TOKEN},
    {"text": "x", TOKEN: 1},
    {"text": "x", "api_key": "short-" + TOKEN[:4]},
    {"text": "x", "mcp_servers": [{"headers": {"Authorization": f"Bearer {TOKEN}"}}]},
    {"text": "x", "mode": TOKEN},
    {"text": "x", "budget": TOKEN},
    {"text": "x", "budget": {"max_steps": TOKEN}},
    {"text": "x", "by": {"token": TOKEN}},
    {"text": "x", "plan": {"steps": [{"tool": "a.b", "retries": f"key={TOKEN}"}]}},
]


def refusal(kind, act):
    with pytest.raises(kind) as refused:
        act()
    return str(refused.value)


@promise("secrets:refusals")
@pytest.mark.parametrize("task", WRONG_TASKS)
def test_a_refused_field_of_a_task_is_named_and_its_secret_is_not(task):
    said = refusal(TaskInvalid, lambda: Task.admit(task))
    assert (TOKEN in said, "short-" in said) == (False, False)


@promise("secrets:refusals")
def test_what_can_be_no_secret_is_still_quoted():
    said = refusal(TaskInvalid, lambda: Task.admit({"text": "x", "mode": "plan", "budget": {"max_steps": -1}}))
    assert "(value 'plan')" in said
    assert "(value -1)" in said
    assert "max_step: unknown field" in refusal(TaskInvalid, lambda: Budget.admit({"max_step": 3}))


@promise("secrets:refusals")
@pytest.mark.parametrize(
    "policy",
    [
        {"deny": [TOKEN + "!"]},
        {"default": TOKEN},
        {TOKEN: {}},
        {"deny": [{"tool": "a.b", "when": {"key": TOKEN}}]},
        {"deny": [{"tool": "a.b", "when": {"key": {TOKEN: 1}}}]},
        {"ask": [{"tool": "a.b", "timeout": TOKEN}]},
        {"groups": {TOKEN: ["ana"]}},
        {"groups": {"@a": ["@" + TOKEN]}},
    ],
)
def test_a_refused_policy_does_not_say_its_secret(policy):
    assert TOKEN not in refusal(PolicyInvalid, lambda: Policy.admit(policy))


@promise("secrets:refusals")
@pytest.mark.parametrize(
    "toolbox",
    [
        {"mcpServers": {"crm": {"command": "x", "apiKey": TOKEN}}},
        {"mcpServers": {"crm": {"command": "x", TOKEN: 1}}},
        {"providers": {"crm": {"trusted": TOKEN}}},
        {"providers": {"crm": {"tools": {"a": {"safety": TOKEN}}}}},
        {"providers": {"crm": {"concurrency": TOKEN}}},
    ],
)
def test_a_refused_toolbox_does_not_say_its_secret(tmp_path, toolbox):
    path = tmp_path / "toolbox.json"
    path.write_text(json.dumps(toolbox), encoding="utf-8")
    assert TOKEN not in refusal(ToolboxInvalid, lambda: load(path, {}))


@promise("secrets:refusals")
@pytest.mark.parametrize("name", ["max_completion_tokens", "request_deadline_seconds", "url", "web_ui_url"])
def test_a_refused_setting_does_not_say_a_secret(name):
    assert TOKEN not in refusal(SettingsInvalid, lambda: Settings.load(None, **{name: TOKEN}))


@promise("secrets:refusals")
def test_a_refused_decision_or_update_quotes_no_secret_that_stands_in_a_name():
    without = CallVerdict(verdict="modify", arguments={}, without=(TOKEN,))
    assert TOKEN not in refusal(DecisionInvalid, lambda: edited({"to": "x"}, {"to": "x"}, without, "calls.0"))
    for update in ("pause", "resume", "undo"):
        assert TOKEN not in refusal(DecisionInvalid, lambda update=update: said_in(update, {"by": "ana", TOKEN: 1}))
    state = SimpleNamespace(closed={}, opened=SimpleNamespace(started_by="", policy=Policy()), task=None)
    approvals = Approvals(state, None, lambda: None)
    asked = Approval(request_id=TOKEN, verdict="approve", by="ana")
    assert str(approvals.refusal(asked)).startswith("request_id: no request (a name of 40 characters)")
