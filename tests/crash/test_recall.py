"""A worker dies while a run recalls an earlier one: the next worker recalls the same, and the run is charged once."""

import asyncio
import uuid

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests import signing
from tests.crash.case import BILL, open_case
from tests.crash.points import Point
from tests.engine import Scripts, ended
from tests.requirements import promise
from tests.sizes import spread
from tests.together import started, together

KEY = "the key that workers and gateways share"
ANA = "ana@example.com"
POINTS = [Point("after", "recall"), Point("before", "recall")]


@pytest_asyncio.fixture(scope="module")
async def underway(request, temporal, nursery, tmp_path_factory):
    async with started(
        request, lambda scenario: scenario(temporal, nursery, tmp_path_factory.mktemp("recall"))
    ) as running:
        yield running


async def start(case, scripts, *replies):
    """Start a run that is proven to be Ana's."""
    workflow_id = f"task-{uuid.uuid4()}"
    task = signing.signed_start(case.client, workflow_id, {**scripts.task(*replies, user_id=ANA), "by": ANA}, key=KEY)
    queue = case.environment["BACKSTAY_TASK_QUEUE"]
    return await case.client.start_workflow("RunTask", task, id=workflow_id, task_queue=queue)


@promise("recovery:kill-recall")
@pytest.mark.parametrize("point", spread(POINTS, 1), ids=lambda point: point.name)
@together
async def test_what_is_recalled_is_the_same_where_the_worker_dies(temporal, nursery, tmp_path, *, point):
    profiles, scripts, seen = tmp_path / "profiles.yaml", Scripts(), []
    profiles.write_text("default: {memory: {read: true, write: true}}", encoding="utf-8")
    settings = {"BACKSTAY_PROFILES": str(profiles), "BACKSTAY_APPROVER_KEY": KEY}

    def look(conversation):
        seen.append([made.answer["data"]["items"] for made in conversation.calls("recall")])
        return Reply(calls=[("finish", {"summary": "looked", "success": True})])

    async with open_case(temporal, nursery, tmp_path / "case", rules=scripts, **settings) as case:
        doomed = await case.worker(point.spec)
        told = {"summary": "The Quibble papers are in box B7.", "success": True}
        first = await start(case, scripts, Reply(calls=[("finish", told)]))
        remembered = await ended(first)
        assert remembered["outcome"] == "completed", remembered

        run = await start(case, scripts, Reply(calls=[("recall", {"query": "Quibble papers"})]), look)
        async with asyncio.timeout(150):
            assert await asyncio.shield(doomed.died) == -9, doomed.said()
        await case.worker()
        result = await ended(run)

        assert result["outcome"] == "completed", result
        ((items,),) = seen
        assert {item["run"] for item in items} == {first.id}
        assert "box B7" in str(items)
        assert result["usage"]["models"]["scripted"]["calls"] == 2
        charged = sum(round(each["usage"]["llm_cost_usd"] * 1_000_000) for each in (remembered, result))
        assert case.model.billed_micro(BILL) <= charged
