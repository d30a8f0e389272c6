"""What a run's requests hold, and what of it each has in common with the one before."""

import json
from itertools import pairwise

import pytest

from backstay.testing import Reply
from benchmarks.reader import Reader
from tests.engine import PLANS, ended
from tests.requirements import promise
from tests.sizes import spread

ALLOWS = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
LONG = {"max_steps": 100, "max_tool_calls": 100, "max_llm_cost_usd": None}
PLANNING = ["propose_plan", "update_plan", "mark_step"]
FINISH = Reply(calls=[("finish", {"summary": "done"})])
PLAN = {"title": "one", "steps": [{"tool": "mail.list_customers", "arguments": {"limit": 1}}]}


def names(request):
    return [tool["function"]["name"] for tool in request["tools"]]


def size(value):
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def told(request):
    return [message["content"] for message in request["messages"] if message["role"] == "tool"]


@promise("context:tokens")
@pytest.mark.parametrize(("steps", "most"), spread([(10, 14_500), (50, 225_000)], 1))
async def test_a_run_takes_no_more_tokens_than_its_ceiling(open_engine, steps, most):
    async with open_engine(Reader(), policy=ALLOWS) as engine:
        result = await ended(await engine.start({"text": f"read {steps}", "budget": LONG}))
    (used,) = result["usage"]["models"].values()

    assert (result["outcome"], used["calls"]) == ("completed", steps)
    assert used["input_cached_tokens"] + used["input_new_tokens"] <= most


@promise("context:prefix")
async def test_each_request_begins_with_the_bytes_of_the_one_before(open_engine):
    async with open_engine(Reader(), policy=ALLOWS) as engine:
        result = await ended(await engine.start({"text": "read 6", "budget": LONG}))
        requests = engine.model.requests
    (used,) = result["usage"]["models"].values()

    shared = 0
    for before, after in pairwise(requests):
        *stays, left = before["messages"]
        assert left["content"].startswith("Left: ")
        assert after["messages"][: len(stays)] == stays
        assert after["tools"] == before["tools"]
        # The model counts what requests have in common as they come, byte by byte; two brackets end the one before.
        shared += (size(before) - size(left) - 2) // 4
    assert used["input_cached_tokens"] >= shared > 0


@promise("plans:ordinary")
async def test_an_ordinary_run_is_offered_no_plans_and_is_told_so_when_it_proposes_one(open_engine):
    proposes = Reply(calls=[("propose_plan", {"plan": PLAN}), ("mark_step", {"idx": 0, "status": "done"})])
    async with open_engine([proposes, proposes, FINISH], policy=ALLOWS) as engine:
        handle = await engine.start({"text": "look"})
        result = await ended(handle)
        requests = engine.model.requests
        assert await handle.query("plan") is None

    # Asking for them brings them no nearer.
    assert [not {*PLANNING} & {*names(request)} for request in requests] == [True, True, True]
    refused = ("propose_plan", "mark_step") * 2
    says = "this run makes no plans; call the tools directly"
    assert [json.loads(answer)["error"] for answer in told(requests[2])] == [f"{name}: {says}" for name in refused]
    assert (result["outcome"], result["usage"]["tool_calls"]) == ("completed", 0)


@promise("plans:wanted")
@pytest.mark.parametrize(
    ("profiles", "task"),
    [
        (PLANS, {}),
        ("own: {plans: true}", {"profile": "own"}),
        (None, {"mode": "plan_first"}),
        (None, {"rehearse": True}),
    ],
    ids=["default", "own", "mode", "rehearsal"],
)
async def test_where_plans_are_wanted_their_functions_are_offered(open_engine, profiles, task):
    async with open_engine([FINISH], profiles=profiles) as engine:
        await ended(await engine.start({"text": "look", **task}))
        (request,) = engine.model.requests

    assert [name for name in names(request) if name in PLANNING] == PLANNING


@promise("context:read-on")
async def test_a_model_is_offered_to_read_on_once_an_answer_holds_more_than_was_told(open_engine):
    short = Reply(calls=[("mail__list_customers", {"limit": 1})])
    long = Reply(calls=[("mail__list_invoices", {"limit": 100})])
    async with open_engine([short, long, short, FINISH], policy=ALLOWS) as engine:
        await ended(await engine.start({"text": "look"}))
        first, second, third, last = map(names, engine.model.requests)

    assert "storage_ref" in told(engine.model.requests[2])[1]
    assert first == second
    assert "read_result" not in first
    assert third == last == [*first, "read_result"]


@promise("context:hits")
async def test_of_a_tool_that_was_found_a_model_is_told_what_it_needs_to_choose(open_engine):
    search = Reply(calls=[("search_tools", {"query": "send an e-mail", "limit": 1})])
    async with open_engine([search, FINISH], policy=ALLOWS) as engine:
        await ended(await engine.start({"text": "look"}))
        (answer,) = told(engine.model.requests[1])

    first, *_ = json.loads(answer)["tools"]
    assert set(first) == {"tool", "short_description", "parameters"}
    assert (first["tool"], first["parameters"]["to"]) == ("mail.send_email", "string")
