"""Secrets in what people type: nowhere but in Temporal's record of what they sent, and in the tool that needs them."""

import asyncio
import json
import sqlite3

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError

from backstay import connect
from backstay.testing import Reply
from tests.e2e.labelled import DONE, Labelled
from tests.e2e.scripted_server import SERVER, ScriptedServer, reads, writes
from tests.e2e.tools.test_secrets import KEY
from tests.engine import ROOT, engine, pending, update
from tests.requirements import promise
from tests.webhooks import receiver

BY = "ana@example.com"
POLICY = "default: {read_only: allow, write_safe: ask, restricted_write: ask}\nallow: [office.book]\n"
SCRIPTS = Labelled(
    talk=[
        Reply(calls=[("desk__pay", {"account": "DE1", "pin": 1})]),
        Reply(calls=[("ask_person", {"question": "Which one?"})]),
        DONE,
    ],
    stop=[Reply(calls=[("desk__pay", {"account": "DE1", "pin": 1})]), DONE],
    edit=[Reply(calls=[("desk__pay", {"account": "DE1", "pin": 1})]), DONE],
    book=[Reply(calls=[("office__book", {"room": "attic"})]), DONE],
)
SHAPE = {
    "type": "object",
    "properties": {"account": {"type": "string"}, "api_key": {"type": "string"}, "pin": {"type": "integer"}},
}


def token(number):
    return f"ghp_{'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'[:-2]}{number:02}"


@pytest_asyncio.fixture(scope="module")
async def office(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("typed")
    desk = ScriptedServer(
        folder / "desk.json", [reads("look"), writes("pay", SHAPE)], {"pay": {"data": {"paid": True}}}
    )
    desk.write()
    servers = {
        "desk": {"command": "python", "args": [str(SERVER), str(desk.path)]},
        "office": {"command": "python", "args": [str(ROOT / "tests/toolbox/servers/office.py"), "stdio"]},
    }
    toolbox = folder / "toolbox.json"
    toolbox.write_text(json.dumps({"mcpServers": servers, "providers": {"desk": {"trusted": True}}}), encoding="utf-8")
    async with receiver() as (url, taken):
        options = {"toolbox": toolbox, "openai_api_key": KEY, "notify_urls": [f"{url}/take"]}
        async with engine(temporal, folder, SCRIPTS, policy=POLICY, request_deadline_seconds=20, **options) as opened:
            yield opened, desk, taken


async def decide(handle, verdict, **more):
    (request,) = await pending(handle)
    return await update(handle, "decide", {"request_id": request["id"], "verdict": verdict, "by": BY, **more})


async def seen_of(opened, handle, taken, result):
    """Return what is told and kept of a run, by where it stands; Temporal's history holds what people sent."""
    queries = {}
    for name, ask in {"status": [], "timeline": [{"after": 0}], "plan": [], "budget": [], "result": []}.items():
        queries[name] = await handle.query(name, *ask)
    described = await handle.describe()
    async with connect(client=opened.client, task_queue=opened.settings.task_queue) as backstay:
        told = [message async for message in backstay.run(handle.id).messages()]
    places = {
        "queries": json.dumps(queries, ensure_ascii=False),
        "Result": json.dumps(result, ensure_ascii=False),
        "description": described.raw_description.SerializeToString().decode("utf-8", "replace"),
        "prompts": json.dumps(opened.model.requests, ensure_ascii=False),
        "export": json.dumps(told, ensure_ascii=False, default=str),
        "blobs": "".join(
            path.read_text("utf-8", "replace")
            for path in (opened.settings.home / "blobs").rglob("*")
            if path.is_file() and path.suffix != ".sealed"
        ),
    }
    with sqlite3.connect(opened.settings.home / "backstay.db") as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        places |= {f"table {name}": repr(connection.execute(f'SELECT * FROM "{name}"').fetchall()) for name in tables}
    while not taken.empty() or "ended" not in places.get("notices", ""):
        _, _, body = await asyncio.wait_for(taken.get(), 150)
        places["notices"] = places.get("notices", "") + body.decode()
    return places


def found(places, secrets):
    return {place: [name for name in secrets if secrets[name] in text] for place, text in places.items()}


def nowhere(places):
    return {place: [] for place in places}


@promise("secrets:typed")
@pytest.mark.thorough
async def test_what_people_type_in_words_is_told_and_kept_without_its_secrets(office):
    opened, _, taken = office
    kinds = ("task", "reason", "resumed", "message", "comment", "undo", "answer", "top-up")
    typed = {kind: token(number) for number, kind in enumerate(kinds)}
    secrets = {**typed, "known to the worker": KEY}
    handle = await opened.start({"text": f"{typed['task']} opens it <talk>", "metadata": {"note": typed["task"]}})
    await pending(handle)
    await pending(handle)
    await update(handle, "pause", {"by": BY, "reason": f"wait: {typed['reason']} and {KEY}"})
    paused = json.dumps(await handle.query("status"), ensure_ascii=False)
    await update(handle, "resume", {"by": BY, "reason": f"go on with {typed['resumed']}"})
    await update(handle, "message", {"by": BY, "text": f"use {typed['message']} or {KEY}"})
    await update(handle, "top_up", {"by": BY, "max_steps": 2, "reason": f"since {typed['top-up']}"})
    await decide(handle, "reject", comment=f"no, use {typed['comment']} or {KEY}")
    await decide(handle, "answer", answer={"which": f"the one of {typed['answer']}", "or": KEY})
    result = await handle.result()
    places = await seen_of(opened, handle, taken, result) | {"paused": paused}
    assert result["outcome"] == "completed", result
    assert found(places, secrets) == nowhere(places)
    # The words around them were really told.
    assert "no, use ⟦secret:person/" in places["prompts"]
    assert "the one of ⟦secret:person/" in places["prompts"]
    assert "wait: ⟦secret:person/" in places["paused"]
    assert "no, use ⟦secret:person/" in places["notices"]


@promise("secrets:typed")
async def test_a_rejection_that_stops_a_run_tells_its_reason_without_the_secret(office):
    opened, _, taken = office
    handle = await opened.start({"text": "<stop>"})
    await decide(handle, "reject", stop=True, comment=f"that is {token(20)}")
    result = await handle.result()
    places = await seen_of(opened, handle, taken, result)
    assert found(places, {"comment": token(20)}) == nowhere(places)
    assert "that is ⟦secret:person/" in result["error"]["message"]


@promise("secrets:typed-needed")
async def test_an_argument_that_a_person_edits_in_reaches_its_tool_and_nobody_else(office):
    opened, desk, taken = office
    handle = await opened.start({"text": "<edit>"})
    change = {"0": {"verdict": "modify", "arguments": {"api_key": token(30), "pin": 471_104_711}}}
    await decide(handle, "approve", calls=change)
    result = await handle.result()
    assert desk.calls("pay")[-1]["arguments"] == {"account": "DE1", "api_key": token(30), "pin": 471_104_711}
    places = await seen_of(opened, handle, taken, result)
    assert found(places, {"key": token(30), "number": "471104711"}) == nowhere(places)


@promise("secrets:typed-needed")
@pytest.mark.thorough
async def test_an_answer_that_a_tool_asks_for_reaches_it_and_nobody_else(office):
    opened, _, taken = office
    handle = await opened.start({"text": "<book>"})
    wrong = {"name": token(40), "people": 99, "layout": "rows", "catering": True}
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await decide(handle, "answer", answer=wrong)
    await decide(handle, "answer", answer=wrong | {"people": 3})
    result = await handle.result()
    assert [effect["state"] for effect in result["effects"]] == ["applied"]
    # The server says back what it got, and that is the secret again.
    assert '"name\\":\\"⟦secret:' in json.dumps(opened.model.requests[-1], ensure_ascii=False)
    places = await seen_of(opened, handle, taken, result) | {"refusal": str(refused.value.cause)}
    assert found(places, {"answer": token(40)}) == nowhere(places)


@promise("secrets:typed")
@pytest.mark.thorough
async def test_the_words_and_arguments_of_a_plan_that_a_task_gives_are_told_without_their_secrets(office):
    opened, desk, taken = office
    secrets = {"title": token(50), "summary": token(51), "argument": token(52), "input": token(53), "quota": token(54)}
    step = {"tool": "desk.pay", "summary": f"pay with {secrets['summary']}"}
    step["arguments"] = {"account": secrets["argument"], "api_key": "${input.key}"}
    plan = {"title": f"Use {secrets['title']}", "steps": [step]}
    handle = await opened.start({"plan": plan, "input": {"key": secrets["input"]}})
    request = json.dumps(await pending(handle))
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await update(handle, "top_up", {"by": BY, "quotas": {secrets["quota"]: 3}})
    await decide(handle, "approve")
    result = await handle.result()
    assert desk.calls("pay")[-1]["arguments"] == {"account": secrets["argument"], "api_key": secrets["input"]}
    places = await seen_of(opened, handle, taken, result) | {"request": request, "refusal": str(refused.value.cause)}
    assert found(places, secrets) == nowhere(places)


@promise("secrets:typed-names")
@pytest.mark.parametrize("field", ["user_id", "session_id", "policy", "budget"])
async def test_a_name_with_a_secret_in_it_is_refused_without_saying_it(office, field):
    opened, _, _ = office
    values = {"policy": {"deny": [{"tool": "desk.pay", "when": {"account": {"equals": token(60)}}}]}}
    values |= {"budget": {"quotas": {token(60): 1}}}
    handle = await opened.start({"text": "<quiet>", field: values.get(field, token(60))})
    with pytest.raises(WorkflowFailureError) as refused:
        await handle.result()
    assert (refused.value.cause.type, token(60) in refused.value.cause.message) == ("TaskInvalid", False)
    assert "a secret (github_token) is in it" in refused.value.cause.message
