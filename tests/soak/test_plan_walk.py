"""The random walk of plans, with more runs: SOAK_WALKS (300) says how many, and WALK_SEED where it begins."""

import os

import pytest

from tests.e2e.test_plan_walk import walked_through

pytestmark = pytest.mark.soak
WALKS = int(os.environ.get("SOAK_WALKS", "300"))


@pytest.mark.timeout(3600)
async def test_plans_follow_the_tables_of_edges_for_as_long_as_they_walk(temporal, tmp_path):
    walked, _, workers = await walked_through(temporal, tmp_path, WALKS)
    assert workers > WALKS // 50
    assert walked.reasons >= {"invalid", "rejected", "not_chosen", "superseded", "cancelled", "step_failed"}
