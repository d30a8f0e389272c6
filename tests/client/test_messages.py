"""Read back what the model of a run was told and what it said: of open, ended and continued runs, and of plans."""

import asyncio
import json

import pytest
import pytest_asyncio

from backstay.client import Backstay
from backstay.errors import RunNotFound
from backstay.testing import Reply
from examples.mailbox.seed import seed
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.e2e.sessions.test_continuing import continued
from tests.engine import Scripts, engine, pending
from tests.requirements import promise
from workflows.context import carrying

POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: ask}
ask: [{tool: "mail.send_email", when: {to: {ends_with: "@asked.example"}}}]
"""
SECRET = "sk-live-" + "7Hq2x" * 6
ALL = Reply(text="I read all.", calls=[("mail__list_invoices", {"limit": 100}), ("mail__list_customers", {"limit": 1})])


def mail(to, body="b"):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": body})])


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    scripts, folder = Scripts(), tmp_path_factory.mktemp("messages")
    await seed(folder / "mailbox.db", customers=20, invoices=100)
    async with engine(temporal, folder, scripts, policy=POLICY) as running:
        yield running, scripts, Backstay(temporal, task_queue=running.settings.task_queue)


async def read(run):
    return [message async for message in run.messages()]


def paired(messages):
    """Assert that each call is answered once, right after it, and return the names of the calls."""
    names, waiting = [], []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        elif message["role"] == "assistant":
            assert waiting == []
            waiting = [call["id"] for call in message.get("tool_calls", ())]
            names += [call["function"]["name"] for call in message.get("tool_calls", ())]
    return names


async def only_waiting(handle):
    """Wait until the run has told people what it asks; return the length of its history."""
    async with asyncio.timeout(150):
        while (described := (await handle.describe()).raw_description).pending_activities or described.HasField(
            "pending_workflow_task"
        ):
            await asyncio.sleep(0.1)
    return described.workflow_execution_info.history_length


@promise("clients:messages")
async def test_the_messages_are_those_of_the_model_with_every_answer_whole_and_the_cost_of_each_step(opened):
    running, scripts, backstay = opened
    run = await backstay.start(scripts.task(ALL, mail("nobody"), mail("a@example.com", f"the key is {SECRET}")))
    handle = backstay.client.get_workflow_handle(run.id)
    (request,) = await pending(handle)  # a secret is asked about
    before = await only_waiting(handle)
    early = await read(run)
    assert await only_waiting(handle) == before
    await run.approve(request["id"], by="ana")
    result = await run.result()
    messages = await read(run)

    told = running.model.requests[-1]["messages"][:-1]  # without what is left of the budget, which changes each time
    assert [(m["role"], m.get("tool_calls"), m.get("tool_call_id")) for m in messages[:-1]] == [
        (m["role"], m.get("tool_calls"), m.get("tool_call_id")) for m in told
    ]
    assert early == messages[: len(early)]
    assert paired(messages)[-1] == "finish"
    invoices, customers, refused, _ = [m["content"] for m in messages if m["role"] == "tool"]
    assert len(json.loads(invoices)["invoices"]) == 100
    assert len(json.loads(customers)["customers"]) == 1
    assert "is not an e-mail address" in refused
    said = [m for m in messages if m["role"] == "assistant"]
    assert [m["step"] for m in said] == [1, 2, 3, 4]
    assert {m["model"] for m in said} == {"scripted"}
    used = result.usage["models"]["scripted"]
    assert sum(m["usage"]["input_new_tokens"] for m in said) == used["input_new_tokens"]
    assert sum(m["usage"]["cost_usd"] for m in said) == pytest.approx(used["cost_usd"])
    assert SECRET not in json.dumps(messages)


@promise("clients:messages")
@pytest.mark.thorough
async def test_a_long_run_that_was_cut_and_continued_is_read_back_whole(temporal, tmp_path, monkeypatch):
    monkeypatch.setattr(carrying, "MOST_SIGNALS", 0)
    # A script cannot count the answers of a model that is shown only the last ones.
    done = Reply(calls=[("finish", {"summary": "done"})])
    replies = iter([*[ALL] * 12, mail("a@asked.example"), *[ALL] * 3, done])
    await seed(tmp_path / "mailbox.db", customers=20, invoices=100)
    async with engine(temporal, tmp_path, lambda _: next(replies), policy=POLICY, context_tokens=1000) as running:
        backstay = Backstay(temporal, task_queue=running.settings.task_queue)
        budget = {"max_steps": 40, "max_tool_calls": 100, "max_llm_cost_usd": None}
        handle = await running.start({"text": "read on", "budget": budget})
        await pending(handle)
        await continued(handle)
        (request,) = await pending(handle)
        await backstay.run(handle.id).approve(request["id"], by="ana")
        assert (await backstay.run(handle.id).result()).success
        messages = await read(backstay.run(handle.id))

    both = ["mail__list_invoices", "mail__list_customers"]
    assert paired(messages) == [*both * 12, "mail__send_email", *both * 3, "finish"]
    assert [m["role"] for m in messages[:2]] == ["system", "user"]
    whole = [m["content"] for m in messages if m["role"] == "tool"]
    assert [len(json.loads(content)["invoices"]) for content in whole if "invoices" in content] == [100] * 15


@promise("clients:messages-plan")
async def test_the_calls_of_a_plan_stand_for_what_a_model_says(opened):
    _, _, backstay = opened
    steps = [
        {"tool": "mail.list_invoices", "arguments": {"limit": 100}},
        {"tool": "mail.send_email", "arguments": {"to": "no address", "subject": "s", "body": "b"}},
    ]
    run = await backstay.start({"plan": {"steps": [steps[0], steps[1] | {"continue_on_failure": True}]}})
    await run.result()
    messages = await read(run)

    assert paired(messages) == ["mail__list_invoices", "mail__send_email"]
    listed, failed = [m["content"] for m in messages if m["role"] == "tool"]
    assert len(json.loads(listed)["invoices"]) == 100
    assert "is not an e-mail address" in failed


@promise("clients:messages-large-item")
async def test_an_answer_with_an_item_larger_than_a_page_is_read_whole(temporal, tmp_path):
    answer = [{"text": "long " * 40_000}, "short", "\u20ac" * 150_000]
    desk = ScriptedServer(tmp_path / "desk.json", [reads("look")], {"look": {"data": {"found": answer}}})
    toolbox = toolbox_of_servers(tmp_path, desk=desk)
    replies = [Reply(calls=[("desk__look", {})]), Reply(calls=[("finish", {"summary": "done"})])]
    async with engine(temporal, tmp_path, replies, policy=POLICY, toolbox=toolbox) as running:
        run = await Backstay(temporal, task_queue=running.settings.task_queue).start("look")
        await run.result()
        (told,) = [m["content"] for m in await read(run) if m["role"] == "tool"]

    assert json.loads(told) == {"found": answer}


@promise("clients:messages-nobody")
async def test_messages_of_nobody_are_not_found(opened):
    with pytest.raises(RunNotFound):
        await read(opened[2].run("nobody-of-that-name"))
