"""Strangers flood a run that waits for a payment to be approved: a part, or at full size hundreds of messages.

`make soak` sends twenty thousand, too.
"""

import pytest

from tests.e2e.flooding import HUGE, Flood, flooded
from tests.requirements import promise
from tests.sizes import sized, spread
from workflows.context.carrying import MOST_BYTES

MESSAGES, PAUSES = sized(300, 24), sized(50, 6)
ONLY_PAUSES = sized(300, 20)
HUGE_SIGNALS = sized(27, 6)
"""So many as 27 are more than the server takes in one execution."""


@promise("approvals:flood")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("by_signal", spread([False, True], 1))
async def test_amid_strangers_signals_and_updates_the_one_approval_counts_once(temporal, tmp_path, by_signal):
    flood = Flood(signals=MESSAGES, updates=MESSAGES, pauses=PAUSES)
    await flooded(temporal, tmp_path, flood, by_signal=by_signal)
    assert flood.sent == 2 * MESSAGES + PAUSES
    # A stranger's signal is always taken; of the updates only a repeat of the first approval gets its old answer.
    assert set(flood.answers) == {"taken", "DecisionRefused", "DecisionInvalid", "NotVerified", "RuntimeError"}
    repeats = [number for number in range(MESSAGES) if number % 4 and number % 9 == 5]
    assert flood.answers["taken"] == MESSAGES + len(repeats)


@promise("approvals:flood-pauses")
@pytest.mark.timeout(400)
async def test_many_pauses_of_strangers_hold_no_run_and_shut_out_no_approval(temporal, tmp_path):
    flood = await flooded(temporal, tmp_path, Flood(pauses=ONLY_PAUSES))
    assert flood.answers == {"NotVerified": ONLY_PAUSES}


@promise("approvals:flood-limits")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("by_signal", spread([False, True], 1), ids=spread(["update", "signal"], 1))
@pytest.mark.thorough
async def test_signals_of_two_megabytes_one_after_the_other_end_no_run(temporal, tmp_path, by_signal):
    flood = await flooded(temporal, tmp_path, Flood(huge=HUGE_SIGNALS), by_signal=by_signal)
    assert flood.answers == {"taken": HUGE_SIGNALS}
    # The run goes on as a new execution long before one has grown so large that the server would end it.
    assert flood.executions > HUGE_SIGNALS * HUGE // (2 * MOST_BYTES)
