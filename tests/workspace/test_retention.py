"""Pruning gives the disk back that rewrites of a file have taken, and keeps what the window needs."""

from tests.requirements import promise
from tests.sizes import sized
from tests.workspace.retention import A_RUN, LIVE_BYTES, reachable_place, rewritten

WITHIN = 3 * LIVE_BYTES + A_RUN * LIVE_BYTES
"""Three times the live bytes, and what the window keeps."""


@promise("store:snapshots")
async def test_rewrites_of_a_file_take_no_more_than_the_window_keeps(temporal, nursery):
    with reachable_place() as place:
        sizes = await rewritten(temporal, nursery, place, runs=sized(6, 3))
    assert max(sizes) < WITHIN
