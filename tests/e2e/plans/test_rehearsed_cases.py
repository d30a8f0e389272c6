"""A sample of the random plans and programs that are rehearsed, approved and held to their forecasts."""

import pytest

from tests.e2e.plans.rehearsed import checked_all, opened_world, random_case
from tests.requirements import promise
from tests.sizes import FULL

PLANS, PROGRAMS = (range(8), range(4)) if FULL else ((3,), (0,))
"""The seeds; those of the sample change the world after the rehearsal."""


@promise("approvals:rehearsal-differs")
@pytest.mark.thorough
@pytest.mark.timeout(400)
async def test_random_plans_and_programs_do_what_was_foretold_and_ask_about_all_else(temporal, sandbox, tmp_path):
    cases = [random_case(seed, as_program=False) for seed in PLANS]
    cases += [random_case(seed, as_program=True) for seed in PROGRAMS]
    async with opened_world(temporal, sandbox, tmp_path) as (world, scripts):
        total = await checked_all(cases, world, scripts)
    assert total["runs"] == len(cases)
    assert total["asked_again"] > 0
