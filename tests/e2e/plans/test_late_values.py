"""What a plan refers to is ruled on once more when it is known, right before it is sent."""

from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import PLANS, Scripts, ended, engine, pending, update
from tests.requirements import promise

POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: allow}
deny:
  - {tool: "bank.pay", when: {cents: {gt: 1000}}}
  - {tool: "bank.pay", when: {note: {contains: "never"}}}
  - {tool: "bank.page", when: {url: {starts_with: "http://intern.test"}}}
ask:
  - {tool: "bank.pay", when: {to: {ends_with: "@evil.test"}}}
  - {tool: "bank.page", when: {url: {contains: "odd.test"}}}
  - {tool: "bank.audit"}
"""
LONG = "x" * 5000 + " never"
QUOTE = {
    "small": 900,
    "large": 90000,
    "to": "eve@Evil.test",
    "long": LONG,
    "text": "as said in ${steps.0.result.large}",
    "url": "http://Intern.test/secrets",
    "odd": "http://odd.test/",
}


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        folder, scripts = tmp_path_factory.mktemp("late"), Scripts()
        tools = [reads("quote"), reads("page"), reads("audit"), writes("pay")]
        answers = {"quote": {"data": QUOTE}, **{tool: {"data": {}} for tool in ("page", "audit", "pay")}}
        bank = ScriptedServer(folder / "bank.json", tools, answers)
        toolbox = toolbox_of_servers(folder, bank=bank)
        given = {"policy": POLICY, "profiles": PLANS, "toolbox": toolbox}
        opened = await stack.enter_async_context(engine(temporal, folder, scripts, **given))
        yield opened, scripts, bank


@pytest.fixture
def bank(shared):
    """Return the server, and nothing of earlier tests."""
    server = shared[2]
    before = len(server.calls())
    return lambda tool: [call["arguments"] for call in server.calls()[before:] if call["tool"] == tool]


def steps(tool, **arguments):
    usual = {"pay": {"to": "bo", "note": "n", "cents": 5}}.get(tool, {})
    arguments = usual | arguments
    return [{"tool": "bank.quote", "arguments": {}}, {"tool": f"bank.{tool}", "arguments": arguments}]


def whole(tool, **arguments):
    return {"plan": {"title": "late", "steps": steps(tool, **arguments)}, "on_failure": "keep"}


async def decide(handle, request, verdict="approve", **more):
    await update(handle, "decide", {"request_id": request["id"], "verdict": verdict, "by": "ana", **more})


async def errors_of(handle):
    return [step["error"] for step in (await handle.query("plan"))["steps"]]


@promise("plans:late-denied")
@pytest.mark.parametrize(
    ("tool", "arguments", "rule"),
    [
        ("pay", {"cents": "${steps.0.result.large}"}, "deny[0]"),
        ("pay", {"note": "it says ${steps.0.result.long}"}, "deny[1]"),
        ("page", {"url": "${steps.0.result.url}"}, "deny[2]"),
    ],
    ids=["number", "stored apart", "read"],
)
async def test_a_rule_denies_what_a_reference_brings_though_people_approved_the_plan(
    shared, bank, tool, arguments, rule
):
    opened, _, _ = shared
    handle = await opened.start(whole(tool, **arguments))
    (request,) = await pending(handle)
    await decide(handle, request)
    assert (await ended(handle))["outcome"] == "failed"
    assert bank(tool) == []
    assert f"Denied: denied by the policy: {rule}" in (await errors_of(handle))[1]


@promise("plans:late-asked")
async def test_a_rule_asks_about_what_a_reference_brings_and_people_decide_about_exactly_that(shared, bank):
    opened, _, _ = shared
    given = whole("pay", to="${steps.0.result.to}", note="${steps.0.result.text}")
    for verdict, made in (("reject", []), ("approve", [{"to": QUOTE["to"], "note": QUOTE["text"], "cents": 5}])):
        handle = await opened.start(given)
        (request,) = await pending(handle)
        assert request["calls"][0]["arguments"]["to"] == "${steps.0.result.to}"
        await decide(handle, request)
        (late,) = await pending(handle)
        assert late["id"] != request["id"]
        assert late["calls"][0]["arguments"] == {"to": QUOTE["to"], "note": QUOTE["text"], "cents": 5}
        assert late["rule"].endswith('ask[0]: bank.pay when to ends_with "@evil.test"')
        assert late["options"] == ["approve", "reject"]
        await decide(handle, late, verdict)
        assert ((await ended(handle))["outcome"] == "completed") == (verdict == "approve")
        assert bank("pay") == made


@promise("plans:late-allowed")
async def test_what_no_rule_minds_once_it_is_known_is_sent_without_another_question(shared, bank):
    opened, _, _ = shared
    handle = await opened.start(whole("pay", cents="${steps.0.result.small}"))
    (request,) = await pending(handle)
    await decide(handle, request)
    result = await ended(handle)
    assert result["outcome"] == "completed"
    assert bank("pay") == [{"to": "bo", "note": "n", "cents": 900}]
    # What was sent is listed with its values.
    (called,) = [event["data"] for event in result["events"] if event["data"].get("tool") == "bank.pay"]
    assert called["arguments"] == {"to": "bo", "note": "n", "cents": 900}


@promise("plans:late-dry-run")
async def test_a_dry_run_makes_no_read_that_a_rule_denies_or_asks_about_once_it_is_known(shared, bank):
    opened, _, _ = shared
    for value, then in (("url", "FAILED"), ("odd", "COMPLETED")):
        given = whole("page", url=f"${{steps.0.result.{value}}}")
        handle = await opened.start(given)
        (request,) = await pending(handle)
        await decide(handle, request, option="dry_run_only")
        await ended(handle)
        assert (await handle.query("plan"))["state"] == then
    assert bank("page") == []


@promise("plans:changed-needs")
async def test_a_rule_denies_what_a_reference_brings_that_a_person_put_into_a_plan_of_a_task(shared, bank):
    opened, _, _ = shared
    handle = await opened.start(whole("pay", to="x@evil.test"))
    (request,) = await pending(handle)
    changes = {"1": {"verdict": "modify", "arguments": {"to": "bo", "cents": "${steps.0.result.large}"}}}
    await decide(handle, request, "modify", calls=changes)
    (child,) = await pending(handle)
    await decide(handle, child)
    assert (await ended(handle))["outcome"] == "failed"
    assert bank("pay") == []
    assert "Denied: denied by the policy: deny[0]" in (await errors_of(handle))[1]


@promise("plans:dry-run-asked")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("page", {"url": QUOTE["odd"]}),
        ("audit", {}),
        ("audit", {"of": "${steps.0.result.small}"}),
    ],
    ids=["by its value", "always", "with a reference"],
)
async def test_a_dry_run_makes_no_read_that_a_rule_asks_about(shared, bank, tool, arguments):
    opened, _, _ = shared
    handle = await opened.start(whole(tool, **arguments))
    (request,) = await pending(handle)
    await decide(handle, request, option="dry_run_only")
    assert (await ended(handle))["outcome"] == "completed"
    assert (len(bank("quote")), bank(tool)) == (1, [])
    steps = (await handle.query("plan"))["steps"]
    assert [(step["status"], step["reason"]) for step in steps] == [("success", ""), ("pending", "dry_run")]


@promise("plans:late-by-model")
async def test_a_text_of_the_model_that_looks_like_a_reference_is_sent_as_it_is(shared, bank):
    opened, scripts, _ = shared
    plan = {"title": "late", "steps": steps("pay", cents="${steps.0.result.small}")}
    after = Reply(calls=[("bank__pay", {"to": "bo", "note": "${steps.0.result.small}", "cents": 7})])
    handle = await opened.start(scripts.task(Reply(calls=[("propose_plan", {"plan": plan})]), after))
    (request,) = await pending(handle)
    await decide(handle, request)
    (request,) = await pending(handle)
    assert request["kind"] == "call"
    await decide(handle, request)
    assert (await ended(handle))["outcome"] == "completed"
    assert bank("pay")[1:] == [{"to": "bo", "note": "${steps.0.result.small}", "cents": 7}]
