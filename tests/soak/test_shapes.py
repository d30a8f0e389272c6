"""Every piece of work in every layout, which takes some minutes."""

import pytest

from tests.requirements import promise
from tests.sandbox.playing import opened
from tests.sandbox.shapes import faults_of, scripts

pytestmark = pytest.mark.soak


@promise("programs:shapes")
@pytest.mark.timeout(1800)
async def test_every_script_of_the_table_runs_in_the_jail(tmp_path):
    async with opened(tmp_path) as sandbox:
        assert await faults_of(sandbox, scripts()) == {}
