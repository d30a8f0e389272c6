"""Two hundred random plans and a hundred programs, rehearsed and held; the figures go to build/soak-rehearsals.json.

SOAK_REHEARSED_PLANS (200) and SOAK_REHEARSED_PROGRAMS (100) shape it.
"""

import json
import os
from pathlib import Path

import pytest

from tests.e2e.plans.rehearsed import checked_all, opened_world, random_case
from tests.requirements import promise

pytestmark = pytest.mark.soak

PLANS = int(os.environ.get("SOAK_REHEARSED_PLANS", "200"))
PROGRAMS = int(os.environ.get("SOAK_REHEARSED_PROGRAMS", "100"))
SUMMARY = Path("build/soak-rehearsals.json")


@promise("approvals:rehearsal-soak")
@pytest.mark.timeout(600 + 10 * (PLANS + PROGRAMS))
async def test_every_write_is_as_foretold_or_asked_about(temporal, sandbox, tmp_path):
    cases = [random_case(seed, as_program=False) for seed in range(1000, 1000 + PLANS)]
    cases += [random_case(seed, as_program=True) for seed in range(1000, 1000 + PROGRAMS)]
    async with opened_world(temporal, sandbox, tmp_path) as (world, scripts):
        total = await checked_all(cases, world, scripts)
    SUMMARY.parent.mkdir(parents=True, exist_ok=True)
    SUMMARY.write_text(json.dumps(total, indent=1), encoding="utf-8")  # noqa: ASYNC240 - nothing else runs any more
    assert total["runs"] == len(cases)
    assert 0.2 < total["changed_worlds"] / len(cases) < 0.4
