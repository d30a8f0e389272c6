"""The list of runs at the terminal."""

import asyncio
import json

import opening
from backstay.client import Backstay
from people.runs.listing import list_page
from tests.cli.commands import environment_of, forked
from tests.engine import ended, held_by_temporal, pending
from tests.requirements import promise


def send(to):
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": "s", "body": "b"}}


@promise("runs:list-outcomes")
async def test_the_newest_runs_come_first_each_with_the_outcome_that_it_had(opened, nursery, tmp_path):
    waiting = await opened.start({"plan": {"steps": [send("a@list.example")]}})
    (request,) = await pending(waiting)
    rejected = await opened.start({"plan": {"steps": [send("b@list.example")]}})
    (other,) = await pending(rejected)
    await rejected.execute_update("decide", {"request_id": other["id"], "verdict": "reject", "by": "ana"})
    assert (await ended(rejected))["outcome"] == "failed"
    rows = []
    for _ in range(20):  # what has just ended is not listed at once
        given = {"environment": environment_of(opened), "folder": tmp_path}
        done = await forked(nursery, "list", "--limit", "1", "--output", "json", **given)
        rows = json.loads(done.out)
        if rows and rows[0]["id"] == rejected.id and rows[0]["state"] != "running":
            break
    assert [(row["id"], row["state"]) for row in rows] == [(rejected.id, "failed")]
    short = rejected.id[: len("task-") + 8]
    assert f"  {short}  " in (await forked(nursery, "list", "--limit", "1", **given)).out
    assert rejected.id in (await forked(nursery, "show", short, **given)).out
    await waiting.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    await ended(waiting)


@promise("runs:list-chosen")
async def test_runs_are_listed_by_state_and_words_and_a_state_that_there_is_not_is_refused(opened, nursery, tmp_path):
    waiting = await opened.start({"plan": {"title": "Chosen pears", "steps": [send("a@chosen.example")]}})
    (request,) = await pending(waiting)
    over = await opened.start({"plan": {"title": "Chosen plums", "steps": [{"tool": "mail.list_customers"}]}})
    assert (await ended(over))["outcome"] == "completed"

    async def listed(*chosen):
        given = {"environment": environment_of(opened), "folder": tmp_path}
        return await forked(nursery, "list", *chosen, "--output", "json", **given)

    assert [row["text"] for row in json.loads((await listed("--words", "chosen")).out)] == [
        "Chosen plums",
        "Chosen pears",
    ]
    (row,) = json.loads((await listed("--words", "chosen", "--state", "waiting")).out)
    assert (row["id"], row["state"], row["pending"]) == (waiting.id, "waiting", 1)
    (row,) = json.loads((await listed("--words", "chosen", "--state", "completed")).out)
    assert (row["id"], row["state"]) == (over.id, "completed")
    assert json.loads((await listed("--words", "no such fruit")).out) == []
    wrong = await listed("--state", "happy")
    assert (wrong.code, "--state: 'happy' is none of all, open" in wrong.err) == (2, True)
    await waiting.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    await ended(waiting)


@promise("runs:list-held")
async def test_a_run_that_temporal_itself_has_paused_is_listed_as_an_open_one(opened, nursery, tmp_path):
    held = await opened.start({"plan": {"title": "Held pears", "steps": [send("a@held.example")]}})
    (request,) = await pending(held)
    given = {"environment": environment_of(opened), "folder": tmp_path}
    async with held_by_temporal(opened.client, held.id):
        query = f"WorkflowId = '{held.id}' AND ExecutionStatus = 'Paused'"
        async with asyncio.timeout(60):
            while not (await opened.client.count_workflows(query)).count:
                await asyncio.sleep(0.1)
        newest = json.loads((await forked(nursery, "list", "--output", "json", **given)).out)
        (row,) = json.loads((await forked(nursery, "list", "--words", "held pears", "--output", "json", **given)).out)
    assert next(each["state"] for each in newest if each["id"] == held.id) == row["state"] == "waiting"
    await held.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    await ended(held)


@promise("runs:list-begun")
async def test_a_run_that_has_just_begun_has_not_stopped_because_temporals_list_comes_late(opened, monkeypatch):
    begun, stopped = [
        await opened.start({"plan": {"title": "Late quinces", "steps": [send(f"{n}@late.example")]}}) for n in range(2)
    ]
    (request,) = await pending(begun)
    await pending(stopped)
    await stopped.terminate()

    async def lists_none(*_):
        return []

    async def sees_all(*_):
        return True

    monkeypatch.setattr(Backstay, "open_runs", lists_none)
    async with opening.open_store(opened.settings) as store:
        found = await list_page(Backstay(opened.client), store, sees_all, words="quinces", limit=10)
    assert {run["workflow_id"]: run["state"] for run in found.runs} == {begun.id: "open", stopped.id: "stopped"}
    await begun.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    await ended(begun)
