"""What a plain kill does not show: stopped workers, a restarted server, long absences, tools that prove nothing."""

import asyncio
import signal
from datetime import timedelta

import pytest
import pytest_asyncio
from temporalio.service import RPCError

from examples.mailbox.faults import Faults
from tests.crash.case import open_case
from tests.crash.script import MAILS
from tests.crash.temporal_server import client_of, server
from tests.ports import own_port
from tests.requirements import promise
from tests.together import started, together

# All of it together waits for the polls of a stopped worker to end, which takes a minute, and more.
pytestmark = pytest.mark.timeout(400)

WITHOUT_CHECK = {"safety": "write_safe", "idempotent": False}


@pytest_asyncio.fixture(scope="module")
async def underway(request, temporal, nursery, tmp_path_factory):
    async with started(request, lambda start: start(temporal, nursery, tmp_path_factory.mktemp("one"))) as running:
        yield running


async def until(holds, within_s=150):
    # For a minute the polls of a stopped worker stay open, and each of them may take a task away until it times out.
    async with asyncio.timeout(within_s):
        while not holds():
            await asyncio.sleep(0.05)


async def stopped_and_continued(temporal, nursery, tmp_path, point):
    async with open_case(temporal, nursery, tmp_path, faults=Faults(slow_seconds=0.3)) as case:
        stopped = await case.worker(point, "STOP")
        driving = asyncio.create_task(case.drive())
        await until(lambda: f"killed {point}" in stopped.said())
        await (await case.worker()).ready()
        # The run ends without the stopped worker: its heartbeat was missed, its lease is over, its place is taken.
        ended = await driving
        before = case.mailbox.requests("send_email")
        stopped.kill(signal.SIGCONT)
        # A worker that drains has finished whatever it was about to do.
        stopped.kill(signal.SIGTERM)
        assert await asyncio.wait_for(asyncio.shield(stopped.died), 150) == 0, stopped.said()
        assert case.mailbox.requests("send_email") == before
        await case.check(ended)
        assert [effect["state"] for effect in ended[0][1]["effects"]] == ["applied"] * len(MAILS)


@promise("recovery:sigstop")
@pytest.mark.soak
@together
async def test_a_worker_stopped_before_its_send_and_continued_much_later_does_not_send(temporal, nursery, tmp_path):
    await stopped_and_continued(temporal, nursery, tmp_path, "after:effects.begin:1")


@promise("recovery:sigstop")
@together
async def test_a_worker_stopped_during_its_send_and_continued_much_later_adds_nothing(temporal, nursery, tmp_path):
    await stopped_and_continued(temporal, nursery, tmp_path, "during:provider.request.send:2")


@promise("recovery:sigstop")
@pytest.mark.soak
@together
async def test_a_worker_stopped_after_its_send_and_continued_much_later_adds_nothing(temporal, nursery, tmp_path):
    await stopped_and_continued(temporal, nursery, tmp_path, "after:provider.request.send:1")


@promise("effects:late-person")
@pytest.mark.thorough
@together
async def test_a_worker_continued_while_a_person_is_asked_adds_no_second_truth(temporal, nursery, tmp_path):
    """The late answer of the first worker comes while the second asks; the word that is recorded first stands."""
    point = "during:provider.request.send:3"
    async with open_case(temporal, nursery, tmp_path, faults=Faults(slow_seconds=0.3), declared=WITHOUT_CHECK) as case:
        stopped = await case.worker(point, "STOP")
        run = await case.start()
        attending = asyncio.create_task(case.person.attend(run))
        await until(lambda: f"killed {point}" in stopped.said())
        await case.worker()
        await until(lambda: any(request["kind"] == "outcome" for request in case.person.asked.values()))
        stopped.kill(signal.SIGCONT)
        result = await attending
        await case.check([(run, result)])
        assert [effect["state"] for effect in result["effects"]] == ["applied"] * len(MAILS)
        assert case.mailbox.requests("send_email") == len(MAILS) + case.person.resent.total()


@promise("recovery:undeclared")
@together
async def test_an_undeclared_tool_killed_after_its_send_leads_to_a_question_never_to_a_second_send(
    temporal, nursery, tmp_path
):
    async with open_case(temporal, nursery, tmp_path, declared=WITHOUT_CHECK) as case:
        doomed = await case.worker("after:provider.request.send:3")
        driving = asyncio.create_task(case.drive())
        assert await asyncio.wait_for(asyncio.shield(doomed.died), 150) == -9
        await case.worker()
        ended = await driving
        await case.check(ended)
        questions = [request for request in case.person.asked.values() if request["kind"] == "outcome"]
        assert questions
        assert all(set(question["options"]) == {"happened", "did_not_happen", "retry"} for question in questions)
        assert case.mailbox.requests("send_email") == len(MAILS)


@promise("recovery:no-worker")
@together
async def test_a_decision_made_while_no_worker_lives_is_acted_on_by_the_next(temporal, nursery, tmp_path):
    async with open_case(temporal, nursery, tmp_path) as case:
        first = await case.worker()
        run = await case.start()
        pending = []
        async with asyncio.timeout(150):
            while not pending:
                try:
                    pending = await run.query("pending", rpc_timeout=timedelta(seconds=5))
                except RPCError:
                    continue
        await first.end()
        assert case.mailbox.requests("send_email") == 0
        await run.signal("approval", {"request_id": pending[0]["id"], "verdict": "approve", "by": "ana"})
        await case.worker()
        async with asyncio.timeout(150):
            result = await run.result()
        await case.check([(run, result)])
        assert case.person.asked == {}


@promise("recovery:server-restart")
@together
async def test_a_temporal_server_killed_during_sending_and_started_again_loses_nothing(temporal, nursery, tmp_path):
    """The session's server serves other runs meanwhile, so this run has one of its own."""
    port = own_port()
    async with server(port, tmp_path / "temporal.db") as first:
        client = await client_of(port)
        async with open_case(client, nursery, tmp_path / "case", faults=Faults(slow_seconds=1)) as case:
            await (await case.worker()).ready()
            run = await case.start()
            ending = asyncio.create_task(case.person.attend(run))
            await until(lambda: case.mailbox.requests("send_email") > 0)
            first.kill()
            await first.wait()
            async with server(port, tmp_path / "temporal.db"):
                await client_of(port)
                await case.check([(run, await ending)])
                assert case.mailbox.requests("send_email") == len(MAILS)
