"""An endpoint that bills more than it was asked for: all of it is counted, the run stops, and others are warned."""

import pytest

from backstay.testing import Reply, Tokens
from tests.e2e.sessions.test_continuing import continued
from tests.engine import assert_no_task_failure, pending, update
from tests.requirements import promise
from workflows.context import carrying

READ = Reply(calls=[("mail__list_customers", {"offset": 0, "limit": 1})], usage=Tokens(prompt=100, completion=10))
FINISH = Reply(calls=[("finish", {"summary": "done"})], usage=Tokens(prompt=100, completion=10))
LIE = Tokens(prompt=100, completion=200_000)
"""For an answer of at most 4,096 tokens."""
LIED_USD = (100 * 1 + 200_000 * 4) / 1e6


async def ended(handle):
    result = await handle.result()
    assert_no_task_failure(await handle.fetch_history())
    return result


def overshot(result):
    return [event for event in result["events"] if event["name"] == "budget.overshot"]


@promise("budget:overshot")
@pytest.mark.parametrize("on_exhausted", ["finalize", "fail"])
async def test_a_bill_above_its_reservation_is_counted_in_full_and_stops_the_run_before_it_acts(
    open_engine, on_exhausted
):
    async with open_engine([READ.model_copy(update={"usage": LIE}), FINISH]) as engine:
        result = await ended(await engine.start({"text": "read", "budget": {"on_exhausted": on_exhausted}}))

        assert result["outcome"] == "budget_exceeded"
        assert result["error"]["message"] == f"budget exceeded: max_llm_cost_usd (used {LIED_USD:g}, allowed 0.5)"
        assert result["usage"]["llm_cost_usd"] == LIED_USD
        (event,) = overshot(result)
        assert event["data"]["billed_usd"] == LIED_USD > event["data"]["reserved_usd"] > 0
        assert f"billed {LIED_USD:g} USD for a call that may cost" in event["text"]
        assert engine.mailbox.requests("list_customers") == 0
        assert len(engine.model.requests) == 1


@promise("budget:overshot-ask")
async def test_with_on_exhausted_ask_a_person_may_pay_and_the_answer_is_acted_on(open_engine):
    async with open_engine([READ.model_copy(update={"usage": LIE}), FINISH]) as engine:
        handle = await engine.start({"text": "read", "budget": {"on_exhausted": "ask"}})
        (request,) = await pending(handle)
        assert (request["kind"], engine.mailbox.requests("list_customers")) == ("budget", 0)
        await handle.execute_update("top_up", {"max_llm_cost_usd": 10, "by": "ana"})
        result = await ended(handle)

        assert result["outcome"] == "completed"
        assert engine.mailbox.requests("list_customers") == 1
        assert len(overshot(result)) == 1


@promise("budget:overshot-continued")
async def test_what_a_person_pays_for_in_the_next_execution_is_acted_on_and_the_model_is_not_asked_again(
    open_engine, monkeypatch
):
    monkeypatch.setattr(carrying, "MOST_SIGNALS", 0)
    async with open_engine([READ.model_copy(update={"usage": LIE}), FINISH]) as engine:
        handle = await engine.start({"text": "read", "budget": {"on_exhausted": "ask"}})
        asked = await pending(handle)
        await continued(handle)
        assert await pending(handle) == asked
        await update(handle, "top_up", {"max_llm_cost_usd": 10, "by": "ana"})
        result = await ended(handle)

        assert (result["outcome"], result["usage"]["steps"]) == ("completed", 2)
        assert engine.mailbox.requests("list_customers") == 1
        assert len(engine.model.requests) == 2
        assert len(overshot(result)) == 1


@promise("budget:overshot-no-ceiling")
async def test_without_a_ceiling_the_run_goes_on_and_the_event_is_there(open_engine):
    async with open_engine([READ.model_copy(update={"usage": LIE}), FINISH]) as engine:
        result = await ended(await engine.start({"text": "read", "budget": {"max_llm_cost_usd": None}}))

    assert result["outcome"] == "completed"
    assert len(overshot(result)) == 1


@promise("budget:overshot-end")
async def test_an_answer_that_ends_the_run_ends_it_however_dear_it_was(open_engine):
    async with open_engine([FINISH.model_copy(update={"usage": LIE})]) as engine:
        result = await ended(await engine.start({"text": "finish"}))

    assert (result["outcome"], result["usage"]["llm_cost_usd"]) == ("completed", LIED_USD)
    assert len(overshot(result)) == 1


@promise("budget:marked")
@pytest.mark.thorough
async def test_later_runs_reserve_what_the_endpoint_has_billed_until_it_is_honest_again(open_engine):
    async with open_engine([FINISH.model_copy(update={"usage": LIE}), *[FINISH] * 9]) as engine:
        await ended(await engine.start({"text": "finish"}))
        small = await ended(await engine.start({"text": "finish", "budget": {"on_exhausted": "fail"}}))
        assert (small["outcome"], small["usage"]["llm_cost_usd"]) == ("budget_exceeded", 0)
        assert len(engine.model.requests) == 1

        for _ in range(8):
            large = await ended(await engine.start({"text": "finish", "budget": {"max_llm_cost_usd": 50}}))
            assert large["outcome"] == "completed"
        small = await ended(await engine.start({"text": "finish"}))
        assert small["outcome"] == "completed"
