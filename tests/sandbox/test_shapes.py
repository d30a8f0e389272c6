"""However a model lays out and starts a script, it runs once in the jail and its answer comes out."""

import pytest
import pytest_asyncio

from tests.requirements import promise
from tests.sandbox.playing import opened
from tests.sandbox.shapes import LAYOUTS, WORKS, faults_of, sample, scripts
from tests.sizes import sized


@pytest_asyncio.fixture(scope="module")
async def sandbox(tmp_path_factory):
    async with opened(tmp_path_factory.mktemp("jails")) as made:
        yield made


@promise("programs:shapes")
@pytest.mark.timeout(400)
@pytest.mark.thorough
async def test_scripts_of_every_shape_run_in_the_jail_and_make_each_call_once(sandbox):
    assert await faults_of(sandbox, sample()) == {}


@promise("programs:shapes")
def test_the_table_has_many_shapes_and_the_sample_all_their_parts():
    names = [script.name for script in scripts()]
    assert len(names) == len(set(names)) > 1000
    chosen = [script.name.split("-") for script in sample()]
    assert len({tuple(name) for name in chosen}) >= sized(164, 35)
    assert {layout for layout, _ in chosen} == {layout.name for layout in LAYOUTS}
    assert {work for _, work in chosen} == {work.name for work in WORKS}
