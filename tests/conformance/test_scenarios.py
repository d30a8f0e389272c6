"""The conformance suite of MCP itself finds no fault with the client inside the toolbox, and with our servers."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.conformance.scenarios import (
    CLAIMED,
    SERVER_CLAIMED,
    SERVER_OTHERS,
    SIGN_IN_CLAIMED,
    TASKS_CLAIMED,
    offered,
    play,
    play_server,
    plugins_served,
    reason_for,
    tasks_served,
)
from tests.plugins.client import lay_out
from tests.requirements import promise
from tests.sizes import spread


@promise("tools:conformance")
@pytest.mark.parametrize("scenario", spread(CLAIMED, 1))
def test_every_scenario_of_what_is_offered_passes(scenario):
    passed, told = play(scenario)
    assert passed, told


@promise("connections:conformance")
def test_every_scenario_of_sign_ins_passes_with_a_user_who_signs_in():
    with ThreadPoolExecutor(3) as together:
        chosen = spread(SIGN_IN_CLAIMED, 1)
        played = dict(zip(chosen, together.map(play, chosen), strict=True))

    assert {scenario: told for scenario, (passed, told) in played.items() if not passed} == {}


@promise("tools:conformance")
def test_every_other_scenario_has_a_reason():
    scenarios, claimed = offered(), {*CLAIMED, *SIGN_IN_CLAIMED}
    assert claimed <= set(scenarios)
    assert [scenario for scenario in scenarios if scenario not in claimed and reason_for(scenario) is None] == []


@promise("plugins:conformance")
@pytest.mark.thorough
def test_the_plugin_server_passes_every_scenario_of_what_it_offers(tmp_path):
    with plugins_served(lay_out(tmp_path, "demo", "other")) as address:
        played = {scenario: play_server(scenario, address, tmp_path) for scenario in spread(SERVER_CLAIMED, 3)}

    assert {scenario: told for scenario, (passed, told) in played.items() if not passed} == {}


@promise("clients:mcp-conformance")
def test_tasks_and_http_pass_every_scenario_with_the_tools_that_it_needs(tmp_path):
    with tasks_served() as address, ThreadPoolExecutor(3) as together:
        playing = partial(play_server, address=address, results=tmp_path)
        chosen = spread(TASKS_CLAIMED, 2)
        played = dict(zip(chosen, together.map(playing, chosen), strict=True))

    assert {scenario: told for scenario, (passed, told) in played.items() if not passed} == {}


@promise("plugins:conformance")
def test_every_other_scenario_for_servers_has_a_reason():
    scenarios = offered("server")
    assert set(SERVER_CLAIMED) <= set(scenarios)
    others = [scenario for scenario in scenarios if scenario not in {*SERVER_CLAIMED, *TASKS_CLAIMED}]
    assert [scenario for scenario in others if reason_for(scenario, SERVER_OTHERS) is None] == []
