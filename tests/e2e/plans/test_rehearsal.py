"""Rehearsals: reads are real, writes are simulated, people approve what is foretold, and deviations are asked about."""

import sqlite3
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError

from backstay.testing import Reply
from tests import signing
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import PLANS, Scripts, ended, engine, pending, update
from tests.requirements import promise
from tests.sizes import spread

POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
deny:
  - {tool: "mail.send_email", when: {to: {equals: "never@example.com"}}}
ask:
  - {tool: "mail.search_messages"}
allow:
  - {tool: "mail.send_email", when: {to: {ends_with: "@free.example"}}}
"""
KEY = "the key that workers and gateways share"
BO = POLICY.replace(
    "allow:",
    '  - {tool: "mail.send_email", when: {to: {ends_with: "@two.example"}}, approvers: ["bo@example.com"]}\nallow:',
)
PAY = {"tool": "bank.pay", "arguments": {"to": "${steps.1.result.to}"}}
TOKEN = "⟦sim:{}:{}⟧"


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, sandbox, tmp_path_factory):
    async with AsyncExitStack() as stack:
        scripts = Scripts()
        folder = tmp_path_factory.mktemp("rehearsal")
        given = {"policy": POLICY, "profiles": PLANS, "sandbox": sandbox}
        opened = await stack.enter_async_context(engine(temporal, folder, scripts, **given))
        yield opened, scripts


def send(to="a@free.example", subject="s", body="b", **fields):
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": subject, "body": body}, **fields}


def given(*steps, rehearse=True, **fields):
    return {"plan": {"title": "letters", "steps": list(steps), **fields}, "rehearse": rehearse}


async def decide(handle, request, **more):
    return await update(
        handle, "decide", {"request_id": request["id"], "verdict": "approve", "by": "ana@example.com", **more}
    )


async def by_bo(handle, request):
    said = {"request_id": request["id"], "verdict": "approve", "by": "bo@example.com"}
    await update(handle, "decide", await signing.signed(handle, said, key=KEY))


def sends(opened, handle):
    query = "SELECT json_extract(arguments, '$.subject') FROM requests WHERE tool = 'send_email' AND effect_id LIKE ?"
    return [row[0] for row in opened.mailbox.rows(f"{query} ORDER BY id", f"{handle.id}/%")]


def change(opened, statement, *values):
    with sqlite3.connect(opened.mailbox.path, timeout=10) as connection:
        connection.execute(statement, values)


async def states(handle):
    shown = await handle.query("plan")
    return shown["state"], [(step["status"], step["reason"]) for step in shown["steps"]]


@promise("approvals:rehearsal")
async def test_a_rehearsed_plan_is_approved_by_its_forecast_and_then_runs_without_another_question(shared):
    opened, _ = shared
    refers = send("b@x.example", subject="second", body="about ${steps.1.result.message_id}")
    reads = {"tool": "mail.list_customers", "arguments": {"limit": 1}}
    asks_by_token = {"tool": "mail.list_sent", "arguments": {"to": "${steps.1.result.to}"}}
    named = send("${steps.0.result.customers.0.email}", subject="first")
    handle = await opened.start(given(reads, named, refers, asks_by_token))
    before = opened.mailbox.requests("list_sent")
    (request,) = await pending(handle)
    assert (sends(opened, handle), opened.mailbox.requests("list_sent")) == ([], before)
    customer = opened.mailbox.rows("SELECT email FROM customers ORDER BY rowid LIMIT 1")[0][0]
    told = [(e["idx"], e["tool"], e["simulated"], e["assumed"]) for e in request["forecast"]]
    assert told == [
        (0, "mail.list_customers", False, False),
        (1, "mail.send_email", True, False),
        (2, "mail.send_email", True, False),
        (3, "mail.list_sent", True, True),
    ]
    assert [request["forecast"][1]["arguments"]["to"], request["forecast"][2]["arguments"]["body"]] == [
        customer,
        "about " + TOKEN.format(1, "/message_id"),
    ]
    assert (await handle.query("plan"))["forecast"] == request["forecast"]
    await decide(handle, request)
    result = await ended(handle)
    assert (result["outcome"], sends(opened, handle)) == ("completed", ["first", "second"])
    assert result["usage"]["tool_calls"] == 5
    asked = [event for event in result["events"] if event["name"] == "approval.asked"]
    assert len(asked) == 1
    rehearsed = [event for event in result["events"] if event["name"] == "action.rehearsed"]
    assert len(rehearsed) == 3


@promise("plans:abort-needed")
async def test_what_needs_a_step_that_may_fail_is_left_out_of_a_rehearsal_too(shared):
    opened, _ = shared
    reads = {"tool": "mail.list_customers", "arguments": {"limit": 1}}
    lost = {"tool": "mail.list_sent", "arguments": {"to": "${steps.0.result.no.such}"}, "continue_on_failure": True}
    needs = [send(subject="needs", body="${steps.1.result.total}"), send(body="${steps.2.result.message_id}")]
    handle = await opened.start(given(reads, lost, *needs, send("b@x.example", subject="last")))
    (request,) = await pending(handle)
    assert request["kind"] == "plan"
    await decide(handle, request)
    result = await ended(handle)
    assert (result["outcome"], sends(opened, handle)) == ("completed", ["last"]), result["error"]
    assert [reason for _, reason in (await states(handle))[1]] == ["", "", *["dependency_failed"] * 2, ""]


@promise("approvals:rehearsal-differs")
async def test_a_write_that_is_not_as_foretold_is_asked_about_by_itself_and_says_what_differs(shared):
    opened, _ = shared
    (last,) = opened.mailbox.rows("SELECT count(*) FROM customers")[0]
    change(opened, "INSERT INTO customers (id, name, email) VALUES (9001, 'Zed', 'zed@free.example')")
    reads = {"tool": "mail.list_customers", "arguments": {"limit": 1, "offset": last}}
    named = send("${steps.0.result.customers.0.email}", subject="to zed")
    handle = await opened.start(given(reads, named, send(subject="fits")))
    (request,) = await pending(handle)
    assert request["kind"] == "plan"
    change(opened, "UPDATE customers SET email = 'other@free.example' WHERE id = 9001")
    await decide(handle, request)
    (request,) = await pending(handle)
    assert (request["kind"], request["calls"][0]["arguments"]["to"]) == ("call", "other@free.example")
    assert "/to: foretold 'zed@free.example', now 'other@free.example'" in request["rule"]
    assert sends(opened, handle) == []
    await decide(handle, request)
    assert (await ended(handle))["outcome"] == "completed"
    assert sends(opened, handle) == ["to zed", "fits"]


@promise("approvals:dry-run")
async def test_a_dry_run_ends_without_writes_and_says_what_would_have_happened(shared):
    opened, _ = shared
    reads = {"tool": "mail.list_customers", "arguments": {"limit": 1}}
    handle = await opened.start(given(reads, send("b@x.example"), rehearse=False, dry_run=True))
    result = await ended(handle)
    assert (result["outcome"], sends(opened, handle), result["effects"]) == ("completed", [], [])
    assert await states(handle) == ("COMPLETED", [("success", ""), ("pending", "dry_run")])
    (_, foretold) = result["raw_outputs"]["forecast"]
    assert (foretold["tool"], foretold["arguments"]["to"]) == ("mail.send_email", "b@x.example")


@promise("approvals:dry-run")
@pytest.mark.thorough
async def test_a_person_approves_nothing_but_a_dry_run_of_a_models_plan(shared):
    opened, scripts = shared
    steps = [send("b@x.example", subject="never")]
    task = scripts.task(Reply(calls=[("propose_plan", {"plan": {"title": "t", "steps": steps}})]))
    handle = await opened.start(task)
    (request,) = await pending(handle)
    assert request["proposal"]["approve_options"] == ["approve_all", "approve_per_step", "dry_run_only"]
    await decide(handle, request, option="dry_run_only")
    result = await ended(handle)
    assert (result["outcome"], sends(opened, handle)) == ("completed", [])
    assert await states(handle) == ("COMPLETED", [("pending", "dry_run")])
    asked = [each for each in opened.model.requests if task["text"] in str(each["messages"][1])]
    assert '"dry_run":true' in str(asked[-1]["messages"])


@promise("approvals:rehearsal-budget")
async def test_a_plan_that_its_rehearsal_leaves_too_few_calls_for_is_not_asked_about(shared):
    opened, _ = shared
    reads = {"tool": "mail.list_customers", "arguments": {"limit": 1}}
    steps = [reads, reads, send("b@x.example", subject="1"), send("c@x.example", subject="2")]
    handle = await opened.start(given(*steps) | {"budget": {"max_tool_calls": 5}})
    result = await ended(handle)
    assert (result["outcome"], result["error"]["type"]) == ("budget_exceeded", "BudgetExceeded")
    assert "approval.asked" not in [event["name"] for event in result["events"]]
    handle = await opened.start(given(*steps) | {"budget": {"max_tool_calls": 6}})
    (request,) = await pending(handle)
    await decide(handle, request)
    result = await ended(handle)
    assert (result["outcome"], result["usage"]["tool_calls"]) == ("completed", 6)
    assert sends(opened, handle) == ["1", "2"]
    # What is nothing but rehearsed makes its reads once.
    handle = await opened.start(given(*steps, dry_run=True) | {"budget": {"max_tool_calls": 4}})
    assert (await ended(handle))["outcome"] == "completed"


@promise("approvals:rehearsal-other-rule")
async def test_a_real_call_that_falls_under_another_rule_is_asked_about_and_a_denied_one_is_denied(shared):
    opened, _ = shared
    first = send(subject="one")
    to_reader = send("${steps.0.result.to}", subject="two")
    handle = await opened.start(given(first, to_reader, send("never@example.com", continue_on_failure=True)))
    (request,) = await pending(handle)
    assert [entry["idx"] for entry in request["forecast"]] == [0, 1]
    assert request["forecast"][1]["arguments"]["to"] == TOKEN.format(0, "/to")
    await decide(handle, request)
    result = await ended(handle)
    assert (result["outcome"], sends(opened, handle)) == ("completed", ["one", "two"])
    assert (await states(handle))[1] == [("success", ""), ("success", ""), ("pending", "rejected")]


@promise("plans:repeated-values")
async def test_a_rehearsed_write_that_turns_out_to_repeat_another_is_asked_about_again(shared):
    opened, _ = shared
    again = send("${steps.0.result.to}", subject="twice", continue_on_failure=True)
    handle = await opened.start(given(send(subject="twice"), again))
    (request,) = await pending(handle)
    await decide(handle, request)
    (asked,) = await pending(handle)
    assert "not as foretold: the same call was made at" in asked["rule"]
    await decide(handle, asked, verdict="reject")
    assert (await ended(handle))["outcome"] == "completed"
    assert sends(opened, handle) == ["twice"]


@promise("approvals:rehearsal")
@pytest.mark.thorough
async def test_a_plan_of_more_than_a_hundred_steps_is_not_rehearsed(temporal, tmp_path):
    reads = [{"tool": "mail.list_customers", "arguments": {"limit": 1}}] * 101
    async with engine(temporal, tmp_path, Scripts(), policy=POLICY, max_steps_per_plan=200) as opened:
        handle = await opened.start(given(*reads) | {"budget": {"max_tool_calls": 500}})
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
        assert "plan.steps: 101 are too many to be rehearsed" in str(failure.value.cause)
        assert opened.mailbox.requests("list_customers") == 0


LETTERS = """
found = await mail.list_customers(limit=2)
sent = []
for customer in found["customers"]:
    answer = await mail.send_email(to=customer["email"], subject=SUBJECT, body="b")
    sent.append(answer["message_id"])
await mail.send_email(to="last@x.example", subject=SUBJECT + " sum", body=f"sent {len(sent)}, first {sent[0]}")
return sent
"""


def finish(seen):
    answer = seen.calls("run_program")[-1].answer
    return Reply(calls=[("finish", {"summary": "done", "outputs": {"answer": answer}})])


def program(scripts, source, subject, **task):
    source = source.replace("SUBJECT", repr(subject))
    return scripts.task(Reply(calls=[("run_program", {"code": source})]), finish, **{"rehearse": True, **task})


@promise("approvals:rehearsal-programs")
async def test_a_program_is_rehearsed_and_runs_as_it_was_foretold_without_another_question(shared):
    opened, scripts = shared
    handle = await opened.start(program(scripts, LETTERS, "letters"))
    (request,) = await pending(handle)
    assert (request["kind"], sends(opened, handle)) == ("program", [])
    customers = [row[0] for row in opened.mailbox.rows("SELECT email FROM customers ORDER BY rowid LIMIT 2")]
    told = [(e["idx"], e["tool"], e["simulated"], e["arguments"].get("to")) for e in request["forecast"]]
    assert told == [
        (0, "mail.list_customers", False, None),
        (1, "mail.send_email", True, customers[0]),
        (2, "mail.send_email", True, customers[1]),
        (3, "mail.send_email", True, "last@x.example"),
    ]
    assert request["forecast"][3]["arguments"]["body"] == f"sent 2, first {TOKEN.format(1, '/message_id')}"
    await decide(handle, request)
    result = await ended(handle)
    assert (result["outcome"], sends(opened, handle)) == ("completed", ["letters", "letters", "letters sum"])
    assert result["raw_outputs"]["answer"]


@promise("approvals:rehearsal-rejected")
async def test_a_forecast_that_people_reject_is_told_to_the_model_and_nothing_of_it_is_made(shared):
    opened, scripts = shared
    handle = await opened.start(program(scripts, LETTERS, "unwanted"))
    (request,) = await pending(handle)
    await decide(handle, request, verdict="reject", comment="not today")
    result = await ended(handle)
    assert (result["outcome"], sends(opened, handle), result["effects"]) == ("completed", [], [])
    assert "rejected by ana@example.com: not today" in str(result["raw_outputs"]["answer"])
    assert "program.rehearsed" in [event["name"] for event in result["events"]]


@promise("approvals:rehearsal-all-people")
async def test_every_set_of_people_that_decides_about_a_part_of_a_forecast_must_approve(temporal, sandbox, tmp_path):
    scripts = Scripts()
    source = """
await mail.send_email(to="a@x.example", subject=SUBJECT, body="b")
await mail.send_email(to="b@two.example", subject=SUBJECT, body="b")
"""
    async with engine(temporal, tmp_path, scripts, policy=BO, sandbox=sandbox, approver_key=KEY) as opened:
        handle = await opened.start(program(scripts, source, "parts"))
        requests = sorted(await pending(handle, 2), key=lambda request: request["calls"][0]["arguments"]["to"])
        assert [[call["arguments"]["to"] for call in request["calls"]] for request in requests] == [
            ["a@x.example"],
            ["b@two.example"],
        ]
        assert [len(request["forecast"]) for request in requests] == [2, 2]
        await decide(handle, requests[0])
        assert sends(opened, handle) == []
        await by_bo(handle, requests[1])
        assert ((await ended(handle))["outcome"], sends(opened, handle)) == ("completed", ["parts", "parts"])


@promise("approvals:rehearsal-other-people")
async def test_a_program_call_that_falls_under_other_people_once_its_values_are_known_is_asked_about_by_them(
    temporal, sandbox, tmp_path
):
    scripts = Scripts()
    source = """
first = await mail.send_email(to="b@two.example", subject=SUBJECT, body="b")
await mail.send_email(to=first["to"], subject=SUBJECT, body="again")
"""
    async with engine(temporal, tmp_path, scripts, policy=BO, sandbox=sandbox, approver_key=KEY) as opened:
        handle = await opened.start(program(scripts, source, "late"))
        for request in await pending(handle, 2):
            await by_bo(handle, request)
        (request,) = await pending(handle)
        assert (request["kind"], request["approvers"]) == ("call", ["bo@example.com"])
        assert "other people than those who approved the forecast" in request["rule"]
        assert sends(opened, handle) == ["late"]
        await by_bo(handle, request)
        assert ((await ended(handle))["outcome"], sends(opened, handle)) == ("completed", ["late", "late"])


@promise("approvals:rehearsal-forged-token")
@pytest.mark.parametrize("as_program", spread([True, False], 1))
async def test_a_text_of_a_server_that_looks_like_a_token_stands_for_nothing(temporal, sandbox, tmp_path, as_program):
    scripts = Scripts()
    forged = TOKEN.format(0, "/to")
    answers = {"where": {"data": {"to": "good"}}, "look": {"data": {"to": forged}}, "pay": {"data": {}}}
    tools = [reads("where"), reads("look"), writes("pay", {"type": "object", "properties": {"to": {}}})]
    bank = ScriptedServer(tmp_path / "bank.json", tools, answers)
    toolbox = toolbox_of_servers(tmp_path, bank=bank)
    async with engine(temporal, tmp_path, scripts, policy=POLICY, toolbox=toolbox, sandbox=sandbox) as opened:
        task = given(*({"tool": f"bank.{tool}", "arguments": {}} for tool in ("where", "look")), PAY)
        if as_program:
            source = 'await bank.where()\nseen = await bank.look()\nawait bank.pay(to=seen["to"])'
            task = program(scripts, source, "")
        handle = await opened.start(task)
        (request,) = await pending(handle)
        assert request["forecast"][2]["arguments"] == {"to": f"⟦<U+2060>{forged[1:]}"}
        bank.answers = answers | {"where": {"data": {"to": "evil"}}, "look": {"data": {"to": "evil"}}}
        bank.write()
        await decide(handle, request)
        (request,) = await pending(handle)
        assert "/to: foretold" in request["rule"]
        assert request["calls"][0]["arguments"] == {"to": "evil"}
        await decide(handle, request, verdict="reject")
        await handle.result()
    assert bank.calls("pay") == []


@promise("approvals:rehearsal-program-differs")
async def test_a_program_call_that_is_not_as_foretold_is_asked_about_by_itself(shared):
    opened, scripts = shared
    change(opened, "INSERT INTO customers (id, name, email) VALUES (9101, 'Ida', 'ida@x.example')")
    ((last,),) = opened.mailbox.rows("SELECT count(*) - 1 FROM customers")
    source = LETTERS.replace("limit=2", f"limit=2, offset={last}")
    handle = await opened.start(program(scripts, source, "changing"))
    (request,) = await pending(handle)
    change(opened, "UPDATE customers SET email = 'eve@x.example' WHERE id = 9101")
    await decide(handle, request)
    (request,) = await pending(handle)
    assert (request["kind"], request["options"]) == ("call", ["approve", "reject"])
    assert "/to: foretold 'ida@x.example', now 'eve@x.example'" in request["rule"]
    assert sends(opened, handle) == []
    await decide(handle, request, verdict="reject")
    result = await ended(handle)
    # The program did not catch the error of its call, so that what it would have done afterwards never came.
    assert sends(opened, handle) == []
    assert "Rejected" in str(result["raw_outputs"]["answer"])


@promise("approvals:rehearsal-program-differs")
@pytest.mark.thorough
async def test_a_program_that_goes_elsewhere_than_foretold_asks_about_each_write_that_was_not_foretold(shared):
    opened, scripts = shared
    change(opened, "INSERT INTO customers (id, name, email) VALUES (9201, 'Uma', 'uma@x.example')")
    ((last,),) = opened.mailbox.rows("SELECT count(*) - 1 FROM customers")
    source = LETTERS.replace("limit=2", f"limit=2, offset={last}")
    handle = await opened.start(program(scripts, source, "longer"))
    (request,) = await pending(handle)
    change(opened, "INSERT INTO customers (id, name, email) VALUES (9202, 'Ulf', 'ulf@x.example')")
    await decide(handle, request)
    rules = []
    for _ in range(2):
        (request,) = await pending(handle)
        rules.append((request["calls"][0]["arguments"]["to"], request["rule"]))
        await decide(handle, request)
    assert (await ended(handle))["outcome"] == "completed"
    assert sends(opened, handle) == ["longer", "longer", "longer sum"]
    assert [to for to, _ in rules] == ["ulf@x.example", "last@x.example"]
    assert "/to: foretold 'last@x.example', now 'ulf@x.example'" in rules[0][1]
    assert "no such call was foretold" in rules[1][1]


@promise("approvals:rehearsal-reads")
async def test_a_program_that_only_reads_runs_once_and_nobody_is_asked(shared):
    opened, scripts = shared
    source = 'return len((await mail.list_customers(limit=3))["customers"])'
    before = opened.mailbox.requests("list_customers")
    result = await ended(await opened.start(program(scripts, source, "")))
    assert result["raw_outputs"]["answer"]["data"]["result"] == 3
    assert (opened.mailbox.requests("list_customers") - before, result["usage"]["code_runs"]) == (1, 1)


@promise("approvals:rehearsal-unknown")
async def test_a_program_that_computes_with_a_simulated_value_fails_in_the_rehearsal_and_says_so(shared):
    opened, scripts = shared
    source = 'sent = await mail.send_email(to="a@x.example", subject=SUBJECT, body="b")\nreturn sent["message_id"] + 1'
    result = await ended(await opened.start(program(scripts, source, "adding", profile="default")))
    assert (opened.mailbox.rows("SELECT 1 FROM requests WHERE arguments LIKE '%adding%'"), result["effects"]) == (
        [],
        [],
    )
    said = [event["text"] for event in result["events"] if event["name"] == "program.ended"]
    assert "in the rehearsal, before anything was changed: TypeError" in said[0]


@promise("approvals:rehearsal-bounded")
@pytest.mark.soak
async def test_no_more_than_a_hundred_calls_of_a_program_are_rehearsed(temporal, sandbox, tmp_path):
    scripts = Scripts()
    source = (
        "failed = 0\nfor number in range(102):\n    try:\n"
        '        await mail.send_email(to="a@x.example", subject=f"{SUBJECT} {number}", body="b")\n'
        "    except ToolError as error:\n        failed += error.error_type == 'BudgetExceeded'\nreturn failed"
    )
    async with engine(temporal, tmp_path, scripts, policy=POLICY, sandbox=sandbox, cached=10) as opened:
        handle = await opened.start(program(scripts, source, "many", budget={"max_tool_calls": 200}))
        (request,) = await pending(handle)
        assert len(request["forecast"]) == 100
        assert len(str(request)) < 100_000
        await decide(handle, request, verdict="reject")
        await ended(handle)
        assert sends(opened, handle) == []


PAYS = """
paid = await bank.pay(n=1)
await bank.pay(note=paid["payment"]["id"])
for item in paid["items"]:
    await bank.pay(note=item)
told = await mcp.call_tool("bank.pay", {"note": paid.get("payment")["id"][0:4]})
await bank.pay(x=told.context.simulated)
return str(paid["payment"]["id"])
"""


@promise("approvals:rehearsal-programs")
@pytest.mark.thorough
async def test_an_answer_without_a_schema_is_one_value_and_a_program_takes_parts_out_of_it(temporal, sandbox, tmp_path):
    scripts = Scripts()
    arguments = {"type": "object", "properties": {"n": {}, "note": {"type": "string"}, "x": {"type": "boolean"}}}
    answer = {"data": {"payment": {"id": "p1"}, "items": ["i1"]}}
    bank = ScriptedServer(tmp_path / "bank.json", [writes("pay", arguments)], {"pay": answer})
    toolbox = toolbox_of_servers(tmp_path, bank=bank)
    async with engine(temporal, tmp_path, scripts, policy=POLICY, toolbox=toolbox, sandbox=sandbox) as opened:
        handle = await opened.start(program(scripts, PAYS, ""))
        (request,) = await pending(handle)
        assert bank.calls() == []
        assert [entry["arguments"] for entry in request["forecast"]] == [
            {"n": 1},
            {"note": TOKEN.format(0, "/payment/id")},
            {"note": TOKEN.format(0, "/items/0")},
            {"note": "⟦sim"},
            {"x": True},
        ]
        await decide(handle, request)
        for differs in ("/note: foretold '⟦sim', now 'p1'", "/x: foretold True, now False"):
            (request,) = await pending(handle)
            assert differs in request["rule"]
            await decide(handle, request)
        result = await ended(handle)
    assert result["raw_outputs"]["answer"]["data"]["result"] == "p1"
    assert [call["arguments"] for call in bank.calls()] == [
        {"n": 1},
        {"note": "p1"},
        {"note": "i1"},
        {"note": "p1"},
        {"x": False},
    ]
