"""The worker is killed with SIGKILL at a named point; another takes over, and every mail is sent once."""

import pytest
import pytest_asyncio

from tests.crash.matrix import open_matrix
from tests.crash.points import MORE_POINTS, PLACES, POINTS
from tests.engine import ROOT
from tests.requirements import promise
from tests.sizes import spread

SAMPLED = 3


@pytest_asyncio.fixture(scope="module")
async def matrix(request, temporal, nursery, tmp_path_factory):
    """Run all selected points, several at once; each test awaits its own."""
    ours = [item for item in request.session.items if item.module is request.module and "matrix" in item.fixturenames]
    chosen = [item.callspec.params["point"] for item in ours]
    async with open_matrix(temporal, nursery, tmp_path_factory.mktemp("matrix"), chosen) as running:
        yield running


@promise("recovery:kill-matrix")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("point", spread(POINTS, SAMPLED), ids=lambda point: point.name)
async def test_a_worker_killed_at_any_point_is_replaced_and_every_mail_is_sent_once(matrix, point):
    await matrix[point.name]


@promise("recovery:kill-matrix")
def test_the_matrix_names_at_least_thirty_points_and_none_twice():
    names = [point.name for point in POINTS]
    assert len(names) == len(set(names)) >= 30


@promise("recovery:matrix-document")
def test_the_document_names_every_place_and_how_many_points_there_are():
    text = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    assert [place for place in PLACES if f"`{place}`" not in text] == []
    assert (
        f"{SAMPLED} of {len(POINTS)} named points, and `make soak` at all of them and {len(MORE_POINTS)} more" in text
    )
