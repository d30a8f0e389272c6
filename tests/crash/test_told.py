"""The worker is killed while something is told: every notice arrives, in order, and by its id each once."""

import asyncio
import json

import pytest
import pytest_asyncio

from tests.crash.case import open_case
from tests.crash.points import Point
from tests.requirements import promise
from tests.sizes import spread
from tests.together import started, together
from tests.webhooks import receiver


@pytest_asyncio.fixture(scope="module")
async def underway(request, temporal, nursery, tmp_path_factory):
    async with started(
        request, lambda scenario: scenario(temporal, nursery, tmp_path_factory.mktemp("told"))
    ) as running:
        yield running


@promise("approvals:outbox-killed")
@pytest.mark.parametrize(
    ("point", "repeats"),
    spread(
        [
            (Point("before", "outbox.write"), False),
            (Point("after", "outbox.write"), False),
            (Point("after", "webhook.send"), True),
            (Point("before", "outbox.sent", 2), True),
        ],
        1,
    ),
    ids=lambda value: value.name if isinstance(value, Point) else "",
)
@together
async def test_a_worker_that_dies_amid_telling_loses_no_notice_and_mixes_none_up(
    temporal, nursery, tmp_path, *, point, repeats
):
    async with receiver() as (url, taken), open_case(temporal, nursery, tmp_path, notify=f"{url}/take") as case:
        doomed = await case.worker(point.spec)
        run = await case.start()
        async with asyncio.TaskGroup() as group:
            attending = group.create_task(case.person.attend(run))
            assert await doomed.died == -9, doomed.said()
            await case.worker()
        assert attending.result()["outcome"] == "completed"
        told = []
        async with asyncio.timeout(150):
            while not told or told[-1]["event"] != "ended":
                told.append(json.loads((await taken.get())[2]))
    first = {notice["id"]: notice for notice in told}.values()
    numbers = [notice["sequence"] for notice in first]
    assert numbers == list(range(1, len(numbers) + 1)), told
    assert (len(told) > len(first)) is repeats
    events = [notice["event"] for notice in first]
    assert events[-1] == "ended"
    assert events.count("asked") == events.count("decided") == len(case.person.asked)
