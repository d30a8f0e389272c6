"""Tools in Python in a run: asked about, verified, undone, and checked by the operator's own code."""

import json
import shutil
from pathlib import Path

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise

EXAMPLE = Path(__file__).parents[3] / "examples" / "billing"
SIGNATURE = "a-signature-that-nobody-sees"
POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: allow}
deny: [people.post_message]
undo: {ask: ["chat.*"]}
"""
ODD = """
from pathlib import Path
from typing import Any

from backstay import ToolContext, tool

LOG = Path(__file__).with_name("log")


def was_booked(result: None, arguments: dict[str, Any], context: ToolContext) -> Any:
    return {"seat": 7} if context.effect_id in LOG.read_text() else False


def unbook(result: dict[str, Any], arguments: dict[str, Any], context: ToolContext) -> None:
    LOG.write_text(LOG.read_text() + f"unbooked {result['seat']} for {arguments['who']}\\n")


@tool(safety="write_safe", undo=unbook, verify=was_booked)
def book(who: str, context: ToolContext) -> dict[str, int]:
    \"\"\"Book a seat, and lose the answer.\"\"\"
    LOG.write_text(f"{context.effect_id}\\n")
    raise OSError("the line went dead")


def were_cleared(result: None, arguments: dict[str, Any], context: ToolContext) -> list[str]:
    return []


@tool(safety="write_safe", verify=were_cleared)
def clear() -> list[str]:
    \"\"\"Clear the seats, return those that are left, and lose the answer.\"\"\"
    raise OSError("the line went dead")


@tool(safety="write_safe")
def lose(who: str) -> None:
    \"\"\"Do something, and lose the answer.\"\"\"
    raise OSError("the line went dead")


@tool(safety="read_only")
def tell(context: ToolContext) -> list[str]:
    \"\"\"Tell what the function knows.\"\"\"
    return [context.user_id, context.session_id, context.secret("signature")]


@tool
async def pay(cents: int, context: ToolContext) -> dict[str, Any]:
    \"\"\"Pay, when a person says how.\"\"\"
    return {"paid": cents, "how": await context.ask("How?", str)}
"""
SAFETY = """
from backstay import Ask, Deny, ProposedCall, safety_policy


@safety_policy("odd.pay")
def limits(call: ProposedCall) -> Ask | Deny | None:
    if call.arguments["cents"] > 1000:
        return Deny("nobody pays so much")
    return Ask("it is more than usual") if call.arguments["cents"] > 100 else None
"""


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("python_tools")
    shutil.copy(EXAMPLE / "billing.py", folder)
    shutil.copy(EXAMPLE.parent.parent / "tests/toolbox/servers/people.py", folder)
    (folder / "odd.py").write_text(ODD, encoding="utf-8")
    (folder / "safe.py").write_text(SAFETY, encoding="utf-8")
    secrets = {"signature": SIGNATURE}
    configuration = json.loads((EXAMPLE / "toolbox.json").read_text(encoding="utf-8"))
    configuration["python"]["billing"]["secrets"] = secrets
    configuration["python"] |= {"odd": {"module": "odd.py", "secrets": secrets}, "slack": {"provider": "people"}}
    configuration |= {"safety": ["safe.py"]}
    configuration["python"]["talk"] = {"provider": "chat", "module": "slack", "shape": "composio"}
    people = {"command": "python", "args": ["people.py", "plain"]}
    configuration["mcpServers"] = {"people": people, "chat": people | {"args": ["people.py", "composio"]}}
    toolbox = folder / "toolbox.json"
    toolbox.write_text(json.dumps(configuration), encoding="utf-8")
    scripts = Scripts()
    # What breaks is looked up when its deadline is over.
    options = {"policy": POLICY, "toolbox": toolbox, "request_deadline_seconds": 8}
    async with engine(temporal, folder, scripts, **options) as opened:
        yield opened, scripts


GIVES_UP = Reply(calls=[("finish", {"summary": "I cannot", "outputs": {}, "success": False})])


def calls(tool, **arguments):
    return Reply(calls=[(tool, arguments)])


def told(opened, task):
    """Return all that the model was shown in a run."""
    asked = [request["messages"] for request in opened.model.requests]
    return json.dumps([messages for messages in asked if task["text"] in json.dumps(messages)])


async def decide(handle, request, verdict, **more):
    sent = {"request_id": request["id"], "verdict": verdict, "by": "ana@example.com", **more}
    await handle.execute_update("decide", sent)


@promise("python:example")
async def test_the_example_charges_and_undoes_when_the_run_fails(shared):
    opened, scripts = shared
    task = scripts.task(calls("billing__charge", customer="ana@example.com", cents=500), GIVES_UP)
    result = await ended(await opened.start(task))
    assert result["outcome"] == "rolled_back"
    assert [effect["state"] for effect in result["effects"]] == ["compensated"]
    assert list((opened.settings.toolbox.parent / "charges").iterdir()) == []


@promise("python:example")
async def test_what_a_function_raises_reaches_the_model_as_it_was_meant(shared):
    opened, scripts = shared
    task = scripts.task(calls("billing__charge", customer="Ana", cents=500))
    result = await ended(await opened.start(task))
    assert [effect["state"] for effect in result["effects"]] == ["failed"]
    assert "call it again in another way: give the customer's address" in told(opened, task)


@promise("python:lost")
async def test_a_write_that_breaks_is_verified_and_can_still_be_undone(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(calls("odd__book", who="ana"), GIVES_UP))
    result = await ended(handle)
    assert [effect["state"] for effect in result["effects"]] == ["compensated"]
    assert (opened.settings.toolbox.parent / "log").read_text().splitlines()[1:] == ["unbooked 7 for ana"]


@promise("python:lost-empty")
async def test_a_write_whose_check_returns_an_empty_answer_took_place(shared):
    opened, scripts = shared
    result = await ended(await opened.start(scripts.task(calls("odd__clear"))))
    assert [effect["state"] for effect in result["effects"]] == ["applied"]


@promise("python:lost")
@pytest.mark.thorough
async def test_a_write_that_breaks_and_cannot_be_verified_is_left_to_a_person(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(calls("odd__lose", who="ana")))
    (request,) = await pending(handle)
    assert (request["kind"], "happened" in request["options"]) == ("outcome", True)
    await decide(handle, request, "did_not_happen")
    assert [effect["state"] for effect in (await ended(handle))["effects"]] == ["not_sent"]


@promise("python:context")
async def test_a_function_knows_the_session_and_its_secret_is_never_shown(shared):
    opened, scripts = shared
    task = scripts.task(calls("odd__tell"), user_id="singleton", session_id="s-77")
    handle = await opened.start(task)
    await ended(handle)
    assert "s-77" in told(opened, task)
    assert SIGNATURE not in told(opened, task)
    assert SIGNATURE not in str(await handle.fetch_history())


@promise("python:checks")
async def test_checks_of_the_operator_deny_and_ask_before_anything_is_sent(shared):
    opened, scripts = shared
    denied = scripts.task(calls("odd__pay", cents=5000))
    assert [effect["state"] for effect in (await ended(await opened.start(denied)))["effects"]] == []
    assert "denied by a safety policy: nobody pays so much" in told(opened, denied)

    declined = scripts.task(calls("odd__pay", cents=500))
    handle = await opened.start(declined)
    (request,) = await pending(handle)
    assert "odd.pay asks: a safety policy: it is more than usual" in request["question"]
    await decide(handle, request, "answer", answer=False)
    assert (await ended(handle))["effects"] == []
    assert "a person did not allow what a safety policy asked about" in told(opened, declined)


@promise("python:checks")
@pytest.mark.thorough
async def test_a_call_that_a_check_and_the_tool_ask_about_is_made_once_with_both_answers(shared):
    opened, scripts = shared
    task = scripts.task(calls("odd__pay", cents=500))
    handle = await opened.start(task)
    (request,) = await pending(handle)
    await decide(handle, request, "answer", answer=True)
    seen = {request["id"]}
    while (asked := (await pending(handle))[0])["id"] in seen:
        pass
    assert "odd.pay asks: How?" in asked["question"]
    await decide(handle, asked, "answer", answer="in cash")
    result = await ended(handle)
    assert [(effect["state"], effect["send"]) for effect in result["effects"]] == [("applied", 1)]
    assert "in cash" in told(opened, task)


@promise("python:one-path")
async def test_a_rule_about_a_tool_holds_for_the_function_that_calls_it(shared):
    opened, scripts = shared
    task = scripts.task(calls("slack__post_message", channel="general", text="t"))
    result = await ended(await opened.start(task))
    assert result["effects"] == []
    assert "slack.post_message calls people.post_message" in told(opened, task)


@promise("python:one-path")
async def test_an_undo_that_calls_a_tool_about_which_a_rule_asks_is_left_to_a_person(shared):
    opened, scripts = shared
    task = scripts.task(calls("talk__post_message", channel="general", text="t"), GIVES_UP)
    result = await ended(await opened.start(task))
    assert result["outcome"] == "rollback_failed"
    assert [effect["state"] for effect in result["effects"]] == ["applied"]
    assert "only rules that name talk.post_message_undo can ask about it" in json.dumps(result)
