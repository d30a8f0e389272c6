"""The rounds and verdicts that make test leaves out for their time."""

import pytest
import pytest_asyncio

from tests.crash.verdicts import ENDS, MORE, open_cases, stands
from tests.requirements import promise

pytestmark = pytest.mark.soak


@pytest_asyncio.fixture(scope="module")
async def played(temporal, nursery, tmp_path_factory):
    async with open_cases(temporal, nursery, tmp_path_factory.mktemp("verdicts"), MORE) as running:
        yield running


@promise("programs:stands")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("number", "verdict"), MORE)
async def test_after_a_kill_in_any_other_round_the_verdict_leaves_the_model_told(played, number, verdict):
    answer, lines = await played[number, verdict]
    assert answer.get("type") == ENDS[verdict], answer
    assert lines == stands(number, verdict)
