"""One engine for all commands of a module."""

from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.engine import Scripts, engine

POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
allow: [{tool: "mail.send_email", when: {to: {ends_with: "@free.example"}}}]
"""


@pytest_asyncio.fixture(scope="module")
async def _opened(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        scripts = Scripts()
        folder = tmp_path_factory.mktemp("cli")
        yield await stack.enter_async_context(engine(temporal, folder, scripts, policy=POLICY)), scripts


@pytest.fixture
def opened(_opened):
    return _opened[0]


@pytest.fixture
def scripts(_opened):
    return _opened[1]
