"""Two workers on Postgres, one with a wrong clock, and many random kills of workers, Temporal and Postgres.

SOAK_CHAOS_KILLS (100), SOAK_AT_ONCE (4) and SOAK_SEED (the time) shape it; the figures are written as JSON to
build/soak-two-hosts.json.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.crash.chaos import VICTIMS, open_chaos
from tests.requirements import promise

pytestmark = pytest.mark.soak

KILLS = int(os.environ.get("SOAK_CHAOS_KILLS", "100"))
AT_ONCE = int(os.environ.get("SOAK_AT_ONCE", "4"))
SEED = os.environ.get("SOAK_SEED") or str(int(time.time()))
SUMMARY = Path("build/soak-two-hosts.json")


def write(summary: dict[str, Any]) -> None:
    SUMMARY.parent.mkdir(parents=True, exist_ok=True)
    SUMMARY.write_text(json.dumps(summary, indent=1), encoding="utf-8")


@promise("recovery:hosts-soak")
@pytest.mark.timeout(KILLS * 15 + 600)
async def test_runs_on_two_workers_end_and_send_once_however_often_workers_temporal_and_postgres_are_killed(
    nursery, tmp_path
):
    began = time.monotonic()
    async with open_chaos(nursery, tmp_path, SEED) as chaos:
        await chaos.go([chaos.dice.choice(VICTIMS) for _ in range(KILLS)], at_once=AT_ONCE)
    write({"seed": SEED, "minutes": round((time.monotonic() - began) / 60, 1), **chaos.summary()})
    assert chaos.failures == []
    assert chaos.kills.total() == KILLS
