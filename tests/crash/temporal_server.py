"""A Temporal server that remembers, for those who kill it."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio.client import Client
from temporalio.service import RPCError

from backstay.client.connecting import DATA_CONVERTER

# A queue of so few tasks is served sooner from one place than from four that ask each other.
_SETTINGS = (
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
    "matching.enableFairness=true",
)
QUEUES = [argument for setting in _SETTINGS for argument in ("--dynamic-config-value", setting)]


@asynccontextmanager
async def server(port: int, database: Path) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Start a server on what its database holds; it is killed, never stopped."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).parent / "temporal"),
        *("server", "start-dev", "--headless", "--port", str(port), "--db-filename", str(database)),
        *("--log-level", "error"),
        *QUEUES,
        stdout=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def client_of(port: int) -> Client:
    """Connect as soon as the server answers."""
    async with asyncio.timeout(150):
        while True:
            try:
                return await Client.connect(f"127.0.0.1:{port}", data_converter=DATA_CONVERTER)
            except (RPCError, RuntimeError):
                await asyncio.sleep(0.2)
