import asyncio

import pytest

from backstay.testing import Reply, Tokens
from tests.engine import PRICES, assert_no_task_failure, pending

READ = Reply(calls=[("mail__list_customers", {"offset": 0, "limit": 1})], usage=Tokens(prompt=1000, completion=50))
FINISH = Reply(calls=[("finish", {"summary": "done"})], usage=Tokens(prompt=1000, completion=50))


async def test_a_run_stops_at_its_steps_with_a_summary_and_keeps_its_effects(open_engine):
    async with open_engine(lambda talk: FINISH if not talk.tools else READ) as engine:
        handle = await engine.start({"text": "read for ever", "budget": {"max_steps": 3}})
        result = await handle.result()

    assert result["outcome"] == "budget_exceeded"
    assert result["error"] == {"type": "BudgetExceeded", "message": "budget exceeded: max_steps (used 3, allowed 3)"}
    assert result["final_summary"].startswith("budget exceeded: max_steps")
    assert result["usage"]["steps"] == 3


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


async def test_an_answer_to_the_request_tops_up_as_well(open_engine):
    async with open_engine([READ, FINISH]) as engine:
        handle = await engine.start({"text": "read", "budget": {"max_steps": 1, "on_exhausted": "ask"}})
        (request,) = await pending(handle)
        answer = {"request_id": request["id"], "verdict": "answer", "answer": {"max_steps": 1}, "by": "ana"}
        await handle.execute_update("decide", answer)
        result = await handle.result()

    assert (result["outcome"], result["budget"]["max_steps"]) == ("completed", 2)


async def test_a_rejected_top_up_ends_the_run(open_engine):
    async with open_engine([READ, FINISH]) as engine:
        handle = await engine.start({"text": "read", "budget": {"max_steps": 1, "on_exhausted": "ask"}})
        (request,) = await pending(handle)
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
        result = await handle.result()

    assert result["outcome"] == "budget_exceeded"


async def test_calls_and_quotas_are_refused_before_anything_is_sent(open_engine):
    send = ("mail__send_email", {"to": "a@example.com", "subject": "s", "body": "b"})
    async with open_engine(lambda talk: Reply(calls=[send, send])) as engine:
        over_calls = await engine.start({"text": "send", "budget": {"max_tool_calls": 1}})
        over_quota = await engine.start({"text": "send", "budget": {"quotas": {"mail.send_email": 1}}})
        results = await asyncio.gather(over_calls.result(), over_quota.result())

    assert [result["outcome"] for result in results] == ["budget_exceeded"] * 2
    assert "quotas[mail.send_email]" in results[1]["error"]["message"]
    assert engine.mailbox.requests("send_email") == 0


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
    async with asyncio.timeout(90):
        while not ending.done():
            for request in await handle.query("pending"):
                await handle.execute_update("decide", {"request_id": request["id"], "verdict": "retry", "by": "ana"})
            await asyncio.wait([ending], timeout=0.2)
    return ending.result()
