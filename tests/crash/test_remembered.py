"""The worker is killed while a decision is being remembered; it is remembered once, and the next run does not ask."""

import asyncio
import sqlite3
from contextlib import suppress
from datetime import timedelta

import pytest
import pytest_asyncio
from temporalio.client import WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError

from tests import signing
from tests.crash.case import open_case
from tests.crash.person import Person
from tests.crash.points import Point
from tests.requirements import promise
from tests.sizes import spread
from tests.together import started, together

KEY = "the key that workers and gateways share"
POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
accepting: {approvers: ["ana@example.com"]}
"""


class Remembering(Person):
    """Approve what is asked, and have it remembered for ever."""

    async def decide(self, handle, request):
        if request["kind"] == "outcome":
            await super().decide(handle, request)
            return
        self.asked[request["id"]] = request
        said = {"request_id": request["id"], "verdict": "approve", "by": "ana@example.com", "event_id": request["id"]}
        said |= {"remember": "always", "remember_arguments": "any"}
        # A killed worker says nothing: the next look shows whether the decision arrived.
        with suppress(RPCError, WorkflowUpdateRPCTimeoutOrCancelledError):
            signed = await signing.signed(handle, said, key=KEY)
            await handle.execute_update("decide", signed, id=said["event_id"], rpc_timeout=timedelta(seconds=5))


@pytest_asyncio.fixture(scope="module")
async def underway(request, temporal, nursery, tmp_path_factory):
    async with started(
        request, lambda scenario: scenario(temporal, nursery, tmp_path_factory.mktemp("remembered"))
    ) as running:
        yield running


@promise("recovery:kill-remembered")
@pytest.mark.parametrize(
    "point",
    spread([Point("before", "remember_lines"), Point("after", "accepted_lines.keep")], 1),
    ids=lambda point: point.name,
)
@together
async def test_a_decision_is_remembered_once_wherever_the_worker_dies(temporal, nursery, tmp_path, *, point):
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    more = {"BACKSTAY_POLICY": str(policy), "BACKSTAY_APPROVER_KEY": KEY}
    async with open_case(temporal, nursery, tmp_path / "case", **more) as case:
        case.person = Remembering(case.mailbox)
        doomed = await case.worker(point.spec)
        run = await case.start()
        async with asyncio.TaskGroup() as group:
            attending = group.create_task(case.person.attend(run))
            assert await doomed.died == -9, doomed.said()
            await case.worker()
        result = attending.result()
        assert result["outcome"] == "completed", result
        case.check_mail()
        assert [event["name"] for event in result["events"]].count("policy.remembered") == 1

        later = Remembering(case.mailbox)
        again = await later.attend(await case.start())
        assert (again["outcome"], later.asked) == ("completed", {})
        with sqlite3.connect(tmp_path / "case/home/backstay.db") as store:
            assert store.execute("SELECT count(*) FROM accepted_lines").fetchone() == (1,)
