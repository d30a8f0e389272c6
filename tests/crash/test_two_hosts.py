"""Two workers on Postgres, as on two hosts of which one has a wrong clock, while everything is killed."""

import pytest

from tests.crash.chaos import VICTIMS, open_chaos
from tests.requirements import promise
from tests.sizes import sized

SEED = "7"


@promise("recovery:two-hosts")
@pytest.mark.soak
@pytest.mark.timeout(400)
async def test_runs_on_two_workers_end_and_send_once_while_workers_temporal_and_postgres_are_killed(nursery, tmp_path):
    async with open_chaos(nursery, tmp_path, SEED) as chaos:
        victims = [*VICTIMS, *chaos.dice.sample(VICTIMS, sized(2, 0))]
        chaos.dice.shuffle(victims)
        await chaos.go(victims, at_once=2)
    assert chaos.failures == []
    assert chaos.kills.total() == len(victims)
    assert chaos.shapes.total() == chaos.runs > 0
