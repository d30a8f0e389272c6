"""The same prunings beside more runs and more kills, with a new seed each time; SOAK_SEED chooses it again."""

import os
import time

import pytest

from tests.crash.case import open_case
from tests.crash.pruning import kept_under_prunings
from tests.requirements import promise

pytestmark = pytest.mark.soak
SEED = os.environ.get("SOAK_SEED") or str(int(time.time()))


@promise("store:kills")
@pytest.mark.timeout(3600)
async def test_many_prunings_beside_killed_workers_take_nothing_from_an_open_run(temporal, nursery, tmp_path):
    async with open_case(temporal, nursery, tmp_path, ceiling_usd=4) as case:
        case.person.timeout_s = 500
        account = await kept_under_prunings(case, rounds=15, kills=3, seed=SEED)
    assert account["runs"] >= 15, f"seed {SEED}"
