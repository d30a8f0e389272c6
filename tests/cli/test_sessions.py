"""The commands by which a person goes on from a run, and tells an open one something."""

import json

import pytest

from backstay.client import Backstay
from backstay.testing import Reply
from tests.cli.commands import environment_of, forked
from tests.engine import forgotten, pending
from tests.requirements import promise

QUESTION = Reply(calls=[("ask_person", {"question": "Which?"})])


def finish(summary):
    return Reply(calls=[("finish", {"summary": summary, "outputs": {}, "success": True})])


@pytest.fixture
def run(opened, nursery, tmp_path):
    async def run(*arguments, **more):
        return await forked(nursery, *arguments, environment=environment_of(opened, **more), folder=tmp_path)

    return run


@promise("sessions:session-commands")
@pytest.mark.thorough
async def test_a_run_goes_on_from_the_last_one_and_from_one_by_its_beginning(run, scripts, opened):
    task = scripts.task(finish("first"), finish("second"), finish("third"))
    done = await run("run", task["text"], "--user", "ana", "--id", "turn-of-ana", "--output", "json")
    assert (done.code, json.loads(done.out)["final_summary"]) == (0, "first"), done.err
    done = await run("run", "--continue", "last", "and now?", "--id", "next-turn-of-ana", "--output", "json")
    assert (done.code, json.loads(done.out)["final_summary"]) == (0, "second"), done.err
    done = await run("run", "--continue", "next-turn", "and then?", "--output", "json")
    assert (done.code, json.loads(done.out)["final_summary"]) == (0, "third"), done.err
    assert [event["user_id"] for event in json.loads(done.out)["events"]][:1] == ["ana"]
    done = await run("run", "--continue", "turn-of-ana", "--user", "bo", "mine?")
    assert done.code == 2
    assert "belongs to another user" in done.err


@promise("sessions:forgotten")
async def test_a_run_goes_on_from_one_that_temporal_has_forgotten(run, scripts, opened):
    reads = Reply(calls=[("mail__list_customers", {})])
    task = scripts.task(reads, finish("first"), finish("second"))
    done = await run("run", task["text"], "--user", "ana", "--id", "forgotten-turn")
    assert done.code == 0, done.err
    await forgotten(opened, "forgotten-turn")
    result = await run("result", "forgotten-turn")
    assert (result.code, result.out.splitlines()[:2]) == (0, ["forgotten-turn: completed", "first"]), result.err
    step = await run("result", "forgotten-turn", "--step", "1")
    assert (step.code, step.out.splitlines()[0]) == (0, "mail.list_customers"), step.err
    done = await run("run", "--continue", "forgotten-turn", "and now?", "--output", "json")
    assert (done.code, json.loads(done.out)["final_summary"]) == (0, "second"), done.err
    assert json.loads(done.out)["events"][0]["user_id"] == "ana"


@promise("sessions:last")
async def test_last_is_never_an_undo_and_where_it_is_to_decide_the_newest_run_that_waits(run, scripts, opened):
    older = scripts.task(QUESTION, finish("answered"))
    await run("run", older["text"], "--detach", "--id", "older-that-waits")
    waits = opened.client.get_workflow_handle("older-that-waits")
    (request,) = await pending(waits)
    writes = Reply(calls=[("mail__send_email", {"to": "a@free.example", "subject": "s", "body": "b"})])
    await run("run", scripts.task(writes)["text"], "--id", "newest-of-all")
    undone = await run("undo", "last")
    shown = await run("show", "last")
    again = await run("undo", "last")
    went_on = await run("run", "--continue", "last", "and now?", "--id", "after-the-undo")
    answered = await run("answer", "last", request["id"], "--answer", "the second")

    assert undone.err.splitlines()[0] == again.err.splitlines()[0] == "run undo-newest-of-all"
    assert (undone.code, again.out) == (0, "already undone\n")
    assert shown.out.splitlines()[0] == "newest-of-all: ended"
    assert (went_on.code, went_on.out) == (0, "done\n"), went_on.err
    assert "undone these effects: mail.send_email" in json.dumps(opened.model.requests[-3:])
    assert (answered.code, answered.err) == (0, "decided: answered r1 of older-that-waits\n")
    assert (await waits.result())["final_summary"] == "answered"


@promise("sessions:session-commands")
async def test_an_open_run_is_told_something(run, scripts, opened):
    backstay = Backstay(opened.client, task_queue=opened.settings.task_queue)
    started = await backstay.start(scripts.task(QUESTION))
    (request,) = await pending(opened.client.get_workflow_handle(started.id))
    done = await run("message", started.id, "leave out France", "--by", "ana", "--output", "json")

    assert (done.code, done.err.strip()) == (0, "received; the model reads it at its next step")
    assert json.loads(done.out) == {"workflow_id": started.id, "received": True}
    await started.answer(request["id"], "the second", by="ana")
    result = await started.result()
    assert "ana says 16 characters" in str([event.text for event in result.events])
    assert "A person says while you work: leave out France" in json.dumps(opened.model.requests[-1])


@promise("sessions:session-commands")
async def test_a_message_to_a_run_that_has_ended_names_the_command_that_goes_on(run, scripts, opened):
    backstay = Backstay(opened.client, task_queue=opened.settings.task_queue)
    started = await backstay.start(scripts.task())
    await started.result()
    done = await run("message", started.id, "too late")

    assert done.code == 1
    assert f"backstay run --continue {started.id} TEXT" in done.err
