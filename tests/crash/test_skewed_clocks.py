"""Two workers of one store disagree by two minutes on what time it is, and one of them is stopped during a send."""

import asyncio
import signal

import pytest
import pytest_asyncio

from tests.crash.case import open_case
from tests.crash.script import MAILS
from tests.requirements import promise
from tests.together import started, together

# The store's own tests prove the rule at each run; here all of it together waits for a lease to pass, and more.
pytestmark = [pytest.mark.timeout(400), pytest.mark.soak]

LEASE_S = 60
"""Longer than it takes to notice that a worker does not beat any more: its place is taken while its lease lives. The
server gives what it took to the polls of the stopped worker first, each for as long as a heartbeat may be late."""


@pytest_asyncio.fixture(scope="module")
async def underway(request, temporal, nursery, postgres, tmp_path_factory):
    async with started(
        request, lambda scenario: scenario(temporal, nursery, postgres, tmp_path_factory.mktemp("skew"))
    ) as running:
        yield running


async def stopped_and_continued(temporal, nursery, folder, *, database, first_skew=0, second_skew=0):
    """Let one worker stop between its intent and its send, another send, and the first one go on at once.

    Were the second to believe that the lease is over when it is not, it would find that nothing was sent and send;
    and so would the first, since for itself it has time.
    """
    point = "after:effects.begin:1"
    settings = {"BACKSTAY_REQUEST_DEADLINE_SECONDS": str(LEASE_S)}
    settings |= {"BACKSTAY_DATABASE_URL": database} if database else {}
    async with open_case(temporal, nursery, folder, **settings) as case:
        stopped = await case.worker(point, "STOP", skew=first_skew)
        driving = asyncio.create_task(case.drive())
        async with asyncio.timeout(150):
            while f"killed {point}" not in stopped.said():
                await asyncio.sleep(0.05)
        await (await case.worker(skew=second_skew)).ready()
        async with asyncio.timeout(150):
            while case.mailbox.requests("send_email") < len(MAILS):
                await asyncio.sleep(0.05)
        # The second has sent what the first was about to send. A worker that drains finishes what it is at.
        stopped.kill(signal.SIGCONT)
        stopped.kill(signal.SIGTERM)
        assert await asyncio.wait_for(asyncio.shield(stopped.died), 150) == 0, stopped.said()
        ended = await driving
        assert case.mailbox.requests("send_email") == len(MAILS)
        await case.check(ended)
        assert [effect["state"] for effect in ended[0][1]["effects"]] == ["applied"] * len(MAILS)


@promise("recovery:skewed-clocks")
@together
async def test_on_postgres_a_worker_ahead_sends_nothing_that_a_stopped_worker_may_still_send(
    temporal, nursery, postgres, tmp_path
):
    await stopped_and_continued(temporal, nursery, tmp_path, database=await postgres.new_database(), second_skew=120)


@promise("recovery:skewed-clocks")
@together
async def test_on_postgres_a_stopped_worker_that_is_behind_sends_nothing_late(temporal, nursery, postgres, tmp_path):
    await stopped_and_continued(temporal, nursery, tmp_path, database=await postgres.new_database(), first_skew=-120)


@promise("recovery:clocks-sqlite")
@together
async def test_on_sqlite_a_worker_ahead_sends_nothing_that_a_stopped_worker_may_still_send(
    temporal, nursery, postgres, tmp_path
):
    await stopped_and_continued(temporal, nursery, tmp_path, database=None, second_skew=120)


@promise("recovery:clocks-sqlite")
@together
async def test_on_sqlite_a_stopped_worker_that_is_behind_sends_nothing_late(temporal, nursery, postgres, tmp_path):
    await stopped_and_continued(temporal, nursery, tmp_path, database=None, first_skew=-120)
