"""`backstay store move-payloads` and `backstay store verify`: no payload is lost on its way to another place."""

import asyncio
import json
import os
import signal
import threading
import time
import uuid

import pytest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueRequest

from backstay.errors import WorkerMisfit
from backstay.settings import Settings
from backstay.task.attachment import attached_to
from opening import belongings_of, open_store
from tests.cli.commands import bare, forked, until_polled
from tests.nursery.nursery import COMMAND
from tests.requirements import promise
from tests.s3_server import ACCESS, SECRET
from tests.sizes import spread

SIZES = (10, 70_000, 300_000)
AROUND, BACK = ("bucket", "database", "files"), ("database", "bucket", "files")
RUNS = ("w/open", "w/follows", "w/alone")


@pytest.fixture
def bucket(s3_server):
    yield s3_server.bucket(f"b-{uuid.uuid4().hex}")
    s3_server.before, s3_server.fault = lambda *_: None, ""


@pytest.fixture
def variables(temporal, s3_server, tmp_path):
    """The settings that do not change."""
    return {
        "TEMPORAL_ADDRESS": temporal.service_client.config.target_host,
        "BACKSTAY_TASK_QUEUE": f"queue-{uuid.uuid4()}",
        "BACKSTAY_HOME": str(tmp_path / "home"),
        "BACKSTAY_S3_ENDPOINT": s3_server.endpoint,
        **ACCESS,
    }


@pytest.fixture
def opened_store(variables, monkeypatch):
    """Open the store in this process with large payloads in a place."""

    def opened(place):
        for name, value in {**variables, "BACKSTAY_PAYLOADS": place}.items():
            monkeypatch.setenv(name, value)
        return open_store(Settings.load(None))

    return opened


@pytest.fixture
def command(variables, nursery, tmp_path):
    async def command(place, *arguments):
        environment = bare(**variables, BACKSTAY_PAYLOADS=place)
        return await forked(nursery, "store", *arguments, environment=environment, folder=tmp_path)

    return command


async def fill(store):
    """Have runs store payloads of each size; return what each run can read, by the way to read it and the ref."""
    settings = Settings.load(None)
    await store.fitness.demand(belongings_of(settings))
    kept = {}
    for run in RUNS:
        workflow_id, _, run_id = run.partition("/")
        names = {"workflow_id": workflow_id, "workflow_run_id": run_id, "user_id": "ana", "text": "t"}
        await store.runs.opened(run=run, **names, opened={}, store=store.stamp)
        data = [os.urandom(size) for size in SIZES]
        kept |= {(run, "get", await store.blobs.of(run).put(some)): some for some in data}
        kept |= {(run, "unseal", await store.blobs.of(run).seal(some)): some for some in data}
    await store.blobs.of("w/follows").follow("w/open")
    return kept | {("w/follows", way, ref): data for (run, way, ref), data in kept.items() if run == "w/open"}


async def lost(store, kept):
    """Return what cannot be read."""
    found = []
    for (run, way, ref), data in kept.items():
        if await getattr(store.blobs.of(run), way)(ref) != data:
            found.append((run, way, ref))
    return found


def large_files(tmp_path):
    blobs = tmp_path / "home" / "blobs"
    return [path for path in blobs.rglob("*") if path.is_file() and path.stat().st_size > 65_536]


@promise("store:move")
@pytest.mark.parametrize("way", [AROUND, pytest.param((*AROUND, *BACK), marks=pytest.mark.thorough)])
async def test_payloads_go_from_place_to_place_and_every_one_is_what_it_was(
    opened_store, command, variables, postgres, s3_server, bucket, tmp_path, way
):
    variables["BACKSTAY_DATABASE_URL"] = await postgres.new_store()
    address = f"s3://{bucket}/p"
    async with opened_store("files") as store:
        kept = await fill(store)
    for place in (address if each == "bucket" else each for each in way):
        moved = await command(place, "move-payloads", "--yes")
        assert (moved.code, moved.out.startswith("moved 12 payloads")) == (0, True), moved
        verified = await command(place, "verify", "--output", "json")
        counts = json.loads(verified.out)
        assert (verified.code, counts["faults"]) == (0, []), verified
        assert len(large_files(tmp_path)) == (12 if place == "files" else 0)
        assert counts["payloads"].get(address, 0) == (12 if place == address else 0)
        assert counts["payloads"]["database"] == (18 if place == "database" else 6)
        if place != address:
            assert s3_server.objects(bucket).keys() <= {"p/.store.json"}
        async with opened_store(place) as store:
            assert await lost(store, kept) == []
            await store.fitness.demand(belongings_of(Settings.load(None)))


@promise("store:move-attached")
async def test_what_awaits_its_run_goes_along(opened_store, command, variables, postgres, bucket):
    variables["BACKSTAY_DATABASE_URL"] = await postgres.new_store()
    large = os.urandom(300_000)
    async with opened_store("files") as store:
        await fill(store)
        # Of a run that is kept, of one that nobody has begun yet, and from before the store noted it.
        refs = {name: (await store.blobs.attach(name, [large], time.time()))[0] for name in ("w", "later")}
        await store.blobs.rows.erase(attached_to("w"), ["attached"])
    for place in (f"s3://{bucket}/p", "database", "files"):
        moved = await command(place, "move-payloads", "--yes")
        assert (moved.code, moved.out.startswith("moved 14 payloads")) == (0, True), moved
        async with opened_store(place) as store:
            assert [await store.blobs.of(attached_to(name)).unseal(ref) for name, ref in refs.items()] == [large] * 2


@promise("store:move-killed")
@pytest.mark.parametrize(("to_bucket", "back"), spread([(True, False), (True, True), (False, False)], 1))
async def test_a_move_that_is_killed_is_done_by_the_next_one_and_no_worker_begins_in_between(
    opened_store, command, variables, nursery, s3_server, bucket, tmp_path, to_bucket, back
):
    places = ("files", f"s3://{bucket}/p")
    source, target = places if to_bucket else reversed(places)
    async with opened_store(source) as store:
        kept = await fill(store)
    # The first is the marker, and the last is within what a folder has removed at its end.
    for moment in (3, 5) if to_bucket else (1, 2):
        await killed_at(moment, target, variables, nursery, s3_server, tmp_path)
        for place in places:
            async with opened_store(place) as store:
                with pytest.raises(WorkerMisfit, match="payloads are being moved; run `backstay store move-payloads`"):
                    await store.fitness.demand(belongings_of(Settings.load(None)))
    if back:
        target, to_bucket = source, not to_bucket
    moved = await command(target, "move-payloads", "--yes")
    assert moved.code == 0, moved
    async with opened_store(target) as store:
        assert await lost(store, kept) == []
        await store.fitness.demand(belongings_of(Settings.load(None)))
        assert (await store.verifying.payloads()).faults == ()
    assert len(large_files(tmp_path)) == (0 if to_bucket else 12)
    assert len(s3_server.objects(bucket)) == (13 if to_bucket else 1)


async def killed_at(moment, target, variables, nursery, s3_server, tmp_path):
    """Kill a move at its so-many-th request that changes the bucket."""
    changed, pids = [], []

    def kill(method, path):
        changed.extend([path] if method in {"PUT", "DELETE"} else [])
        if len(changed) == moment:
            os.kill(pids[0], signal.SIGKILL)

    environment = bare(**variables, BACKSTAY_PAYLOADS=target)
    given = {"environment": environment, "folder": tmp_path, "out": tmp_path / "out", "log": tmp_path / "log"}
    child = await nursery.raised(COMMAND, "store", "move-payloads", "--yes", **given)
    pids.append(child.born.result())
    s3_server.before = kill
    assert await child.ended(150) == -signal.SIGKILL, child.said()
    s3_server.before = lambda *_: None


@promise("store:move-refused")
async def test_no_payload_is_moved_while_a_worker_runs(opened, opened_store, command, variables, bucket, s3_server):
    async with opened_store("files") as store:
        await fill(store)
    variables["BACKSTAY_TASK_QUEUE"] = opened.settings.task_queue
    refused = await command(f"s3://{bucket}", "move-payloads", "--yes")
    assert (refused.code, "payloads are not moved while workers run, and " in refused.err) == (2, True), refused
    assert "stop all workers, and run this again" in refused.err
    assert s3_server.objects(bucket) == {}
    async with opened_store("files") as store:
        await store.fitness.demand(belongings_of(Settings.load(None)))


@promise("store:move-overtaken")
async def test_a_worker_that_asks_for_work_during_a_move_leaves_it_to_be_run_again(
    temporal, opened_store, command, variables, bucket, s3_server
):
    async with opened_store("files") as store:
        await fill(store)
    begun, go = threading.Event(), threading.Event()

    def wait(method, _path):
        if method == "PUT":
            begun.set()
            go.wait(150)

    s3_server.before = wait
    moving = asyncio.create_task(command(f"s3://{bucket}", "move-payloads", "--yes"))
    await asyncio.to_thread(begun.wait, 150)
    queue = variables["BACKSTAY_TASK_QUEUE"]
    late = PollWorkflowTaskQueueRequest(namespace=temporal.namespace, task_queue=TaskQueue(name=queue), identity="late")
    polling = asyncio.create_task(temporal.workflow_service.poll_workflow_task_queue(late))
    await until_polled(temporal, queue)
    go.set()
    overtaken = await moving
    polling.cancel()
    await asyncio.gather(polling, return_exceptions=True)

    assert (overtaken.code, overtaken.out.startswith("moved 12 payloads")) == (1, True), overtaken
    assert "the move is not over, so no worker begins; " in overtaken.err
    assert "late asked for work lately; stop all workers, and run this again" in overtaken.err
    variables["BACKSTAY_TASK_QUEUE"] = f"another-{queue}"
    again = await command(f"s3://{bucket}", "move-payloads", "--yes")
    assert (again.code, again.out.startswith("moved 0 payloads")) == (0, True), again


@promise("store:verify")
async def test_what_is_damaged_or_nowhere_is_named_and_stays_where_it_is_when_all_else_is_moved(
    opened_store, command, bucket, s3_server, tmp_path
):
    async with opened_store("files") as store:
        kept = await fill(store)
        older = await store.blobs.of("w/alone").put_json({"text": "t" * 100_000})
        context = await store.blobs.of("w/alone").put_json({"older": older})
        await store.runs.closed("w/alone", {"outcome": "completed"}, context=context)
    (gone,) = [path for path in large_files(tmp_path) if path.name == older]
    gone.unlink()
    damaged = large_files(tmp_path)[0]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    verified = await command("files", "verify")
    assert (verified.code, verified.err.count("\n")) == (1, 2), verified
    assert f"{damaged.name} in files: " in verified.err
    assert f"w/alone: {older}: nowhere; restore it from a backup" in verified.err
    moved = await command(f"s3://{bucket}", "move-payloads", "--yes")
    assert (moved.code, f"{damaged.name}: damaged; it stays where it is" in moved.err) == (1, True), moved
    assert large_files(tmp_path) == [damaged]
    async with opened_store(f"s3://{bucket}") as store:
        whole = {key: data for key, data in kept.items() if key[2] not in damaged.name}
        assert await lost(store, whole) == []


@promise("store:s3-settings")
async def test_an_address_or_credentials_that_cannot_be_are_told_in_one_line_with_exit_code_2(
    opened_store, command, variables, bucket
):
    async with opened_store("files") as store:
        await fill(store)
    for place in (
        "s3://",
        "s3://UPPER/x",
        "s3://b/x",
        "s3://bucket/a//b",
        "s3://bucket/../b",
        "s4://bucket",
        "s3://k:s@bu",
    ):
        done = await command(place, "verify")
        assert (done.code, done.err.count("\n"), "BACKSTAY_PAYLOADS" in done.err) == (2, 1, True), done
    done = await command(f"s3://none-{bucket}", "verify")
    assert (done.code, "NoSuchBucket; make the bucket" in done.err, SECRET in done.err) == (2, True, False), done
    variables |= {"BACKSTAY_S3_ENDPOINT": f"http://user:{SECRET}@127.0.0.1:9"}
    done = await command(f"s3://{bucket}", "verify")
    assert (done.code, "BACKSTAY_S3_ENDPOINT" in done.err) == (2, True), done
    variables |= {"BACKSTAY_S3_ENDPOINT": "http://127.0.0.1:9", "AWS_SECRET_ACCESS_KEY": ""}
    done = await command(f"s3://{bucket}", "verify")
    assert (done.code, "needs credentials; set AWS_ACCESS_KEY_ID" in done.err) == (2, True), done
    done = await command("files", "verify")
    assert done.code == 0, done
