"""A worker dies amid a call of a program and a person gives a verdict: the model is told, and nothing is sent twice."""

import pytest
import pytest_asyncio

from tests.crash.verdicts import CASES, ENDS, POINTS, ROUNDS, SAMPLE, open_cases, stands
from tests.requirements import promise
from tests.sizes import spread

CHOSEN = spread(SAMPLE, 2)


@pytest_asyncio.fixture(scope="module")
async def played(temporal, nursery, tmp_path_factory):
    async with open_cases(temporal, nursery, tmp_path_factory.mktemp("verdicts"), CHOSEN) as running:
        yield running


@promise("programs:stands")
@pytest.mark.thorough
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("number", "verdict"), CHOSEN)
async def test_after_a_kill_amid_a_call_of_a_program_the_verdict_leaves_the_model_told(played, number, verdict):
    answer, lines = await played[number, verdict]
    assert answer.get("type") == ENDS[verdict], answer
    assert lines == stands(number, verdict)


@promise("programs:stands")
def test_the_matrix_has_every_round_with_every_verdict_and_the_sample_every_verdict():
    assert sorted(CASES) == sorted((number, verdict) for number in range(1, ROUNDS + 1) for verdict in POINTS)
    assert {verdict for _, verdict in SAMPLE} == set(POINTS)
