"""A random walk of plans whose worker is killed again and again, often amid a step; `make soak` walks further."""

import pytest

from tests.crash.plan_walk import sent_too_often, walked_under_kills
from tests.requirements import promise
from tests.sizes import sized

WALKS, KILLS = sized(8, 4), sized(4, 2)


@promise("plans:killed-walk")
@pytest.mark.soak
@pytest.mark.timeout(400)
async def test_plans_keep_to_their_edges_and_send_nothing_twice_without_a_word_while_their_worker_is_killed(
    temporal, nursery, tmp_path
):
    strolls, killer = await walked_under_kills(temporal, nursery, tmp_path, walks=WALKS, kills=KILLS)
    assert all(stroll.over for stroll in strolls)
    assert [sent_too_often(stroll) for stroll in strolls] == [{}] * WALKS
    assert killer.kills == KILLS
    assert killer.amid_steps > 0
