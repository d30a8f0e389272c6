"""A sample of the material through a real worker; make soak plays all of it."""

import pytest_asyncio

from tests.provenance.attacks import KINDS, honest, injected
from tests.provenance.runs import open_stage
from tests.requirements import promise
from tests.sizes import spread

SAMPLE = spread([2, 17, 33], 1)


@pytest_asyncio.fixture
async def stage(temporal, tmp_path, sandbox):
    async with open_stage(temporal, tmp_path, sandbox) as opened:
        yield opened


@promise("policy:material")
async def test_what_others_wrote_directs_no_write_unasked_and_the_request_names_the_answer_it_came_from(stage):
    cases = [injected(kind)[number] for kind in KINDS if kind != "reuse" for number in SAMPLE]

    for played in await stage.play_all(cases):
        assert played.request is not None, played.case
        assert played.written == []
        assert played.case.reads[-1].tool in played.named, (played.case, played.request)
        assert played.case.reads[-1].tool in played.request["rule"]


@promise("policy:material-honest")
async def test_honest_writes_go_on_unasked(stage):
    cases = [case for case in honest() if case.comes_from != "others"]

    for played in await stage.play_all([cases[number] for number in SAMPLE]):
        assert (played.request, len(played.written)) == (None, 1), played.case
