"""Run many points at once: most of a case is waiting for a heartbeat that does not come."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from temporalio.client import Client

from tests.crash.case import killed_at, open_case
from tests.crash.points import Point
from tests.nursery.nursery import Nursery
from tests.postgres import PostgresServer

AT_ONCE = 4


async def settings_of(postgres: PostgresServer) -> dict[str, str]:
    """Return the settings of a store in a new database of Postgres, which holds the payloads too."""
    return {"BACKSTAY_DATABASE_URL": await postgres.new_database(), "BACKSTAY_PAYLOADS": "database"}


async def _take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take one notice of a request."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


@asynccontextmanager
async def open_receiver() -> AsyncGenerator[str]:
    """Take notices on a loopback port; yields the address."""
    receiver = await asyncio.start_server(_take, "127.0.0.1", 0)
    async with receiver:
        yield f"http://127.0.0.1:{receiver.sockets[0].getsockname()[1]}/"


@asynccontextmanager
async def open_matrix(
    client: Client, nursery: Nursery, folder: Path, points: Sequence[Point], postgres: PostgresServer | None = None
) -> AsyncGenerator[dict[str, asyncio.Task[None]]]:
    """Start a run for each point, on SQLite or on the Postgres; yields them by the point's name."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def run(point: Point) -> None:
        async with turns, asyncio.timeout(200):
            place = folder / point.name.replace(":", "_")
            during = point.nth if (point.when, point.place) == ("during", "model.request") else 0
            options: dict[str, Any] = {
                "shape": point.shape,
                "transport": point.transport,
                "during_model": during,
                "notify": address,
            }
            if postgres is not None:
                options |= await settings_of(postgres)
            async with open_case(client, nursery, place, **options) as case:
                await killed_at(case, point)

    async with open_receiver() as address:
        running = {point.name: asyncio.create_task(run(point)) for point in points}
        try:
            yield running
        finally:
            for item in running.values():
                item.cancel()
            await asyncio.gather(*running.values(), return_exceptions=True)
