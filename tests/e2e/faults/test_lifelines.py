"""Lifelines: a step whose program or arguments failed is repeated, so often and no more, and each repeat is billed."""

import asyncio
import json
import re

import pytest

from backstay.testing import Reply, Tokens
from tests.engine import ended
from tests.requirements import promise
from tests.sizes import spread

COST = Tokens(prompt=1000, completion=50)
FINISH = Reply(calls=[("finish", {"summary": "done", "outputs": {}, "success": True})], usage=COST)
GOOD = "page = await mail.list_customers(limit=1)\nreturn page['total']"
SENDS = "await mail.send_email(to='a@example.com', subject='s', body='b')"
BROKEN = {
    "syntax": ("x = 1\nreturn (x", 2, "never closed"),
    "no-entry": ("import json\n\nasync def work():\n    return 1", 3, "no main or solve"),
    "entry-with-arguments": (
        "async def solve(customer):\n    return customer",
        1,
        "cannot be called without arguments",
    ),
    "unknown-import": ("import requests\nreturn 1", 1, "cannot import requests"),
    "blocked-module": ("x = 1\nimport subprocess\nreturn 1", 2, "cannot import subprocess"),
    "unknown-provider": ("return await post.send(to='a')", 1, "post is not defined"),
    "unknown-tool": ("x = 1\nreturn await mail.send_mail(to='a')", 2, "there is no mail.send_mail"),
    "unknown-tool-by-name": ("return await mcp.call_tool('mail.send_mail', {})", 1, "there is no tool mail.send_mail"),
    "argument-name": ("return await mail.list_customers(most=1)", 1, "has no parameter most"),
    "missing-argument": ("x = 1\n\nreturn await mail.send_email(to='a')", 3, "needs subject, body"),
    "positional": ("return await mail.list_customers(1)", 1, "takes keywords only"),
    "argument-type": ("x = 1\nreturn await mail.list_customers(limit='many')", 2, "limit"),
    "not-awaited": ("mail.list_customers(limit=1)\nreturn 1", 1, "is not awaited"),
    "undefined-name": ("y = 1\nreturn y + total", 2, "total is not defined"),
    "exception": ("x = 1\ny = 0\n\nreturn x / y", 4, "ZeroDivisionError"),
    "key": ("page = await mail.list_customers(limit=1)\nreturn page['rows']", 2, "key 'rows' is not there"),
    "endless-loop": ("n = 0\nwhile True:\n    n += 1", 2, "never ends"),
    "memory": ("x = 1\ny = [0] * (1 << 40)\nreturn 1", 2, "MemoryLimit"),
    "no-json": ("return {'ids': {1, 2}}", None, "of type set, which is not JSON"),
    "too-many-calls": (
        "for n in range(9):\n    await mail.list_customers(limit=1)\nreturn 1",
        2,
        "max_calls_per_program",
    ),
    "recursion": ("def f(n):\n    return f(n + 1)\n\nreturn f(0)", 2, "RecursionError"),
    "deadlock": ("import asyncio\nawait asyncio.Event().wait()\nreturn 1", 2, "nothing will complete"),
    "race": (
        "first = asyncio.create_task(mail.list_customers())\nx = asyncio.Event().wait()\nawait asyncio.wait_for(x, 1)",
        3,
        "TimeoutError",
    ),
    "thread": ("import threading\nthreading.Thread(target=print).start()\nreturn 1", 2, "can't start new thread"),
    "forgotten-call": (
        "import asyncio\nasync def ask():\n    return await mail.list_customers(limit=1)\n\nask()\nreturn 1",
        5,
        "is not awaited",
    ),
    "output": ("print('x' * (4 << 20))\nreturn 1", None, "OutputLimit"),
    "exit": ("import os\nos._exit(3)", None, "InterpreterExit"),
}


def line_in(said):
    """Return the line that a message names."""
    found = re.search(r"line (\d+)", said)
    return int(found[1]) if found else None


def repairing(conversation):
    """Run the program that the task holds; repair it only when the answer names its line and the cause."""
    if "finish" not in conversation.tools:
        return Reply(text="closing")
    source, line, cause = BROKEN[conversation.task.split()[-1]]
    runs = conversation.calls("run_program")
    if not runs:
        return Reply(calls=[("run_program", {"code": source})], usage=COST)
    said = json.dumps(runs[-1].answer)
    if len(runs) == 1 and cause in said.replace('\\"', "'") and line_in(said) == line:
        return Reply(calls=[("run_program", {"code": GOOD})], usage=COST)
    outputs = {"answer": runs[-1].answer}
    return Reply(calls=[("finish", {"summary": "done", "outputs": outputs, "success": len(runs) == 2})], usage=COST)


@promise("plans:lifelines")
@pytest.mark.thorough
@pytest.mark.parametrize("kind", spread(list(BROKEN), 5))
async def test_a_broken_program_is_repaired_from_a_message_that_names_line_and_cause(broken, kind):
    handle = await broken.start({"text": f"run the program {kind}", "budget": {"max_calls_per_program": 5}})
    result = await ended(handle)

    assert result["outcome"] == "completed", result["raw_outputs"]
    assert isinstance(result["raw_outputs"]["answer"]["data"]["result"], int)
    usage = result["usage"]
    assert (usage["steps"], usage["lifelines"], usage["models"]["scripted"]["calls"]) == (3, 1, 3)
    (used,) = [event for event in result["events"] if event["name"] == "lifeline.used"]
    assert used["data"]["left"] == 2
    assert BROKEN[kind][2] in used["data"]["cause"].replace('"', "'")


@pytest.fixture
async def broken(open_engine, sandbox):
    async with open_engine(repairing, sandbox=sandbox) as engine:
        yield engine


CRASH = Reply(calls=[("run_program", {"code": "x = 1\nreturn x / 0"})], usage=COST)
REFUSED = Reply(calls=[("run_program", {"code": "return await mail.send_mail(to='a')"})], usage=COST)
MALFORMED = Reply(calls=[("mail__list_customers", '{"limit": ')], usage=COST)
UNFIT = Reply(calls=[("mail__list_customers", {"limit": "many"})], usage=COST)
READ = Reply(calls=[("mail__list_customers", {"offset": 0, "limit": 1})], usage=COST)


@promise("plans:lifelines")
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("reply", "says"),
    spread(
        [
            (CRASH, "engine.run_program: ZeroDivisionError: division by zero (line 2)"),
            (REFUSED, "code: line 1: there is no mail.send_mail"),
            (MALFORMED, "the arguments are not valid JSON"),
            (UNFIT, "mail__list_customers: arguments.limit: must be integer"),
        ],
        2,
    ),
    ids=spread(["crashed", "refused", "malformed", "unfit"], 2),
)
async def test_the_fourth_failure_ends_the_run_and_every_lifeline_is_billed(open_engine, sandbox, reply, says):
    async with open_engine([reply] * 9, sandbox=sandbox) as engine:
        result = await ended(await engine.start({"text": "fail"}))
        asked = engine.model.requests

    assert (result["outcome"], result["error"]["type"]) == ("failed", "LifelinesExhausted")
    assert result["final_summary"].startswith(says), result["final_summary"]
    assert "so did its 3 repeats" in result["final_summary"]
    used = [event["data"]["left"] for event in result["events"] if event["name"] == "lifeline.used"]
    assert used == [2, 1, 0]
    usage = result["usage"]
    assert (usage["steps"], usage["lifelines"], len(asked)) == (4, 3, 4)
    assert usage["models"]["scripted"]["calls"] == 4
    assert usage["models"]["scripted"]["input_new_tokens"] == 4000
    assert usage["llm_cost_usd"] == pytest.approx(4 * usage["models"]["scripted"]["cost_usd"] / 4)
    assert "2 more tries of this step, which failed" in asked[1]["messages"][-1]["content"]


@promise("plans:lifelines")
@pytest.mark.thorough
async def test_a_step_that_succeeds_gives_the_next_one_all_its_lifelines_and_repeats_fill_no_limit(
    open_engine, sandbox
):
    replies = [*[CRASH] * 4, READ, *[UNFIT] * 3, READ, CRASH, FINISH]
    replies.remove(CRASH)
    async with open_engine(replies, sandbox=sandbox) as engine:
        task = {"text": "stumble", "budget": {"max_steps": 3, "max_code_runs": 2}}
        result = await ended(await engine.start(task))
        left = [request["messages"][-1]["content"].split(",")[0] for request in engine.model.requests]

    assert result["outcome"] == "completed", result
    usage = result["usage"]
    assert (usage["steps"], usage["lifelines"], usage["code_runs"]) == (len(replies), 7, 2)
    assert left[:4] == ["Left: 2 steps"] * 4


@promise("plans:lifelines")
@pytest.mark.thorough
async def test_a_call_beside_the_failure_that_succeeds_makes_it_no_failed_step(open_engine):
    mixed = Reply(calls=[("mail__list_customers", {"limit": 1}), ("mail__list_customers", {"limit": "many"})])
    async with open_engine([*[mixed] * 6, FINISH]) as engine:
        result = await ended(await engine.start({"text": "half and half"}))

    assert (result["outcome"], result["usage"]["steps"], result["usage"]["lifelines"]) == ("completed", 7, 0)


@promise("plans:lifelines")
@pytest.mark.thorough
async def test_a_profile_says_how_many_lifelines_there_are_and_none_ends_the_run_at_the_first_failure(open_engine):
    profiles = "strict: {lifelines: 0}\nlenient: {lifelines: 5}\n"
    for name, failures in (("strict", 1), ("lenient", 6)):
        async with open_engine([UNFIT] * 9, profiles=profiles) as engine:
            result = await ended(await engine.start({"text": "fail", "profile": name}))
            assert result["error"]["type"] == "LifelinesExhausted"
            assert len(engine.model.requests) == failures


@promise("plans:lifelines")
async def test_a_repeat_still_needs_its_money_and_its_time(open_engine):
    async with open_engine([UNFIT] * 9) as engine:
        result = await ended(await engine.start({"text": "fail", "budget": {"max_tokens": 2000}}))

    assert result["outcome"] == "budget_exceeded"
    assert "max_tokens" in result["error"]["message"]


@promise("plans:lifelines")
@pytest.mark.thorough
async def test_what_a_person_or_the_engine_ended_is_no_failure_of_a_program(open_engine, sandbox):
    def rules(conversation):
        runs = conversation.calls("run_program")
        if "finish" not in conversation.tools or len(runs) == 5:
            return FINISH
        return Reply(calls=[("run_program", {"code": "return 1"})])

    policy = "deny: [engine.run_program]\n"
    async with open_engine(rules, sandbox=sandbox, policy=policy) as engine:
        result = await asyncio.wait_for((await engine.start({"text": "denied"})).result(), 150)

    assert (result["outcome"], result["usage"]["lifelines"]) == ("completed", 0)
