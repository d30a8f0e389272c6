"""What the crash tests share: the process that workers are forks of."""

import pytest_asyncio

from tests.crash.processes import open_nursery


@pytest_asyncio.fixture(scope="module")
async def nursery():
    async with open_nursery() as opened:
        yield opened
