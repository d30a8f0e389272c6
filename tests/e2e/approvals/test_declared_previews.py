"""What operators declare for people who decide: a read that shows what a call would change, and its side effects."""

import pytest_asyncio

from backstay.testing import Reply
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import Scripts, ended, engine, pending, update
from tests.requirements import promise

POLICY = "default: {read_only: allow, write_safe: ask, restricted_write: ask}\n"
AMOUNT = {"type": "object", "properties": {"n": {"type": "integer"}, "to": {"type": "string"}}}
QUOTED = {"tool": "quote", "arguments": {"n": "{{ arguments.n }}"}}
DECLARED = {
    "pay": {"preview": QUOTED, "side_effects": ["money leaves the account", "the books change"]},
    "pay_broken": {"preview": {"tool": "broken", "arguments": {}}},
    "pay_unsafe": {"preview": {"tool": "pay", "arguments": {"n": 1}}},
    "pay_typed": {"preview": {"tool": "quote", "arguments": {"n": "{{ arguments.to }}"}}},
    "pay_keyed": {"preview": {"tool": "look", "arguments": {"to": "{{ arguments.to }}"}}},
}
SECRET = "secret-of-this-test-" + "q7" * 12
ANSWERS = {
    "pay": {"data": {"id": "p1"}},
    "quote": {"data": {"before": 100, "after": 90, "note": "\x1b[31mred\nline two " + "x" * 900}},
    "broken": {"error": "no quote\x1b[2J today"},
    "look": {"data": {"seen": True}},
    "keys": {"data": {"api_key": SECRET}},
    "pay_keyed": {"data": {"id": "p2"}},
}


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    folder, scripts = tmp_path_factory.mktemp("previews"), Scripts()
    tools = [
        reads("quote", AMOUNT),
        reads("broken"),
        reads("look", AMOUNT),
        reads("keys"),
        *(writes(name, AMOUNT) for name in DECLARED),
    ]
    bank = ScriptedServer(folder / "bank.json", tools, ANSWERS, DECLARED)
    toolbox = toolbox_of_servers(folder, bank=bank)
    async with engine(temporal, folder, scripts, policy=POLICY, toolbox=toolbox) as opened:
        yield opened, scripts, bank


async def asked(shared, *calls):
    opened, scripts, _ = shared
    handle = await opened.start(scripts.task(Reply(calls=list(calls))))
    (request,) = await pending(handle)
    await update(handle, "decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    await ended(handle)
    return request["calls"]


@promise("approvals:previews")
async def test_people_see_what_a_declared_read_says_of_a_call_and_what_it_changes(shared):
    *_, bank = shared
    (call,) = await asked(shared, ("bank__pay", {"n": 10}))
    assert call["side_effects"] == ["money leaves the account", "the books change"]
    assert '"after": 90' in call["diff"]
    assert "\x1b" not in call["diff"]
    assert max(map(len, call["diff"].split("\n"))) <= 410
    assert [each["arguments"] for each in bank.calls("quote")] == [{"n": 10}]
    assert bank.calls("pay") == []


@promise("approvals:previews-failed")
async def test_a_preview_that_fails_says_why_and_stops_nothing(shared):
    broken, typed = await asked(shared, ("bank__pay_broken", {"n": 1}), ("bank__pay_typed", {"to": "ana"}))
    assert broken["diff"].startswith("(no diff: bank.broken: no quote")
    assert "\x1b" not in broken["diff"]
    assert typed["diff"].startswith("(no diff: bank.quote")


@promise("approvals:previews-writing")
async def test_a_preview_that_writes_is_never_called(shared):
    *_, bank = shared
    (call,) = await asked(shared, ("bank__pay_unsafe", {"n": 1}))
    assert call["diff"] is None
    assert bank.calls("pay") == []


@promise("approvals:previews-secret")
async def test_a_preview_gets_no_secret_and_the_approved_call_does(shared):
    opened, scripts, bank = shared
    seen = []

    def paying(conversation):
        seen.append(conversation.answers()[0]["data"]["api_key"])
        return Reply(calls=[("bank__pay_keyed", {"to": seen[0]})])

    handle = await opened.start(scripts.task(Reply(calls=[("bank__keys", {})]), paying))
    (request,) = await pending(handle)
    assert [each["arguments"] for each in bank.calls("look")] == [{"to": seen[0]}]
    assert SECRET not in seen[0]
    assert SECRET not in str(request)
    await update(handle, "decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    await ended(handle)
    assert [each["arguments"] for each in bank.calls("pay_keyed")] == [{"to": SECRET}]


@promise("approvals:previews-plan")
async def test_the_proposal_of_a_plan_tells_what_is_declared_and_previews_no_unknown_values(shared):
    opened, _, bank = shared
    before = len(bank.calls("quote"))
    first = {"tool": "bank.pay", "arguments": {"n": 20}}
    later = {"tool": "bank.pay", "arguments": {"to": "${steps.0.result.id}"}}
    handle = await opened.start({"plan": {"steps": [first, later]}})
    (request,) = await pending(handle)
    proposal = request["proposal"]
    assert proposal["estimated_side_effects"] == ["money leaves the account", "the books change"]
    assert ['"after": 90' in (step["diff_preview"] or "") for step in proposal["steps"]] == [True, False]
    assert len(bank.calls("quote")) == before + 1
    await update(handle, "decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    await handle.result()
