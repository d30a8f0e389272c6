"""A run of ten thousand steps, and fifty kills amid switches; the figures are written to build/soak-endless.json.

SOAK_STEPS (10000) and SOAK_SWITCH_KILLS (50) shape it.
"""

import asyncio
import json
import os
from itertools import cycle, islice
from pathlib import Path

import pytest

from tests.crash.longrun import killed_amid_switches, watched
from tests.crash.points import SWITCH_POINTS
from tests.requirements import promise

pytestmark = pytest.mark.soak

STEPS = int(os.environ.get("SOAK_STEPS", "10000"))
KILLS = int(os.environ.get("SOAK_SWITCH_KILLS", "50"))
AT_ONCE = 5
SUMMARY = Path("build/soak-endless.json")


@promise("runs:long-soak")
@pytest.mark.timeout(600 + STEPS)
async def test_the_last_steps_of_ten_thousand_cost_as_little_as_the_first(temporal, nursery, tmp_path):
    figures = await watched(temporal, nursery, tmp_path, STEPS)
    SUMMARY.parent.mkdir(parents=True, exist_ok=True)
    SUMMARY.write_text(json.dumps(figures, indent=1), encoding="utf-8")  # noqa: ASYNC240 - nothing else runs any more
    first, last = figures["bytes"]
    assert last <= 1.1 * first, figures
    early, late = figures["bytes_of_switches"]
    assert late <= 1.1 * early, figures
    early, late = figures["memory_kb"]
    assert late <= 1.1 * early, figures


@promise("recovery:switches-soak")
@pytest.mark.timeout(600 + KILLS * 30)
async def test_fifty_kills_amid_switches_lose_and_double_nothing(temporal, nursery, tmp_path):
    points = list(islice(cycle(SWITCH_POINTS), KILLS))
    async with asyncio.TaskGroup() as running:
        for lane in range(AT_ONCE):
            running.create_task(killed_amid_switches(temporal, nursery, tmp_path / str(lane), points[lane::AT_ONCE]))
