"""Explicit plans: a task without a model, its steps in order through the one path, asked about once."""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError

from tests.engine import Scripts, assert_no_task_failure, ended, engine, pending, toolbox_of
from tests.requirements import promise

POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
allow:
  - {tool: "mail.send_email", when: {to: {ends_with: "@free.example"}}}
  - {tool: "mail.send_email", when: {to: {equals: "nobody"}}}
deny: [{tool: "mail.send_email", when: {to: {ends_with: "@denied.example"}}}]
"""
FREE = "a@free.example"


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        folder = tmp_path_factory.mktemp("plans")
        yield await stack.enter_async_context(engine(temporal, folder, Scripts(), policy=POLICY))


def send(to=FREE, subject="s", body="b", **fields):
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": subject, "body": body}, **fields}


def read(tool="mail.list_customers", arguments=None, **fields):
    return {"tool": tool, "arguments": {"limit": 2} if arguments is None else arguments, **fields}


def task(*steps, **fields):
    return {"plan": {"steps": list(steps)}, **fields}


def requested(opened, handle):
    """Return the effectful requests of a run at the mailbox: tool and arguments, in order of arrival."""
    rows = opened.mailbox.rows(
        "SELECT tool, arguments FROM requests WHERE effect_id LIKE ? ORDER BY id", f"{handle.id}/%"
    )
    return [(tool, json.loads(arguments)) for tool, arguments in rows]


async def failure_of(opened, given):
    handle = await opened.start(given)
    with pytest.raises(WorkflowFailureError) as caught:
        await asyncio.wait_for(handle.result(), 150)
    assert_no_task_failure(await handle.fetch_history())
    assert requested(opened, handle) == []
    return caught.value.cause.type, caught.value.cause.message


@promise("plans:order")
async def test_a_plan_asks_once_for_all_its_writes_and_performs_its_steps_in_order(opened):
    asked_before = len(opened.model.requests)
    given = task(
        read(),
        send("b@x.example", subject="for ${input.name}", body="${input.text}", summary="tell b"),
        read("mail.list_sent", {"to": "b@x.example"}),
        {"tool": "mail.recall_email", "arguments": {"message_id": "${steps.1.result.message_id}"}},
        send("c@x.example", body="recalled: ${steps.2.result.messages.0.recalled}, ${steps.2.result.total}"),
        input={"name": "Bo", "text": "hello"},
    )
    handle = await opened.start(given)
    (request,) = await pending(handle)
    assert (request["kind"], [call["index"] for call in request["calls"]]) == ("plan", [1, 3, 4])
    assert request["calls"][0]["arguments"] == {"to": "b@x.example", "subject": "for Bo", "body": "hello"}
    assert request["calls"][1]["arguments"] == {"message_id": "${steps.1.result.message_id}"}
    plan = await handle.query("plan")
    assert (plan["state"], {step["status"] for step in plan["steps"]}) == ("PROPOSED", {"pending"})
    assert requested(opened, handle) == []
    await handle.execute_update("decide", {"request_id": "r1", "verdict": "approve", "by": "ana"})
    result = await ended(handle)
    assert (result["outcome"], result["final_summary"]) == ("completed", "5 of 5 steps of the plan done")
    assert [step["success"] for step in result["raw_outputs"]["steps"]] == [True] * 5
    first, recalled, last = requested(opened, handle)
    assert (first[1]["subject"], first[1]["body"]) == ("for Bo", "hello")
    assert recalled == ("mail.recall_email".partition(".")[2], {"message_id": recalled[1]["message_id"]})
    assert opened.mailbox.rows("SELECT count(*) FROM sent WHERE effect_id LIKE ?", f"{handle.id}/%") == [(2,)]
    assert last[1]["body"] == "recalled: False, 1"
    usage = result["usage"]
    assert (usage["steps"], usage["plan_steps"], usage["tool_calls"]) == (0, 5, 5)
    assert len([event for event in result["events"] if event["name"] == "approval.asked"]) == 1
    assert len(opened.model.requests) == asked_before
    plan = await handle.query("plan")
    assert (plan["state"], {step["status"] for step in plan["steps"]}) == ("COMPLETED", {"success"})


@promise("plans:references")
async def test_a_lone_reference_keeps_the_type_of_its_value(opened):
    given = task(
        read(arguments={"limit": "${input.limit}"}),
        read(arguments={"offset": "${steps.0.result.total}"}),
        input={"limit": 2},
    )
    result = await ended(await opened.start(given))
    assert result["outcome"] == "completed", result


@promise("plans:input-bounded")
async def test_an_input_that_would_make_a_plan_too_large_ends_no_run_but_its_own(opened):
    given = task(send(body="${input.text}" * 8), input={"text": "x" * 300_000})
    kind, message = await failure_of(opened, given)
    assert kind == "TaskInvalid"
    assert "plan.steps.0.arguments: larger than 1,000,000 bytes with what ${input.text} names; refer to less" in message


@promise("plans:input-bounded")
async def test_what_a_person_changes_in_a_plan_may_not_multiply_its_input(opened):
    steps = [send("b@x.example", subject="${input.subject}")] * 20
    handle = await opened.start(task(*steps, input={"subject": "hello", "text": ["x" * 40] * 10_000}))
    (request,) = await pending(handle)
    changes = {str(n): {"verdict": "modify", "arguments": {"body": "${input.text}"}} for n in range(20)}
    changed = {"request_id": request["id"], "verdict": "modify", "calls": changes, "by": "ana"}
    await handle.execute_update("decide", changed | {"args_digest": request["args_digest"]})
    result = await ended(handle)
    assert (result["outcome"], result["error"]["type"]) == ("failed", "ArgumentsInvalid")
    assert "plan.steps.18.arguments: larger than 8,000,000 bytes" in result["error"]["message"]
    assert requested(opened, handle) == []


@promise("plans:nothing-asked")
async def test_a_plan_that_only_reads_or_is_allowed_asks_nothing(opened):
    result = await ended(await opened.start(task(read(), send(), read("mail.list_sent", {"to": FREE}))))
    assert result["outcome"] == "completed"
    assert "approval.asked" not in [event["name"] for event in result["events"]]


@promise("plans:bad-reference")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("${steps.1.result.x}", "has not run by then"),
        ("${steps.0.total}", "is not a reference"),
        ("${steps.x.result.y}", "is not a reference"),
        ("${steps." + "9" * 5000 + ".result.y}", "is not a reference"),
        ("${env.HOME}", "is not a reference"),
        ("${input.missing}", "leads nowhere"),
    ],
    ids=["forward", "no result", "no number", "huge number", "other root", "no input"],
)
async def test_a_reference_that_can_lead_nowhere_ends_the_plan_before_anything_is_done(opened, body, said):
    handle = await opened.start(task(send(), send(body=body), input={}))
    result = await ended(handle)
    assert (result["outcome"], result["error"]["type"]) == ("failed", "ArgumentsInvalid")
    assert said in result["error"]["message"]
    assert requested(opened, handle) == []


@promise("plans:brought-is-data")
async def test_a_plan_sends_dollars_and_braces_as_they_are_and_nothing_in_what_it_brings_refers(opened):
    data = "${HOME} $${x} ${steps.0.result.message_id} {{ result }} {% raw %}"
    steps = [
        send(subject="first"),
        send(subject="by the plan", body="echo $${HOME} for $${steps.0.result.message_id}"),
        send("b@free.example", subject="${input.data}"),
        read("mail.list_sent", {"to": "b@free.example"}),
        send(subject="by a result", body="${input.data}|${steps.3.result.messages.0.subject}|$${x}"),
    ]
    handle = await opened.start(task(*steps, input={"data": data}))
    result = await ended(handle)
    assert result["outcome"] == "completed", result["error"]
    sent = {given["subject"]: given["body"] for tool, given in requested(opened, handle)}
    assert sent["by the plan"] == "echo ${HOME} for ${steps.0.result.message_id}"
    assert data in sent
    assert sent["by a result"] == f"{data}|{data}|${{x}}"


@promise("plans:undo")
async def test_a_reference_to_what_a_step_did_not_return_fails_that_step_and_undoes_the_earlier_ones(opened):
    handle = await opened.start(task(send(), send(body="${steps.0.result.no.such}"), send(subject="never")))
    result = await ended(handle)
    assert (result["outcome"], result["error"]["type"]) == ("rolled_back", "StepFailed")
    assert "leads nowhere" in result["error"]["message"]
    assert [tool for tool, _ in requested(opened, handle)] == ["send_email", "recall_email"]
    # What was there until then stays readable.
    first, second, never = result["raw_outputs"]["steps"]
    assert (never["status"], never["reason"]) == ("pending", "stopped")
    assert (first["success"], len(first["ref"]), second["success"]) == (True, 40, False)
    assert "leads nowhere" in second["error"]


@promise("plans:abort")
async def test_a_step_that_may_fail_does_not_end_the_plan_and_what_needs_it_is_not_sent(opened):
    lenient = send("nobody", continue_on_failure=True)
    needs = send(body="${steps.0.result.message_id}", continue_on_failure=True)
    handle = await opened.start(task(lenient, needs, send(subject="last")))
    result = await ended(handle)
    assert result["outcome"] == "completed"
    steps = result["raw_outputs"]["steps"]
    assert [step["success"] for step in steps] == [False, False, True]
    assert "not an e-mail address" in steps[0]["error"]
    assert "step 0, which gave no result" in steps[1]["error"]
    assert [step["reason"] for step in steps] == [None, "dependency_failed", None]
    assert [arguments["subject"] for _, arguments in requested(opened, handle)] == ["s", "last"]


@promise("plans:abort-needed")
async def test_what_needs_a_step_that_may_fail_is_left_out_also_through_others_and_with_its_group(opened):
    handle = await opened.start(
        task(
            send("nobody", continue_on_failure=True),
            send(subject="pair", transactional="pair"),
            send(subject="needs", body="${steps.0.result.message_id}", transactional="pair"),
            send(subject="through", body="${steps.2.result.message_id}"),
            send(subject="last"),
        )
    )
    result = await ended(handle)
    assert result["outcome"] == "completed", result["error"]
    assert [step["reason"] for step in result["raw_outputs"]["steps"]] == [
        *[None, None, "dependency_failed", "dependency_failed", None]
    ]
    sent = [arguments.get("subject", tool) for tool, arguments in requested(opened, handle)]
    assert sent == ["s", "pair", "recall_email", "last"]


@promise("plans:rejected")
async def test_a_rejected_step_ends_the_plan_before_its_first_step_unless_it_may_fail(opened):
    verdicts = {"2": {"verdict": "reject"}}
    strict = await opened.start(task(send(), send("b@x.example"), send("c@x.example")))
    lenient = await opened.start(task(send(), send("b@x.example"), send("c@x.example", continue_on_failure=True)))
    for handle in (strict, lenient):
        (request,) = await pending(handle)
        assert [call["index"] for call in request["calls"]] == [1, 2]
        said = {"request_id": "r1", "verdict": "approve", "calls": verdicts, "by": "ana", "comment": "not c"}
        await handle.execute_update("decide", said)
    result = await ended(strict)
    assert (result["outcome"], result["error"]["type"]) == ("failed", "StepFailed")
    assert "Rejected: rejected by ana: not c" in result["error"]["message"]
    assert requested(opened, strict) == []
    result = await ended(lenient)
    assert result["outcome"] == "completed"
    assert [step["success"] for step in result["raw_outputs"]["steps"]] == [True, True, False]
    assert [arguments["to"] for _, arguments in requested(opened, lenient)] == [FREE, "b@x.example"]


@promise("plans:rejected")
async def test_a_denied_step_ends_the_plan_before_its_first_step(opened):
    handle = await opened.start(task(send(), send("a@denied.example")))
    result = await ended(handle)
    assert (result["outcome"], result["error"]["type"]) == ("failed", "StepFailed")
    assert "Denied" in result["error"]["message"]
    assert requested(opened, handle) == []


@promise("plans:changed")
async def test_a_person_may_change_a_step_that_still_refers_to_another(opened):
    refers = {"message_id": "${steps.0.result.message_id}"}
    given = task(
        send(),
        {"tool": "mail.recall_email", "arguments": refers},
        send("b@x.example", body="${steps.0.result.sent_at}"),
    )
    handle = await opened.start(given)
    (request,) = await pending(handle)
    changes = {"2": {"verdict": "modify", "arguments": {"subject": "${steps.0.result.to}"}}}
    await handle.execute_update(
        "decide",
        {"request_id": request["id"], "verdict": "modify", "calls": changes, "by": "ana"},
    )
    (amended,) = await pending(handle)
    assert amended["calls"][1]["arguments"]["subject"] == "${steps.0.result.to}"
    assert (amended["proposal"]["version"], request["proposal"]["version"]) == (2, 1)
    assert amended["proposal"]["hash"] == amended["args_digest"] != request["args_digest"]
    await handle.execute_update("decide", {"request_id": amended["id"], "verdict": "approve", "by": "ana"})
    result = await ended(handle)
    assert result["outcome"] == "completed", result["error"]
    assert requested(opened, handle)[-1][1]["subject"] == FREE
    assert requested(opened, handle)[-1][1]["body"].startswith("20")


@promise("plans:safety")
async def test_the_safety_of_a_step_may_only_be_raised(opened):
    raised = await opened.start(task(read(safety="restricted_write")))
    (request,) = await pending(raised)
    assert request["calls"][0]["safety"] == "restricted_write"
    await raised.execute_update("decide", {"request_id": "r1", "verdict": "approve", "by": "ana"})
    assert (await ended(raised))["outcome"] == "completed"
    lowered = await opened.start(task(send("b@x.example", safety="read_only")))
    (request,) = await pending(lowered)
    assert request["calls"][0]["safety"] == "write_safe"
    await lowered.execute_update("decide", {"request_id": "r1", "verdict": "reject", "by": "ana"})
    assert (await ended(lowered))["outcome"] == "failed"


@promise("plans:transactional")
async def test_a_transactional_step_that_cannot_be_undone_is_an_invalid_task(opened):
    delete = {"tool": "mail.delete_message", "arguments": {"message_id": "inbox-1"}, "transactional": True}
    kind, message = await failure_of(opened, task(send(), delete))
    assert kind == "TaskInvalid"
    assert "plan.steps.1.transactional: mail.delete_message cannot be undone" in message
    result = await ended(await opened.start(task(send(transactional=True))))
    assert result["outcome"] == "completed"


@promise("plans:invalid")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"plan": {"steps": []}}, "plan.steps"),
        ({"plan": {"steps": [read()] * 21}}, "plan.steps"),
        ({"plan": {"steps": [{**read(), "colour": "red"}]}}, "plan.steps.0.colour: unknown field"),
        ({"plan": {"steps": [{"arguments": {}}]}}, "plan.steps.0.tool: required field is missing"),
        ({"plan": {"steps": [read(timeout_s=0)]}}, "plan.steps.0.timeout_s"),
        ({"plan": {"steps": [read(timeout_s=601)]}}, "plan.steps.0.timeout_s"),
        ({"plan": {"steps": [read(safety="harmless")]}}, "plan.steps.0.safety"),
        ({"plan": {"steps": [read()]}, "mode": "plan_first"}, "mode: no model plans in a run that is given its plan"),
        ({"plan": "read"}, "plan"),
    ],
    ids=["empty", "21", "unknown", "missing", "short", "long", "safety", "mode", "text"],
)
async def test_a_malformed_plan_is_an_invalid_task_that_names_the_field(opened, given, said):
    kind, message = await failure_of(opened, given)
    assert kind == "TaskInvalid"
    assert said in message


@promise("plans:catalog")
@pytest.mark.parametrize(
    ("step", "kind", "said"),
    [
        (read("mail.send_emial", {}), "ToolNotFound", "mail.send_email"),
        (read("nowhere.read", {}), "ToolNotFound", "there is no tool"),
        (read(arguments={"limit": "many"}), "ArgumentsInvalid", "limit"),
    ],
    ids=["tool", "provider", "schema"],
)
async def test_a_step_that_does_not_fit_the_catalog_ends_the_plan_before_anything_is_done(opened, step, kind, said):
    handle = await opened.start(task(send(), step))
    result = await ended(handle)
    assert (result["outcome"], result["error"]["type"]) == ("failed", kind)
    assert result["error"]["message"].startswith("plan.steps.1: ")
    assert said in result["error"]["message"]
    assert requested(opened, handle) == []


@promise("plans:catalog-user")
async def test_a_step_of_a_server_that_the_user_may_not_use_says_so_and_where_it_is_set(
    open_engine, tmp_path, mailbox_at
):
    path = toolbox_of(tmp_path, tmp_path / "mailbox.db", address=await mailbox_at())
    data = json.loads(path.read_text(encoding="utf-8")) | {"users": {"ana": {"providers": ["mail"]}}}
    path.write_text(json.dumps(data), encoding="utf-8")
    async with open_engine(Scripts(), policy=POLICY, toolbox=path) as opened:
        result = await ended(await opened.start(task(send())))
    assert (result["outcome"], result["error"]["type"]) == ("failed", "ToolNotFound")
    said = "mail is not available: denied: users names neither the user nor * in toolbox.json"
    assert result["error"]["message"] == f"plan.steps.0: mail.send_email: {said}"


@promise("plans:catalog-user")
@pytest.mark.thorough
@pytest.mark.parametrize(("field", "tool"), [("filesystem", "fs"), ("shell", "shell")])
async def test_a_task_that_wants_what_its_user_may_not_use_is_refused_and_told_where_it_is_set(opened, field, tool):
    kind, message = await failure_of(opened, {"text": "look", "workspace": "desk", field: True})
    assert kind == "TaskInvalid"
    said = f"{field}: {tool} is not available: denied: users.*.providers does not name it in toolbox.json"
    assert said in message


@promise("budget:budget")
async def test_a_plan_that_does_not_fit_its_budget_of_calls_or_a_quota_is_not_begun(opened):
    few = task(send(), send(), send("b@x.example"), budget={"max_tool_calls": 2})
    quota = task(send(), read(), send(), budget={"quotas": {"mail.send_email": 1}})
    for given, limit in ((few, "max_tool_calls"), (quota, "quotas[mail.send_email]")):
        handle = await opened.start(given)
        result = await ended(handle)
        assert (result["outcome"], result["error"]["type"]) == ("budget_exceeded", "BudgetExceeded")
        assert f"budget exceeded: {limit}" in result["error"]["message"]
        assert "approval.asked" not in [event["name"] for event in result["events"]]
        assert requested(opened, handle) == []


@promise("budget:plan-top-up")
async def test_a_plan_out_of_budget_may_ask_and_goes_on_where_it_stopped(opened):
    given = task(send(subject="1"), send(subject="2"), budget={"max_tool_calls": 1, "on_exhausted": "ask"})
    handle = await opened.start(given)
    (request,) = await pending(handle)
    assert request["kind"] == "budget"
    said = {"request_id": request["id"], "verdict": "answer", "answer": {"max_tool_calls": 1}, "by": "ana"}
    await handle.execute_update("decide", said)
    assert (await ended(handle))["outcome"] == "completed"
    assert [arguments["subject"] for _, arguments in requested(opened, handle)] == ["1", "2"]


@promise("budget:plan-steps")
async def test_a_plan_of_more_steps_than_max_steps_runs_to_its_end(opened):
    result = await ended(await opened.start(task(read(), read(), read(), budget={"max_steps": 1})))
    assert (result["outcome"], result["usage"]["plan_steps"]) == ("completed", 3)


@promise("plans:timeout")
async def test_a_step_waits_no_longer_than_its_timeout(open_engine):
    async with open_engine(Scripts(), env={"MAILBOX_SLOW_SECONDS": "20"}, policy=POLICY) as opened:
        handle = await opened.start(task(read(timeout_s=1.5, continue_on_failure=True), read(timeout_s=1.5)))
        result = await ended(handle)
        assert (result["outcome"], result["error"]["type"]) == ("failed", "StepFailed")
        assert "no answer within 1.5 s" in result["error"]["message"]
        assert opened.mailbox.requests("list_customers") == 2


@promise("plans:timeout")
@pytest.mark.thorough
async def test_the_operator_says_how_long_a_step_waits_whose_plan_does_not_say(open_engine):
    more = {"env": {"MAILBOX_SLOW_SECONDS": "20"}, "policy": POLICY, "step_timeout_seconds": 1.5}
    async with open_engine(Scripts(), **more) as opened:
        handle = await opened.start(task(read(continue_on_failure=True), send("a@asked.example")))
        (request,) = await pending(handle)
        assert request["proposal"]["toggles"]["limits"] == {"timeout_s": 1.5}
        verdict = {"request_id": request["id"], "verdict": "reject", "by": "ana"}
        await handle.execute_update("decide", verdict)
        assert (await ended(handle))["outcome"] == "failed"
        result = await ended(await opened.start(task(read())))
        assert "no answer within 1.5 s" in result["error"]["message"]


@promise("plans:chosen-time")
async def test_a_time_that_somebody_chose_is_obeyed_where_it_equals_the_usual_one_and_the_tool_declares_more(
    open_engine, tmp_path, mailbox_at
):
    toolbox = toolbox_of(tmp_path, tmp_path / "mailbox.db", address=await mailbox_at(MAILBOX_SLOW_SECONDS="20"))
    data = json.loads(toolbox.read_text())
    data["providers"]["mail"]["tools"]["list_customers"] = {"timeout": 60}
    toolbox.write_text(json.dumps(data))
    policy = POLICY + 'ask: ["mail.list_customers"]\n'
    async with open_engine(Scripts(), toolbox=toolbox, policy=policy, step_timeout_seconds=1.5) as opened:
        cases = ((read(timeout_s=1.5), None), (read(), 1.5), (read(timeout_s=40), 1.5))
        for step, narrowed in cases:
            handle = await opened.start(task(step))
            (request,) = await pending(handle)
            verdict = {"request_id": request["id"], "verdict": "approve", "by": "ana"}
            more = {} if narrowed is None else {"toggles": {"limits": {"timeout_s": narrowed}}}
            await handle.execute_update("decide", verdict | more)
            error = (await ended(handle))["error"]["message"]
            assert f"no answer within {narrowed or 1.5:g} s" in error


@promise("plans:less-time")
async def test_an_approver_gives_every_step_less_time_and_a_step_that_needs_more_is_ended(open_engine):
    async with open_engine(Scripts(), env={"MAILBOX_SLOW_SECONDS": "20"}, policy=POLICY) as opened:
        shorter, longer = read(timeout_s=1, continue_on_failure=True), read(timeout_s=25)
        handle = await opened.start(task(shorter, longer, send("a@asked.example")))
        (request,) = await pending(handle)
        assert request["proposal"]["toggles"]["limits"] == {"timeout_s": 30}
        verdict = {"request_id": request["id"], "verdict": "approve", "by": "ana"}
        await handle.execute_update("decide", verdict | {"toggles": {"limits": {"timeout_s": 1.5}}})
        result = await ended(handle)
        assert (result["outcome"], result["error"]["type"]) == ("failed", "StepFailed")
        errors = [step["error"] for step in (await handle.query("plan"))["steps"]]
        assert "no answer within 1 s" in errors[0]
        assert "no answer within 1.5 s" in errors[1]
        assert requested(opened, handle) == []


@promise("approvals:every-field")
@pytest.mark.thorough
async def test_an_approval_that_changes_a_step_is_refused_and_pays_nothing(opened):
    handle = await opened.start(task(send("a@asked.example")))
    (request,) = await pending(handle)
    change = {"0": {"verdict": "modify", "arguments": {"to": "b@asked.example"}}}
    said = {"request_id": request["id"], "by": "ana", "calls": change}
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await handle.execute_update("decide", {**said, "verdict": "approve"})
    assert caught.value.cause.message.startswith("calls.0: a changed step needs verdict modify")
    await handle.execute_update("decide", {**said, "verdict": "modify"})
    (anew,) = await pending(handle)
    assert anew["calls"][0]["arguments"]["to"] == "b@asked.example"
    await handle.execute_update("decide", {"request_id": anew["id"], "verdict": "reject", "by": "ana"})
    await ended(handle)
    assert requested(opened, handle) == []
