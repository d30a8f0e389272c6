"""A thousand rewrites of one file under retention."""

import json
from pathlib import Path

import pytest

from tests.requirements import promise
from tests.workspace.retention import A_RUN, LIVE_BYTES, reachable_place, rewritten

pytestmark = pytest.mark.soak
FIGURES = Path("build/soak-retention.json")


@promise("store:snapshots-soak")
@pytest.mark.timeout(3600)
async def test_a_thousand_rewrites_stay_below_three_times_the_live_bytes_and_the_window(temporal, nursery):
    with reachable_place() as place:
        sizes = await rewritten(temporal, nursery, place, runs=1000 // A_RUN)
    figures = {"rewrites": 1000, "live_bytes": LIVE_BYTES, "most_bytes": max(sizes), "last_bytes": sizes[-1]}
    FIGURES.write_text(json.dumps(figures), encoding="utf-8")  # noqa: ASYNC240 - nothing else runs any more
    assert max(sizes) < 3 * LIVE_BYTES + A_RUN * LIVE_BYTES
