"""The named points that make test leaves out for their time."""

import pytest
import pytest_asyncio

from tests.crash.matrix import open_matrix
from tests.crash.points import MORE_POINTS, POINTS, POSTGRES_POINTS
from tests.requirements import promise

pytestmark = pytest.mark.soak


@pytest_asyncio.fixture(scope="module")
async def more(temporal, nursery, tmp_path_factory):
    async with open_matrix(temporal, nursery, tmp_path_factory.mktemp("more"), MORE_POINTS) as running:
        yield running


ON_POSTGRES = [point for point in (*POINTS, *MORE_POINTS) if point not in POSTGRES_POINTS]


@pytest_asyncio.fixture(scope="module")
async def on_postgres(temporal, nursery, postgres, tmp_path_factory):
    folder = tmp_path_factory.mktemp("postgres")
    async with open_matrix(temporal, nursery, folder, ON_POSTGRES, postgres) as running:
        yield running


@promise("recovery:effect-soak")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("point", MORE_POINTS, ids=lambda point: point.name)
async def test_a_worker_killed_at_a_further_point_is_replaced_and_every_mail_is_sent_once(more, point):
    await more[point.name]


@promise("recovery:matrix-postgres-soak")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("point", ON_POSTGRES, ids=lambda point: point.name)
async def test_with_a_store_in_postgres_a_worker_killed_at_any_other_point_is_replaced(on_postgres, point):
    await on_postgres[point.name]
