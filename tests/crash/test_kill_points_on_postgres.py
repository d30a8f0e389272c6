"""The same as in test_kill_points.py, at a few points, with the store in Postgres."""

import pytest
import pytest_asyncio

from tests.crash.matrix import open_matrix
from tests.crash.points import POINTS, POSTGRES_POINTS
from tests.requirements import promise
from tests.sizes import spread


@pytest_asyncio.fixture(scope="module")
async def matrix(request, temporal, nursery, postgres, tmp_path_factory):
    chosen = [item.callspec.params["point"] for item in request.session.items if item.module is request.module]
    async with open_matrix(temporal, nursery, tmp_path_factory.mktemp("postgres"), chosen, postgres) as running:
        yield running


@promise("recovery:kill-matrix-postgres")
@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("point", spread(POSTGRES_POINTS, 1), ids=lambda point: point.name)
async def test_with_a_store_in_postgres_a_killed_worker_is_replaced_and_every_mail_is_sent_once(matrix, point):
    assert point in POINTS
    await matrix[point.name]
