"""Prunings beside live workers: whoever is killed, a run that is still open lacks nothing."""

import pytest

from tests.crash.case import open_case
from tests.crash.pruning import kept_under_prunings
from tests.requirements import promise


@promise("store:kills")
@pytest.mark.soak
@pytest.mark.timeout(400)
async def test_prunings_beside_killed_workers_take_nothing_from_an_open_run(temporal, nursery, tmp_path):
    async with open_case(temporal, nursery, tmp_path, ceiling_usd=4) as case:
        account = await kept_under_prunings(case, rounds=2, kills=1, seed="2")
    assert account["runs"] >= 2
    assert account["refs"] > 5
