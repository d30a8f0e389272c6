"""Profiles: an operator's defaults for runs, and how a task chooses and overrides them."""

import asyncio
import json

import pytest
from temporalio.client import WithStartWorkflowOperation, WorkflowFailureError
from temporalio.common import WorkflowIDConflictPolicy

import opening
from backstay.errors import SettingsInvalid
from backstay.testing import Reply
from tests.engine import ended
from tests.requirements import promise

FINISH = Reply(calls=[("finish", {"summary": "done", "outputs": {}, "success": True})])
READ = Reply(calls=[("mail__list_customers", {"offset": 0, "limit": 1})])
PROFILES = """
exploratory: {persona: "You are Bo, who looks everywhere."}
careful:
  strategy: conservative
  model: thinker
  budget: {max_steps: 4, max_tool_calls: 7, quotas: {mail.send_email: 1}}
"""
PRICES = {"scripted": {"input": 1.0, "output": 4.0}, "thinker": {"input": 2.0, "output": 8.0}}


async def opened_with(open_engine, replies, **task):
    """Return the Result, the first request and what was resolved when the run was opened."""
    async with open_engine(replies, profiles=PROFILES, prices=PRICES) as engine:
        handle = await engine.start({"text": "look", **task})
        result = await ended(handle)
        events = (await handle.fetch_history()).events
        first = next(event for event in events if event.HasField("activity_task_completed_event_attributes"))
        payload = first.activity_task_completed_event_attributes.result.payloads[0].data
        return result, engine.model.requests, json.loads(payload)


@promise("plans:strategies-default")
async def test_the_default_profile_adds_nothing_to_prompt_or_history(open_engine):
    _, requests, opened = await opened_with(open_engine, [FINISH])

    system = requests[0]["messages"][0]["content"]
    assert "Be conservative" not in system
    assert "Be exploratory" not in system
    assert "Markers" not in system
    assert "profile" not in opened


@promise("plans:strategies")
async def test_a_strategy_and_a_persona_stand_in_the_prompt_and_its_hash_covers_them(open_engine):
    hashes = set()
    for name, there, absent in (
        ("default", "You carry out one task", "Be "),
        ("conservative", "Take one small step at a time", "Be exploratory"),
        ("exploratory", "You are Bo, who looks everywhere.", "Be conservative"),
    ):
        _, requests, opened = await opened_with(open_engine, [FINISH], profile=name)
        system = requests[0]["messages"][0]["content"]
        assert there in system
        assert absent not in system
        hashes.add(opened["prompt_hash"])
    assert "Be exploratory:" in system
    assert len(hashes) == 3


@promise("plans:defaults")
async def test_a_profile_gives_limits_and_model_where_the_task_says_nothing(open_engine):
    result, requests, _ = await opened_with(open_engine, [READ] * 9, profile="careful")

    assert (result["outcome"], result["usage"]["steps"]) == ("budget_exceeded", 4)
    limits = {name: result["budget"][name] for name in ("max_steps", "max_tool_calls", "quotas", "max_code_runs")}
    assert limits == {"max_steps": 4, "max_tool_calls": 7, "quotas": {"mail.send_email": 1}, "max_code_runs": 3}
    assert {request["model"] for request in requests} == {"thinker"}
    assert list(result["usage"]["models"]) == ["thinker"]


@promise("plans:task")
async def test_what_the_task_sets_wins_field_by_field_and_a_profile_is_no_ceiling(open_engine):
    task = {"profile": "careful", "model": "scripted", "budget": {"max_steps": 6, "max_llm_cost_usd": None}}
    result, requests, _ = await opened_with(open_engine, [READ] * 9, **task)

    assert result["usage"]["steps"] == 6
    assert (result["budget"]["max_tool_calls"], result["budget"]["max_llm_cost_usd"]) == (7, None)
    assert {request["model"] for request in requests} == {"scripted"}


@promise("plans:top-up")
async def test_a_top_up_that_comes_while_the_run_is_opened_is_added_to_the_limits_of_the_profile(open_engine):
    async with open_engine([READ] * 9, profiles=PROFILES, prices=PRICES) as engine:
        task, queue = {"text": "look", "profile": "careful"}, engine.settings.task_queue
        refused = WorkflowIDConflictPolicy.FAIL
        start = WithStartWorkflowOperation("RunTask", task, id=queue, task_queue=queue, id_conflict_policy=refused)
        more = {"max_steps": 2, "quotas": {"mail.send_email": 3}, "by": "ana"}
        await engine.client.execute_update_with_start_workflow("top_up", more, start_workflow_operation=start)
        result = await ended(await start.workflow_handle())

    assert (result["budget"]["max_steps"], result["budget"]["quotas"]) == (6, {"mail.send_email": 4})


@promise("plans:top-up")
async def test_a_top_up_while_the_run_is_opened_is_added_also_to_limits_that_only_the_profile_sets(open_engine):
    profiles = "careful: {budget: {max_tokens: 50000, max_wall_seconds: 600, max_calls_per_program: 5}}"
    async with open_engine([FINISH], profiles=profiles, prices=PRICES) as engine:
        task, queue = {"text": "look", "profile": "careful"}, engine.settings.task_queue
        refused = WorkflowIDConflictPolicy.FAIL
        start = WithStartWorkflowOperation("RunTask", task, id=queue, task_queue=queue, id_conflict_policy=refused)
        more = {"max_tokens": 1000, "max_wall_seconds": 60, "max_calls_per_program": 2, "max_steps": 1, "by": "ana"}
        await engine.client.execute_update_with_start_workflow("top_up", more, start_workflow_operation=start)
        result = await ended(await start.workflow_handle())

    limits = ("max_tokens", "max_wall_seconds", "max_calls_per_program", "max_steps")
    assert [result["budget"][name] for name in limits] == [51_000, 660, 7, 11]


@promise("plans:profiles")
async def test_an_unknown_profile_is_refused_with_the_names_of_those_there_are(open_engine):
    async with open_engine([FINISH], profiles=PROFILES) as engine:
        handle = await engine.start({"text": "look", "profile": "reckless"})
        with pytest.raises(WorkflowFailureError) as failed:
            await asyncio.wait_for(handle.result(), 150)

    assert failed.value.cause.type == "TaskInvalid"
    known = "careful, conservative, default, exploratory"
    assert failed.value.cause.message == f"profile: no profile 'reckless'; use one of {known}"


@promise("plans:profiles")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: {lifelines: many}", "a: lifelines: Input should be a valid integer"),
        ("a: {lifelines: -1}", "a: lifelines: Input should be greater than or equal to 0 (value -1)"),
        (
            "a: {stategy: conservative}",
            "a: stategy: unknown field (value 'conservative'); remove it or correct its name",
        ),
        (
            "a: {strategy: bold}",
            "a: strategy: Input should be 'default', 'conservative' or 'exploratory' (value 'bold')",
        ),
        ("a: {budget: {max_stps: 3}}", "a: budget.max_stps: unknown field (value 3)"),
        ("a: {memory: {read: often}}", "a: memory.read: "),
        ("a: {memory: {learn: true}}", "a: memory.learn: unknown field"),
        ("a: {image: shell}", "a: image: Input should be 'python' or 'data' (value 'shell')"),
        ("a: conservative", "a: not a mapping of fields (value 'conservative')"),
        ("[a, b]", "not a mapping; write `NAME: {strategy: conservative}`"),
        ("3: {}", "3: not a name"),
        ("a: {", "not valid YAML"),
    ],
)
def test_what_is_wrong_with_the_file_is_said_with_file_field_value_and_fix(tmp_path, text, says):
    path = tmp_path / "profiles.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsInvalid) as refused:
        opening.read_profiles(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert says in str(refused.value)


@promise("plans:profiles")
def test_without_a_file_there_are_the_built_in_profiles_and_one_in_it_says_what_differs(tmp_path):
    built_in = opening.read_profiles(tmp_path / "missing.yaml")
    assert list(built_in) == ["conservative", "default", "exploratory"]
    assert built_in.named("exploratory").strategy == "exploratory"

    path = tmp_path / "profiles.yaml"
    path.write_text("exploratory: {lifelines: 1}\ndefault: {markers: true}\nempty:\n", encoding="utf-8")
    own = opening.read_profiles(path)
    assert (own.named("exploratory").strategy, own.named("exploratory").lifelines) == ("exploratory", 1)
    assert own.named("default").markers
    assert own.named("empty") == built_in.named("default")


@promise("plans:strategies-secret")
async def test_a_secret_in_a_persona_reaches_no_model_and_no_history(open_engine):
    key = "sk-" + "a1B2" * 10
    async with open_engine([FINISH], profiles=f"leaky: {{persona: 'Log in with {key}'}}") as engine:
        handle = await engine.start({"text": "look", "profile": "leaky"})
        result = await asyncio.wait_for(handle.result(), 150)
        history = (await handle.fetch_history()).to_json()

    assert result["error"]["type"] == "SettingsInvalid"
    assert "leaky: persona: a secret (openai_key) is in it" in result["error"]["message"]
    assert key not in history
    assert not engine.model.requests


@promise("plans:image")
async def test_a_profile_chooses_what_programs_may_import(open_engine, sandbox):
    source = "import numpy\nreturn int(numpy.array([1, 2]).sum())"

    def rules(conversation):
        runs = conversation.calls("run_program")
        if not runs:
            return Reply(calls=[("run_program", {"code": source})])
        return Reply(calls=[("finish", {"summary": "done", "outputs": {"answer": runs[0].answer}})])

    async with open_engine(rules, profiles="figures: {image: data}", sandbox=sandbox) as engine:
        result = await ended(await engine.start({"text": "add", "profile": "figures"}))
        assert result["raw_outputs"]["answer"]["data"]["result"] == 3
        result = await ended(await engine.start({"text": "add"}))
        assert "line 1: cannot import numpy" in result["raw_outputs"]["answer"]["error"]


@promise("plans:progress")
async def test_the_model_and_the_status_are_told_what_each_step_called_and_how_it_ended(open_engine):
    bad = Reply(calls=[("mail__send_email", {"to": "a@example.com", "subject": "s", "body": "b"})])
    replies = [READ, bad, *[READ] * 20, FINISH]
    policy, profiles = "deny: [mail.send_email]\n", "marked: {markers: true}"
    async with open_engine(replies, policy=policy, profiles=profiles) as engine:
        budget = {"max_steps": 40, "max_tool_calls": 99}
        handle = await engine.start({"text": "look", "profile": "marked", "budget": budget})
        await ended(handle)
        status = await handle.query("status")
        told = [request["messages"][-1]["content"].partition("\nLast steps: ")[2] for request in engine.model.requests]

    assert told[:3] == ["", "1 mail.list_customers ok.", "1 mail.list_customers ok; 2 mail.send_email failed."]
    assert all(len(line) <= 401 for line in told)
    assert told[-1].endswith("; 22 mail.list_customers ok.")
    assert len(status["task_progress"]) == 20
    assert status["task_progress"][-1] == {"step": 22, "tool": "mail.list_customers", "status": "ok"}
