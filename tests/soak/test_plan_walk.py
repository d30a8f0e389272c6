"""The random walk of plans, with more runs: SOAK_WALKS (300) says how many, and WALK_SEED where it begins.

SOAK_KILLED_WALKS (100) of them go on while their worker is killed; the figures go to build/soak-walks.json.
"""

import json
import os
from pathlib import Path

import pytest

from tests.crash.plan_walk import sent_too_often, walked_under_kills
from tests.e2e.plans.test_plan_walk import walked_through
from tests.requirements import promise

pytestmark = pytest.mark.soak
WALKS = int(os.environ.get("SOAK_WALKS", "300"))
KILLED = int(os.environ.get("SOAK_KILLED_WALKS", "100"))
SUMMARY = Path("build/soak-walks.json")


@promise("plans:walk")
@pytest.mark.timeout(3600)
async def test_plans_follow_the_tables_of_edges_for_as_long_as_they_walk(temporal, tmp_path):
    walked, _, workers = await walked_through(temporal, tmp_path, WALKS)
    assert workers > WALKS // 50
    assert walked.reasons >= {"invalid", "rejected", "not_chosen", "superseded", "cancelled", "step_failed"}


@promise("plans:walk-soak")
@pytest.mark.timeout(3600)
async def test_plans_send_nothing_twice_without_a_word_however_often_their_worker_is_killed(
    temporal, nursery, tmp_path
):
    strolls, killer = await walked_under_kills(temporal, nursery, tmp_path, walks=KILLED, kills=KILLED)
    figures = {
        "runs": len(strolls),
        "kills": killer.kills,
        "kills_amid_steps": killer.amid_steps,
        "plans_met": killer.states,
        "sends_by_word": sum(stroll.resends.total() for stroll in strolls),
    }
    SUMMARY.parent.mkdir(parents=True, exist_ok=True)
    SUMMARY.write_text(json.dumps(figures, indent=1), encoding="utf-8")  # noqa: ASYNC240 - nothing else runs any more
    assert all(stroll.over for stroll in strolls)
    assert [sent_too_often(stroll) for stroll in strolls] == [{}] * KILLED
    assert killer.kills > KILLED / 4
    assert set(killer.states) >= {"PROPOSED", "EXECUTING", "REVIEWING"}
