"""One office for the tests of a module."""

import pytest_asyncio

from tests.schedules.office import open_office


@pytest_asyncio.fixture(scope="module")
async def office(temporal, tmp_path_factory):
    async with open_office(temporal, tmp_path_factory.mktemp("schedules")) as opened:
        yield opened
