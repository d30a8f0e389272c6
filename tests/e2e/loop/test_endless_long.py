"""A run of 100 steps, at full size of 400; `make soak` makes one of ten thousand, and watches its memory, too."""

import pytest

from tests.crash.longrun import watched
from tests.requirements import promise
from tests.sizes import sized

STEPS, SWITCH_AT = sized(400, 100), sized(800, 250)


@promise("runs:long")
@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_the_last_steps_of_a_long_run_cost_as_little_as_the_first(temporal, nursery, tmp_path):
    figures = await watched(temporal, nursery, tmp_path, STEPS, SWITCH_AT=str(SWITCH_AT))
    first, last = figures["bytes"]
    # Later arguments may be found in more places, of which history names five at most.
    assert last <= 1.15 * first, figures
    early, late = figures["bytes_of_switches"]
    assert late <= 1.1 * early, figures
