import asyncio
import json
import re

import pytest
from temporalio.client import WorkflowUpdateFailedError

from backstay.testing import Reply, Tokens
from store.opening import open_store
from tests.engine import PRICES, assert_no_task_failure, pending
from tests.requirements import promise

READ = Reply(calls=[("mail__list_customers", {"offset": 0, "limit": 1})], usage=Tokens(prompt=1000, completion=50))
FINISH = Reply(calls=[("finish", {"summary": "done"})], usage=Tokens(prompt=1000, completion=50))


@promise("budget:steps")
async def test_a_run_stops_at_its_steps_with_a_summary_and_keeps_its_effects(open_engine):
    async with open_engine(lambda talk: FINISH if not talk.tools else READ) as engine:
        handle = await engine.start({"text": "read for ever", "budget": {"max_steps": 3}})
        result = await handle.result()

    assert result["outcome"] == "budget_exceeded"
    assert result["error"] == {"type": "BudgetExceeded", "message": "budget exceeded: max_steps (used 3, allowed 3)"}
    assert result["final_summary"].startswith("budget exceeded: max_steps")
    assert result["usage"]["steps"] == 3


@promise("budget:ask")
async def test_a_topped_up_run_goes_on_where_it_stopped(open_engine):
    replies = [READ, READ, READ, FINISH]
    async with open_engine(replies) as engine:
        handle = await engine.start({"text": "read", "budget": {"max_steps": 2, "on_exhausted": "ask"}})
        (request,) = await pending(handle)
        assert request["kind"] == "budget"
        await handle.execute_update("top_up", {"max_steps": 2, "by": "ana"})
        result = await handle.result()

    assert result["outcome"] == "completed"
    assert result["usage"]["steps"] == 4
    assert len(engine.model.requests) == 4


VOID = [
    ({"max_step": 5}, "answer: max_step: unknown field (value 5); remove it or correct its name"),
    ("5", "answer: adds to no limit of the run; give limits to add"),
    ({}, "answer: adds to no limit of the run; give limits to add"),
    ({"max_tokens": 5}, "answer: adds to no limit of the run; give limits to add"),
    ({"quotas": {"mail.send_email": 1}}, "answer: quotas.mail.send_email: the run has no quota for this tool"),
]


@promise("budget:ask")
async def test_an_answer_to_the_request_tops_up_as_well(open_engine):
    async with open_engine([READ, FINISH]) as engine:
        handle = await engine.start({"text": "read", "budget": {"max_steps": 1, "on_exhausted": "ask"}})
        (request,) = await pending(handle)
        answer = {"request_id": request["id"], "verdict": "answer", "answer": {"max_steps": 1}, "by": "ana"}
        for void, said in VOID:
            with pytest.raises(WorkflowUpdateFailedError) as caught:
                await handle.execute_update("decide", answer | {"answer": void})
            assert said in str(caught.value.cause)
        assert await pending(handle) == [request]
        await handle.execute_update("decide", answer)
        result = await handle.result()

    assert (result["outcome"], result["budget"]["max_steps"]) == ("completed", 2)


@promise("budget:ask-no")
async def test_a_rejected_top_up_ends_the_run(open_engine):
    async with open_engine([READ, FINISH]) as engine:
        handle = await engine.start({"text": "read", "budget": {"max_steps": 1, "on_exhausted": "ask"}})
        (request,) = await pending(handle)
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
        result = await handle.result()

    assert result["outcome"] == "budget_exceeded"


@promise("budget:calls")
async def test_calls_and_quotas_are_refused_before_anything_is_sent(open_engine):
    send = ("mail__send_email", {"to": "a@example.com", "subject": "s", "body": "b"})
    async with open_engine(lambda talk: Reply(calls=[send, send])) as engine:
        misnamed = {"policy": {"deny": ["mail.recal_email"]}, "budget": {"max_tool_calls": 1}}
        misnamed["budget"]["quotas"] = {"mail.send_mial": 0}
        over_calls = await engine.start({"text": "send", **misnamed})
        over_quota = await engine.start({"text": "send", "budget": {"quotas": {"mail.send_email": 1}}})
        results = await asyncio.gather(over_calls.result(), over_quota.result())

    assert [result["outcome"] for result in results] == ["budget_exceeded"] * 2
    assert "quotas[mail.send_email]" in results[1]["error"]["message"]
    assert engine.mailbox.requests("send_email") == 0
    (missing,) = [event["text"] for event in results[0]["events"] if event["name"] == "tools.missing"]
    assert "budget.quotas: mail.send_mial: mail has no such tool; did you mean 'mail.send_email'?" in missing
    assert "deny[0]: mail.recal_email: mail has no such tool; did you mean 'mail.recall_email'?" in missing


@promise("budget:billed")
@pytest.mark.parametrize("fault", ["answers", "500", "504", "drop", "mixed"])
async def test_what_the_endpoint_billed_stays_under_the_ceiling(open_engine, fault):
    ceiling = 0.02

    def rules(talk):
        turn = len(engine.model.requests)
        usage = Tokens(prompt=4000, completion=300)
        how = {"answers": None, "500": 500, "504": 504, "drop": "drop", "mixed": [None, 500, "drop", 504][turn % 4]}[
            fault
        ]
        if not talk.tools:
            return Reply(text="closing words", usage=usage)
        calls = [("mail__list_customers", {"offset": 0, "limit": 1})]
        match how:
            case None:
                return Reply(calls=calls, usage=usage)
            case "drop":
                return Reply(calls=calls, usage=usage, bill=True, then="drop")
            case status:
                return Reply(status=status, usage=usage, bill=True)

    async with open_engine(rules) as engine:
        task = {
            "text": "read for ever",
            "budget": {"max_llm_cost_usd": ceiling, "max_steps": 500, "max_tool_calls": 500},
        }
        handle = await engine.start(task)
        result = await _ended(handle)
        prices = {name: (p["input"], p["cached"], p["output"]) for name, p in PRICES.items()}
        billed = engine.model.billed_micro(prices) / 1e6
        assert_no_task_failure(await handle.fetch_history())

    assert 0 < billed <= ceiling
    assert billed <= result["usage"]["llm_cost_usd"] <= ceiling
    assert result["outcome"] in {"budget_exceeded", "failed"}


async def _ended(handle):
    """Stop at every question: a lasting fault of the model asks retry or stop."""
    ending = asyncio.ensure_future(handle.result())
    async with asyncio.timeout(150):
        while not ending.done():
            for request in await handle.query("pending"):
                await handle.execute_update("decide", {"request_id": request["id"], "verdict": "retry", "by": "ana"})
            await asyncio.wait([ending], timeout=0.2)
    return ending.result()


@promise("budget:free")
@pytest.mark.thorough
async def test_searches_reads_and_undos_are_counted_apart_and_never_refused(open_engine):
    send = ("mail__send_email", {"to": "a@example.com", "subject": "s", "body": "b"})
    search = Reply(calls=[("search_tools", {"query": "mail"}), ("search_tools", {"query": "invoice"})])
    unfinished = Reply(calls=[("finish", {"summary": "no", "outputs": {}, "success": False})])
    policy = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
    async with open_engine([Reply(calls=[send]), search, unfinished], policy=policy) as engine:
        handle = await engine.start({"text": "send, then give up", "budget": {"max_tool_calls": 1}})
        result = await handle.result()
        assert_no_task_failure(await handle.fetch_history())

    usage = result["usage"]
    assert result["outcome"] == "rolled_back"
    assert (usage["tool_calls"], usage["calls_by_tool"]) == (1, {"mail.send_email": 1})
    # The first search, two of the model's own, and the undo.
    assert usage["free_calls"] == 4


@promise("budget:free")
async def test_a_closing_summary_is_written_recorded_and_counted_apart(open_engine):
    closing = Reply(text="<think>Be short.</think>\nwhat was done", finish_reason="length")
    async with open_engine(lambda talk: READ if talk.tools else closing) as engine:
        handle = await engine.start({"text": "read", "budget": {"max_steps": 1}})
        result = await handle.result()

    assert result["final_summary"].endswith("\n\nwhat was done (The summary was cut off at the limit of its length.)")
    assert [event["name"] for event in result["events"]].count("summary.created") == 1
    # The first search and the closing summary.
    assert (result["usage"]["steps"], result["usage"]["free_calls"]) == (1, 2)


@promise("budget:tokens")
async def test_a_run_never_uses_more_than_its_tokens_and_asks_for_no_longer_an_answer_than_fits(open_engine):
    chatty = Reply(text="words " * 9000, calls=READ.calls)
    async with open_engine(lambda talk: chatty if talk.tools else Reply(text="closing " * 9000)) as engine:
        budget = {"max_tokens": 30_000, "max_steps": 50}
        result = await (await engine.start({"text": "read for ever", "budget": budget})).result()

    asked = [request["max_completion_tokens"] for request in engine.model.requests]
    (spent,) = result["usage"]["models"].values()
    assert result["outcome"] == "budget_exceeded"
    # Every answer was as long as it could be, the last of them shorter than the usual most.
    assert asked[0] == 4096 > min(asked) >= 200
    assert 20_000 < spent["input_cached_tokens"] + spent["input_new_tokens"] + spent["output_tokens"] <= 30_000
    left = [talk["messages"][-1]["content"].split(", ")[2] for talk in engine.model.requests if "tools" in talk]
    assert left[0] == "30000 tokens"


SHORT = re.compile(
    r"budget exceeded: max_tokens \(used (\d+), allowed (\d+)\); the next model call needs about (\d+): "
    r"(\d+) to ask, and 200 for an answer"
)


@promise("budget:tokens-short")
async def test_a_call_that_does_not_fit_into_the_tokens_left_is_not_sent(open_engine):
    async with open_engine([FINISH]) as engine:
        handle = await engine.start({"text": "words " * 2000, "budget": {"max_tokens": 2500}})
        result = await handle.result()
        assert_no_task_failure(await handle.fetch_history())

    used, allowed, needed, asks = map(int, SHORT.fullmatch(result["error"]["message"]).groups())
    assert (used, allowed, needed) == (0, 2500, asks + 200)
    # 12,000 letters of the task alone.
    assert asks > 4000
    assert (result["outcome"], result["usage"]["steps"], engine.model.requests) == ("budget_exceeded", 0, [])


@promise("budget:tokens-short")
@pytest.mark.thorough
async def test_a_run_short_of_tokens_asks_for_more_and_goes_on_with_them(open_engine):
    async with open_engine([READ, FINISH]) as engine:
        budget = {"max_tokens": 4000, "on_exhausted": "ask"}
        handle = await engine.start({"text": "words " * 2000, "budget": budget})
        (request,) = await pending(handle)
        assert SHORT.match(request["question"])
        await handle.execute_update("top_up", {"max_tokens": 50_000, "by": "ana"})
        result = await handle.result()
        assert_no_task_failure(await handle.fetch_history())

    assert (result["outcome"], result["usage"]["steps"]) == ("completed", 2)


@promise("budget:tokens-counted")
async def test_an_endpoint_that_counts_more_tokens_than_expected_is_not_asked_again_beyond_the_limit(open_engine):
    dense = READ.model_copy(update={"usage": Tokens(prompt=4000, completion=50)})
    async with open_engine(lambda talk: dense) as engine:
        budget = {"max_tokens": 7500, "on_exhausted": "fail"}
        result = await (await engine.start({"text": "read for ever", "budget": budget})).result()

    # By what English takes, a second request would have fitted.
    size = len(json.dumps(engine.model.requests[0]))
    assert size / 3 + 200 < 7500 - 4050
    assert len(engine.model.requests) == 1
    assert int(SHORT.fullmatch(result["error"]["message"])[4]) > 4000


@promise("budget:reserve")
async def test_a_call_that_may_cost_more_than_is_left_is_not_sent(open_engine):
    async with open_engine([FINISH]) as engine:
        budget = {"max_llm_cost_usd": 0.001, "on_exhausted": "fail"}
        handle = await engine.start({"text": "words " * 2000, "budget": budget})
        result = await handle.result()
        events = (await handle.fetch_history()).events

    refused = [event.activity_task_failed_event_attributes.failure for event in events]
    kinds = [
        failure.application_failure_info.type for failure in refused if failure.HasField("application_failure_info")
    ]
    assert kinds == ["ReservationTooSmall"]
    assert (result["outcome"], result["usage"]["llm_cost_usd"], result["usage"]["steps"]) == ("budget_exceeded", 0, 0)
    said = re.fullmatch(
        r"budget exceeded: max_llm_cost_usd \(used 0, allowed 0.001\); the next model call may cost (0\.\d{6}) USD",
        result["error"]["message"],
    )
    # 2,000 words, and an answer of 4,096 tokens.
    assert 0.02 < float(said[1]) < 0.1
    assert engine.model.requests == []


@promise("budget:cost")
async def test_tokens_and_cost_are_told_per_call_and_in_sum_per_model(open_engine):
    usage = Tokens(prompt=1000, cached=400, completion=50, reasoning=20)
    async with open_engine([READ.model_copy(update={"usage": usage}), FINISH]) as engine:
        result = await (await engine.start({"text": "read"})).result()

        async with open_store(database_url=None, home=engine.settings.home) as store:
            events = await store.events.of_run(f"{result['workflow_id']}/{result['run_id']}")

    per_call = [event.data for event in events if event.name == "model.asked"]
    assert result["usage"]["models"] == {
        "scripted": {
            "calls": 2,
            "input_cached_tokens": 400,
            "input_new_tokens": 1600,
            "input_written_tokens": 0,
            "output_tokens": 100,
            "reasoning_tokens": 20,
            "cost_usd": 0.00204,
        }
    }
    assert result["usage"]["llm_cost_usd"] == 0.00204
    tokens = ("input_cached_tokens", "input_new_tokens", "output_tokens", "cost_usd")
    assert [tuple(data[name] for name in tokens) for data in per_call] == [
        (400, 600, 50, 0.00084),
        (0, 1000, 50, 0.0012),
    ]
