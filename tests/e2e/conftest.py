"""What several of the folders here open."""

import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from examples.mailbox.faults import Faults
from tests.mailbox_server import open_mailbox


@pytest.fixture(scope="module")
def rooms() -> Generator[Path]:
    """A folder that the users of jails can reach."""
    with tempfile.TemporaryDirectory(prefix="backstay-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "rooms"


@pytest_asyncio.fixture
async def mailbox_at(tmp_path: Path) -> AsyncGenerator[Callable[..., Awaitable[str]]]:
    """Serve a mailbox with these faults for a toolbox of the test's own; a process of its own would take a second."""
    async with AsyncExitStack() as stack:

        async def opened(**env: str) -> str:
            return await stack.enter_async_context(open_mailbox(tmp_path / "mailbox.db", Faults.read(env)))

        yield opened
