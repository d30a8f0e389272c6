"""The named points that make test leaves out for their time."""

import pytest
import pytest_asyncio

from tests.crash.matrix import open_matrix
from tests.crash.points import MORE_POINTS

pytestmark = pytest.mark.soak


@pytest_asyncio.fixture(scope="module")
async def more(temporal, nursery, tmp_path_factory):
    async with open_matrix(temporal, nursery, tmp_path_factory.mktemp("more"), MORE_POINTS) as running:
        yield running


@pytest.mark.timeout(600)
@pytest.mark.parametrize("point", MORE_POINTS, ids=lambda point: point.name)
async def test_a_worker_killed_at_a_further_point_is_replaced_and_every_mail_is_sent_once(more, point):
    await more[point.name]
