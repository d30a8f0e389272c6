"""Three approvers decide many requests at once with double clicks; one of two page processes is killed amid it."""

import pytest

from tests.requirements import promise
from tests.sizes import sized
from tests.web.crowd import assert_none_lost_and_none_twice, crowded


@promise("page:once")
@pytest.mark.thorough
@pytest.mark.timeout(400)
async def test_of_a_crowd_with_two_page_processes_and_one_killed_no_decision_is_lost_or_counts_twice(
    open_engine, tmp_path
):
    crowd, results, sent = await crowded(open_engine, tmp_path, sized(20, 10), decided=sized(1000, 200))
    assert_none_lost_and_none_twice(crowd, results, sent)
