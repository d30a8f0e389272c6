"""Strangers flood a run that waits for a payment to be approved; `make soak` sends twenty thousand messages."""

import pytest

from tests.e2e.flooding import Flood, flooded


@pytest.mark.timeout(400)
@pytest.mark.parametrize("by_signal", [False, True], ids=["update", "signal"])
async def test_amid_strangers_signals_and_updates_the_one_approval_counts_once(temporal, tmp_path, by_signal):
    flood = await flooded(temporal, tmp_path, Flood(signals=300, updates=300, pauses=50), by_signal=by_signal)
    assert flood.sent == 650
    # A stranger's signal is always taken; of the updates only a repeat of the first approval gets its old answer.
    assert set(flood.answers) == {"taken", "DecisionRefused", "DecisionInvalid", "NotVerified", "RuntimeError"}
    assert flood.answers["taken"] == 300 + 25


@pytest.mark.timeout(400)
async def test_three_hundred_pauses_of_strangers_hold_no_run_and_shut_out_no_approval(temporal, tmp_path):
    flood = await flooded(temporal, tmp_path, Flood(pauses=300))
    assert flood.answers == {"NotVerified": 300}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("by_signal", [False, True], ids=["update", "signal"])
async def test_twenty_seven_signals_of_two_megabytes_one_after_the_other_end_no_run(temporal, tmp_path, by_signal):
    flood = await flooded(temporal, tmp_path, Flood(huge=27), by_signal=by_signal)
    assert flood.answers == {"taken": 27}
