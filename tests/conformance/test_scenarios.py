"""The conformance suite of MCP itself finds no fault with the client inside the toolbox."""

import pytest

from tests.conformance.scenarios import CLAIMED, offered, play, reason_for
from tests.requirements import promise
from tests.sizes import spread


@promise("tools:conformance")
@pytest.mark.parametrize("scenario", spread(CLAIMED, 2))
def test_every_scenario_of_what_is_offered_passes(scenario):
    passed, told = play(scenario)
    assert passed, told


@promise("tools:conformance")
def test_every_other_scenario_has_a_reason():
    scenarios = offered()
    assert set(CLAIMED) <= set(scenarios)
    assert [scenario for scenario in scenarios if scenario not in CLAIMED and reason_for(scenario) is None] == []
