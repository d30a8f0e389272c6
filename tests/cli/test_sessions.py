"""The commands by which a person goes on from a run, and tells an open one something."""

import json

import pytest

from backstay.client import Backstay
from backstay.testing import Reply
from tests.cli.commands import environment_of, forked
from tests.engine import pending

QUESTION = Reply(calls=[("ask_person", {"question": "Which?"})])


def finish(summary):
    return Reply(calls=[("finish", {"summary": summary, "outputs": {}, "success": True})])


@pytest.fixture
def run(opened, nursery, tmp_path):
    async def run(*arguments, **more):
        return await forked(nursery, *arguments, environment=environment_of(opened, **more), folder=tmp_path)

    return run


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


async def test_an_open_run_is_told_something(run, scripts, opened):
    backstay = Backstay(opened.client, task_queue=opened.settings.task_queue)
    started = await backstay.start(scripts.task(QUESTION))
    (request,) = await pending(opened.client.get_workflow_handle(started.id))
    done = await run("message", started.id, "leave out France", "--by", "ana")

    assert (done.code, done.err.strip()) == (0, "received; the model reads it at its next step")
    await started.answer(request["id"], "the second", by="ana")
    result = await started.result()
    assert "ana says 16 characters" in str([event.text for event in result.events])
    assert "A person says while you work: leave out France" in json.dumps(opened.model.requests[-1])


async def test_a_message_to_a_run_that_has_ended_names_the_command_that_goes_on(run, scripts, opened):
    backstay = Backstay(opened.client, task_queue=opened.settings.task_queue)
    started = await backstay.start(scripts.task())
    await started.result()
    done = await run("message", started.id, "too late")

    assert done.code == 1
    assert f"backstay run --continue {started.id} TEXT" in done.err
