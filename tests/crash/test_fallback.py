"""A worker dies at the very moment of a fallback: one endpoint is gone, and the next has not answered yet."""

import asyncio
import json

import pytest
import pytest_asyncio
import yaml

from backstay.testing import Reply, ScriptedModel
from tests.crash.case import open_case
from tests.engine import assert_no_task_failure
from tests.histories import activities_in
from tests.requirements import promise
from tests.sizes import spread
from tests.together import started, together

PRICE = {"input": 1.0, "cached": 0.1, "output": 4.0}
BILL = {"scripted": (1.0, 0.1, 4.0)}
CEILING = 0.5
READ = Reply(calls=[("mail__list_customers", {"limit": 1})])
SEND = Reply(calls=[("mail__send_email", {"to": "ana@example.com", "subject": "s", "body": "b"})])
FINISH = Reply(calls=[("finish", {"summary": "done", "success": True})])


def asks_in(history):
    """Return what the activity that asks a model was given, each time."""
    return [given for name, given, _ in activities_in(history.events) if name == "ask_model"]


@pytest_asyncio.fixture(scope="module")
async def underway(request, temporal, nursery, tmp_path_factory):
    async with started(
        request, lambda scenario: scenario(temporal, nursery, tmp_path_factory.mktemp("fallback"))
    ) as running:
        yield running


@promise("models:fallback-kill")
@pytest.mark.parametrize(("when", "nth"), spread([("before", 3), ("during", 3), ("after", 2)], 1))
@together
async def test_a_worker_that_dies_amid_a_fallback_is_replaced_and_each_request_is_charged_once(
    temporal, nursery, tmp_path, *, when, nth
):
    asked = []

    def first(talk):
        asked.append("first")
        return READ if not talk.calls() else Reply(status=401)

    def spare(talk):
        asked.append("spare")
        if asked.count("spare") == 1 and when == "during":
            # The worker dies when it sees this; the answer is billed, and there is nobody to hear it.
            (tmp_path / "case" / "witness").touch()
            return SEND.model_copy(update={"delay_s": 5})
        return FINISH if talk.calls("mail__send_email") else SEND

    policy, models = tmp_path / "policy.yaml", tmp_path / "models.yaml"
    policy.write_text("default: {read_only: allow, write_safe: allow, restricted_write: allow}", encoding="utf-8")
    async with ScriptedModel(spare) as other:
        settings = {"BACKSTAY_POLICY": str(policy), "BACKSTAY_MODELS": str(models), "BACKSTAY_MODEL": "main"}
        settings |= {"FIRST_KEY": "key-of-the-first", "SPARE_KEY": "key-of-the-spare"}
        async with open_case(
            temporal, nursery, tmp_path / "case", rules=first, ceiling_usd=CEILING, **settings
        ) as case:
            urls = {"first": case.model.base_url, "spare": other.base_url}
            endpoints = {name: {"base_url": url, "key": f"${{{name.upper()}_KEY}}"} for name, url in urls.items()}
            main = {"endpoint": "first", "model": "scripted", "price": PRICE, "fallback": ["spare"]}
            said = {"main": main, "spare": {"endpoint": "spare", "model": "scripted", "price": PRICE}}
            text = yaml.safe_dump({"endpoints": endpoints, "models": said})
            await asyncio.to_thread(models.write_text, text, encoding="utf-8")
            # The first endpoint is asked twice, and the second time it refuses: after that nothing is counted.
            doomed = await case.worker(f"{when}:model.request:{nth}")
            run = await case.start()
            async with asyncio.timeout(150):
                assert await asyncio.shield(doomed.died) == -9, doomed.said()
            await case.worker()
            async with asyncio.timeout(150):
                result = await case.person.attend(run)
            assert_no_task_failure(await run.fetch_history())
            assert result["outcome"] == "completed", json.dumps(result["error"])
            usage = result["usage"]
            assert case.mailbox.sent() == ["ana@example.com"]
            moves = [event["data"] for event in result["events"] if event["name"] == "model.fallback"]
            assert [(move["from"], move["to"]) for move in moves] == [("main", "spare")]
            heard = sum(used["cost_usd"] for used in usage["models"].values())
            billed = (case.model.billed_micro(BILL) + other.billed_micro(BILL)) / 1_000_000
            # Of the request that was lost nobody knows more than that it was made: what was reserved is charged, once.
            reserved = [ask["micro"] for ask in asks_in(await run.fetch_history()) if ask.get("model") == "spare"]
            assert round((usage["llm_cost_usd"] - heard) * 1_000_000) == reserved[0]
            assert billed - 2e-6 <= usage["llm_cost_usd"] <= CEILING
            assert {name: used["calls"] for name, used in usage["models"].items()} == {"main": 1, "spare": 2}
            assert asked == ["first", "first", *["spare"] * (2 if when == "before" else 3)]
