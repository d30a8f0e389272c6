"""The worker is killed with SIGKILL at a named point; another takes over, and every mail is sent once."""

import asyncio

import pytest
import pytest_asyncio

from tests.crash.case import killed_at, open_case
from tests.crash.points import POINTS, Point
from tests.crash.processes import open_nursery

AT_ONCE = 8


async def _take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take one notice of a request."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


@pytest_asyncio.fixture(scope="module")
async def matrix(request, temporal, tmp_path_factory):
    """Run all selected points, several at once; each test awaits its own."""
    folder = tmp_path_factory.mktemp("matrix")
    turns = asyncio.Semaphore(AT_ONCE)
    names = {item.callspec.params["point"].name for item in request.session.items if "point" in item.fixturenames}

    async def run(point: Point) -> None:
        async with turns, asyncio.timeout(200):
            place = folder / point.name.replace(":", "_")
            amid = point.nth if (point.when, point.place) == ("amid", "model.request") else 0
            options = {"shape": point.shape, "transport": point.transport, "amid_model": amid, "notify": address}
            async with open_case(temporal, nursery, place, **options) as case:
                await killed_at(case, point)

    receiver = await asyncio.start_server(_take, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{receiver.sockets[0].getsockname()[1]}/"
    async with receiver, open_nursery() as nursery:
        running = {point.name: asyncio.create_task(run(point)) for point in POINTS if point.name in names}
        try:
            yield running
        finally:
            for one in running.values():
                one.cancel()
            await asyncio.gather(*running.values(), return_exceptions=True)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
async def test_a_worker_killed_at_any_point_is_replaced_and_every_mail_is_sent_once(matrix, point):
    await matrix[point.name]


def test_the_matrix_names_at_least_thirty_points_and_none_twice():
    names = [point.name for point in POINTS]
    assert len(names) == len(set(names)) >= 30
