"""What the store says of requests stays true when runs end without saying so."""

import uuid

import pytest

from backstay import connect
from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.approvals.notice import NoticeDraft, NoticeKind
from people.notices.delivering import close_lost
from store.opening import open_store
from tests.requirements import promise


async def asked(store, workflow_id, run_id, namespace):
    request = ApprovalRequest(kind=RequestKind.QUESTION, question="?", id="r1", namespace=namespace)
    draft = NoticeDraft(sequence=1, event=NoticeKind.ASKED, at="2026-01-01T00:00:00", request=request)
    await store.outbox.write(f"{workflow_id}/{run_id}", workflow_id, run_id, [draft])


@promise("approvals:lost-runs")
async def test_requests_of_runs_that_temporal_ended_are_closed_and_those_of_others_stay(temporal, tmp_path):
    async def started(name):
        handle = await temporal.start_workflow("RunTask", {"text": "wait"}, id=name, task_queue=f"none-{name}")
        return name, handle.first_execution_run_id, handle

    async with open_store(database_url=None, home=tmp_path) as store, connect(client=temporal) as backstay:

        async def state(workflow_id, run_id):
            return (await store.requests.get(workflow_id, "r1", run_id)).state

        # The first one is older than what Temporal keeps.
        gone, elsewhere = f"gone-{uuid.uuid4()}", f"elsewhere-{uuid.uuid4()}"
        await asked(store, gone, "f", temporal.namespace)
        await asked(store, elsewhere, "f", "another")
        name, first, handle = await started(f"task-{uuid.uuid4()}")
        await asked(store, name, first, temporal.namespace)
        await handle.terminate()
        _, second, again = await started(name)
        await asked(store, name, second, temporal.namespace)
        assert [await close_lost(store, backstay) for _ in range(2)] == [2, 0]
        assert await state(gone, "f") == await state(name, first) == "ended"
        assert await state(name, second) == await state(elsewhere, "f") == "open"
        await again.terminate()
        assert await close_lost(store, backstay) == 1
        assert await state(name, second) == "ended"


class Blind:
    """A client that cannot look at some runs."""

    def __init__(self, backstay, names):
        self.backstay, self.names = backstay, names
        self.client = backstay.client

    def run(self, workflow_id, run_id=None):
        if workflow_id in self.names:
            raise ValueError("a Result that only a newer version can read")
        return self.backstay.run(workflow_id, run_id)


@promise("approvals:lost-looked-at")
async def test_a_run_that_cannot_be_looked_at_keeps_no_other_from_being_told(temporal, tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store, connect(client=temporal) as backstay:
        names = [f"gone-{uuid.uuid4()}" for _ in range(7)]
        for name in names:
            await asked(store, name, "f", temporal.namespace)
        # Where no run can be looked at, the rest is not tried now.
        with pytest.raises(ValueError, match="newer version"):
            await close_lost(store, Blind(backstay, names))
        assert await close_lost(store, Blind(backstay, names[:1])) == 6
        assert await close_lost(store, backstay) == 1
