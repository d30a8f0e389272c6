import json

import pytest
from temporalio.client import WorkflowUpdateFailedError

from backstay.client import Backstay
from backstay.testing import Reply
from tests.cli.commands import environment_of, forked
from tests.engine import PLANS, Scripts, ended, pending
from tests.requirements import promise
from tests.sizes import sized

MOST_BYTES = 128 * 1024
QUERIES = ("status", "pending", "timeline", "budget", "plan", "undo_preview", "result")


@promise("runs:answers-small")
async def test_every_query_answer_and_the_result_stay_under_128_kib_however_much_is_asked(open_engine):
    mails = [
        ("mail__send_email", {"to": f"{n}@example.com", "subject": "s" * 200, "body": "\u00e9" * 1500})
        for n in range(30)
    ]

    async with open_engine(lambda talk: Reply(text="x" * 3000, calls=mails, finish_reason="tool_calls")) as engine:
        handle = await engine.start({"text": "write to all", "budget": {"max_tool_calls": 100}})
        (request,) = await pending(handle)
        sizes = {name: len(json.dumps(await handle.query(name), ensure_ascii=False).encode()) for name in QUERIES}
        digest = request["args_digest"]
        verdict = {"request_id": request["id"], "verdict": "reject", "stop": True, "by": "ana", "args_digest": digest}
        await handle.execute_update("decide", verdict)
        result = await handle.result()

    assert len(request["calls"]) == 30
    assert max(sizes.values()) < MOST_BYTES, sizes
    assert sum(call["clipped"] for call in request["calls"]) > 0
    assert len(json.dumps(result, ensure_ascii=False).encode()) < MOST_BYTES
    assert result["outcome"] == "rejected"


ASKS = "default: {read_only: allow, write_safe: ask, restricted_write: ask}"
STEPS = sized(300, 200)


def sizes(answers):
    return {name: len(json.dumps(answer, ensure_ascii=False).encode()) for name, answer in answers.items()}


async def patiently(nursery, *arguments, **place):
    """Ask a run until it answers; on a busy machine a worker needs long to read a thousand events again."""
    while True:
        done = await forked(nursery, *arguments, **place)
        if "has not answered yet" not in done.err:
            return done


@promise("plans:long")
@pytest.mark.thorough
@pytest.mark.timeout(400)
async def test_of_a_long_plan_every_answer_is_small_and_each_says_where_the_rest_is(open_engine, nursery, tmp_path):
    lost = "${steps.0.result.nowhere." + "\u00e9" * 300 + "}"
    fails = {"to": "a@x.example", "subject": "\u00e9" * 300, "body": lost}
    writes = {"tool": "mail.send_email", "arguments": fails, "continue_on_failure": True, "summary": "\u00e9" * 400}
    steps = [{"tool": "mail.list_sent", "arguments": {"to": "a@x.example"}}, *[writes] * (STEPS - 1)]
    given = {"plan": {"title": "long", "steps": steps}, "budget": {"max_tool_calls": 1000}}

    async with open_engine(Scripts(), policy=ASKS, max_steps_per_plan=STEPS, cached=50) as engine:
        handle = await engine.start(given)
        (request,) = await pending(handle)
        waiting = sizes({name: await handle.query(name) for name in QUERIES})
        proposal, verdict = request["proposal"], {"request_id": request["id"], "verdict": "approve", "by": "ana"}
        with pytest.raises(WorkflowUpdateFailedError) as unseen:
            await handle.execute_update("decide", verdict)
        left_out = {str(STEPS - 1): {"verdict": "reject"}}
        digest = {"args_digest": request["args_digest"], "option": "approve_per_step", "calls": left_out}
        await handle.execute_update("decide", verdict | digest)
        result = await ended(handle, 150)
        done = sizes({name: await handle.query(name) for name in QUERIES} | {"whole": result})
        first = await handle.query("plan")
        whole = await Backstay(engine.client, task_queue=engine.settings.task_queue).run(handle.id).plan()
        place = {"environment": environment_of(engine), "folder": tmp_path}
        read = await patiently(nursery, "result", handle.id, "--output", "json", **place)
        story = await patiently(nursery, "plan", "show", handle.id, "--output", "json", **place)

    assert max(waiting.values()) < MOST_BYTES, waiting
    assert max(done.values()) < MOST_BYTES, done
    assert len(proposal["steps"]) + proposal["more"] == STEPS
    assert len(request["calls"]) == len(proposal["steps"]) - 1
    assert sorted(index for part in proposal["parts"] for index in part["steps"]) == list(range(1, STEPS))
    assert "the plan is too long to be shown whole" in str(unseen.value.cause)
    assert first["next"] == len(first["steps"]) < STEPS
    assert [step["idx"] for step in whole["steps"]] == list(range(STEPS))
    assert len(whole["plan"]["steps"]) == STEPS
    assert whole["steps"][-1]["reason"] == "rejected"
    assert (result["outcome"], list(result["raw_outputs"])) == ("completed", ["ref", "note"])
    outputs = json.loads(read.out)["raw_outputs"]["steps"]
    assert [step["status"] for step in outputs] == ["success", *["failed"] * (STEPS - 2), "pending"]
    assert [len(json.loads(story.out)[name]) for name in ("steps", "parts")] == [STEPS, 1]


@promise("plans:long")
@pytest.mark.thorough
async def test_alternatives_share_the_room_of_one_answer(open_engine):
    scripts = Scripts()
    arguments = {"to": "a@x.example", "subject": "\u4e8c" * 100, "body": "\u4e8c" * 700}
    plan = {"title": "t", "steps": [{"tool": "mail.send_email", "arguments": arguments}] * 20}
    proposed = Reply(calls=[("propose_plan", {"plan": plan, "alternatives": [plan] * 3})])
    async with open_engine(scripts, policy=ASKS, profiles=PLANS, cached=50, max_completion_tokens=200_000) as engine:
        handle = await engine.start(scripts.task(proposed, budget={"max_llm_cost_usd": 10}))
        requests = await pending(handle, 4)
        waiting = sizes({name: await handle.query(name) for name in QUERIES})
        reject = {"request_id": requests[0]["id"], "verdict": "reject", "stop": True, "by": "ana"}
        await handle.execute_update("decide", reject)
        assert (await ended(handle))["outcome"] == "rejected"

    assert max(waiting.values()) < MOST_BYTES, waiting
    assert all(request["proposal"]["steps"] for request in requests)
