"""A run of four hundred steps; `make soak` makes one of ten thousand, and watches its memory, too."""

import pytest

from tests.crash.longrun import watched


@pytest.mark.timeout(900)
async def test_the_last_steps_of_four_hundred_cost_as_little_as_the_first(temporal, nursery, tmp_path):
    figures = await watched(temporal, nursery, tmp_path, 400, SWITCH_AT="1200")
    first, last = figures["bytes"]
    assert last <= 1.1 * first, figures
    early, late = figures["bytes_of_switches"]
    assert late <= 1.1 * early, figures
