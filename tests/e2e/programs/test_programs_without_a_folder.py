"""The sandbox role without database and folder: its payloads pass through the runs role."""

import asyncio
import hashlib
import uuid
from datetime import timedelta

import pytest
import pytest_asyncio
from temporalio.api.workflowservice.v1 import ListActivityExecutionsRequest

from activities.programs.fetched_blobs import FetchedBlobStore, RunsRole
from activities.programs.payload_calls import KeepPayloads, PayloadPart, ReadPayloads, keep_payloads, read_payloads
from backstay.client import standalone
from backstay.errors import BackstayError, StoreUnavailable, WorkerMisfit
from store.opening import open_store
from tests.requirements import promise

LARGE = 2_500_000


@pytest_asyncio.fixture
async def engine(open_engine, postgres):
    options = {"database_url": await postgres.new_store(), "payloads": "database", "transient_seconds": 1}
    async with open_engine([], **options) as opened:
        yield opened


async def blobs_of(engine):
    runs_role = RunsRole(engine.client, engine.settings.task_queue)
    return FetchedBlobStore(runs_role, await runs_role.find_store())


@promise("programs:no-folder")
@pytest.mark.thorough
async def test_payloads_of_every_size_pass_both_ways_and_nothing_of_them_stays_in_temporal(engine, tmp_path):
    data = [b'"small"', b'"' + b"l" * LARGE + b'"', *(b'"%d"' % number for number in range(50))]
    sent = await blobs_of(engine)
    async with sent.together():
        refs = [await sent.of("w/r").put(some) for some in data]
        assert [await sent.of("w/r").get(ref) for ref in refs] == data
    fetched = await blobs_of(engine)
    await fetched.of("w/r").expect(refs)
    assert [await fetched.of("w/r").get(ref) for ref in refs] == data
    assert refs == [hashlib.sha256(some).hexdigest()[:40] for some in data]
    settings = engine.settings
    options = {"database_url": settings.database_url_text, "payloads_in_database": True, "home": tmp_path / "other"}
    async with open_store(**options) as store:
        assert sorted(await store.blobs.rows.shown("w/r")) == sorted(refs)
    listing = ListActivityExecutionsRequest(
        namespace=engine.client.namespace, query=f"TaskQueue = '{settings.task_queue}'"
    )
    async with asyncio.timeout(60):
        # Temporal deletes in the background.
        while (await engine.client.workflow_service.list_activity_executions(listing)).executions:
            await asyncio.sleep(0.1)


@promise("programs:no-folder")
async def test_what_is_no_payload_of_the_run_is_neither_read_nor_kept(engine, tmp_path):
    options = {"database_url": engine.settings.database_url_text, "payloads_in_database": True, "home": tmp_path / "o"}
    async with open_store(**options) as store:
        sealed, shown = await store.blobs.of("w/r").seal(b"raw"), await store.blobs.of("w/r").put(b'"shown"')
    runs_role, store_id = RunsRole(engine.client, engine.settings.task_queue), store.identity.id
    blobs = FetchedBlobStore(runs_role, store_id)
    for run, ref in (("w/r", sealed), ("w/other", shown), ("w/r", "0" * 40)):
        with pytest.raises(WorkerMisfit):
            await blobs.of(run).get(ref)
    for name in (f"{sealed}.sealed", "shared", "../x"):
        with pytest.raises(BackstayError):
            await runs_role.ask(read_payloads, ReadPayloads(run="w/r", store=store_id, names=(name,)))
    lying = PayloadPart(name="0" * 40, size=4, data=b"null")
    with pytest.raises(StoreUnavailable, match="another hash"):
        await runs_role.ask(keep_payloads, KeepPayloads(run="w/r", store=store_id, parts=(lying,)))
    with pytest.raises(StoreUnavailable, match="uses store"):
        await FetchedBlobStore(runs_role, str(uuid.uuid4())).of("w/r").get(shown)


@promise("programs:no-folder")
@pytest.mark.thorough
async def test_a_sandbox_role_that_nobody_answers_or_whose_runs_role_has_files_says_so(
    temporal, open_engine, monkeypatch
):
    async with open_engine([]) as engine:
        with pytest.raises(WorkerMisfit, match="this worker has database, and the store's workers have files"):
            await RunsRole(engine.client, engine.settings.task_queue).find_store()
    monkeypatch.setattr(standalone, "_WAIT", timedelta(seconds=1))
    with pytest.raises(WorkerMisfit, match="start one first"):
        await RunsRole(temporal, f"queue-{uuid.uuid4()}").find_store()
