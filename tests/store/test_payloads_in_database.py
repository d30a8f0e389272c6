"""Payloads of every size in Postgres: no folder is shared, and none is needed."""

import asyncio
import os
import threading

import pytest
import pytest_asyncio

from backstay.errors import SettingsInvalid, StoreUnavailable, WorkerMisfit
from store.blobs.shown import RunDirectory
from store.fitness import Belongings
from store.opening import open_store
from tests.requirements import promise
from tests.store.sharing import assert_shared

LARGE = b"l" * 300_000


@pytest_asyncio.fixture
async def options(postgres):
    return {"database_url": await postgres.new_store(), "payloads_in_database": True}


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


@promise("store:blob-no-folder")
async def test_hosts_without_a_shared_folder_read_each_others_payloads_and_those_of_runs_that_a_run_follows(
    options, tmp_path
):
    async with open_store(home=tmp_path / "a", **options) as here, open_store(home=tmp_path / "b", **options) as there:
        await assert_shared(here, there, LARGE)
        freed = await here.pruning.free_payloads(["w/1"])
        assert (freed.payloads, freed.bytes > 2 * len(LARGE)) == (4, True)
    assert files(tmp_path) == []


@promise("store:blob-no-folder")
async def test_what_was_kept_as_files_while_the_database_was_away_is_moved_into_it(options, tmp_path):
    async with open_store(home=tmp_path / "a", **options) as store, store.together():
        shown, sealed = await store.blobs.of("w/r").put(b"shown"), await store.blobs.of("w/r").seal(LARGE)
        await store.blobs.spill()
        assert len(files(tmp_path)) == 4
        store.forget_waiting()
        assert await store.blobs.of("w/r").get(shown) == b"shown"
        # The worker ends before the database is back, and another one of this host begins.
    async with open_store(home=tmp_path / "a", **options) as store:
        assert await store.blobs.move_spilled() == 2
    assert files(tmp_path) == []
    async with open_store(home=tmp_path / "b", **options) as other:
        assert await other.blobs.of("w/r").get(shown) == b"shown"
        assert await other.blobs.of("w/r").unseal(sealed) == LARGE


@promise("store:blob-killed-amid-file")
async def test_a_worker_that_was_killed_while_it_kept_a_payload_as_a_file_starts_again(options, tmp_path):
    async with open_store(home=tmp_path / "a", **options) as store, store.together():
        shown = await store.blobs.of("w/r").put(b"shown")
        await store.blobs.spill()
    (marker,) = (path for path in files(tmp_path) if path.parent.name == "spilled")
    left = [marker.with_name(f".{marker.name}-{number}") for number in range(2)]
    for path in left:
        path.write_bytes(b"[")
    os.utime(left[0], (0, 0))
    async with open_store(home=tmp_path / "a", **options) as store:
        assert await store.blobs.move_spilled() == 1
        assert await store.blobs.of("w/r").get(shown) == b"shown"
        assert await store.blobs.move_spilled() == 0
    # Another worker may write the other one just now.
    assert files(tmp_path) == left[1:]


@promise("store:blob-no-folder")
async def test_a_worker_that_lives_on_moves_them_as_soon_as_the_database_is_back(options, tmp_path, monkeypatch):
    failing = [1]
    async with open_store(home=tmp_path, **options) as store:
        write = store.blobs.rows.database.write

        async def failing_write(work):
            if failing:
                failing.pop()
                raise StoreUnavailable("away")
            return await write(work)

        monkeypatch.setattr(store.blobs.rows.database, "write", failing_write)
        async with store.together():
            ref = await store.blobs.of("w/r").put(b"shown")
            await store.blobs.spill()
        async with asyncio.timeout(60):
            while files(tmp_path):
                await asyncio.sleep(0.05)
        assert failing == []
        assert await store.blobs.rows.get("w/r", ref) == b"shown"


@promise("store:blob-spilled-meanwhile")
async def test_what_another_worker_of_the_host_keeps_as_a_file_just_now_is_not_lost(options, tmp_path, monkeypatch):
    begun, going, write = threading.Event(), threading.Event(), RunDirectory.write

    def slow_write(folder, name, data):
        begun.set()
        assert going.wait(60)
        write(folder, name, data)

    async with open_store(home=tmp_path, **options) as store, open_store(home=tmp_path, **options) as other:
        async with store.together():
            ref = await store.blobs.of("w/r").put(b"shown")
            monkeypatch.setattr(RunDirectory, "write", slow_write)
            spilling = asyncio.create_task(store.blobs.spill())
            await asyncio.to_thread(begun.wait, 60)
            assert await other.blobs.move_spilled() == 0
            going.set()
            await spilling
            store.forget_waiting()
        # The worker that kept it may be killed now, so another one moves it.
        assert await other.blobs.move_spilled() == 1
        assert await other.blobs.rows.get("w/r", ref) == b"shown"
    assert files(tmp_path) == []


@promise("store:blob-spilled-meanwhile")
async def test_a_payload_of_which_only_the_marker_was_written_is_forgotten_after_an_hour(options, tmp_path):
    async with open_store(home=tmp_path, **options) as store:
        async with store.together():
            await store.blobs.of("w/r").put(b"shown")
            await store.blobs.spill()
            store.forget_waiting()
        (data,) = (path for path in files(tmp_path) if path.parent.name != "spilled")
        data.unlink()
        assert await store.blobs.move_spilled() == 0
        (marker,) = files(tmp_path)
        os.utime(marker, (0, 0))
        assert await store.blobs.move_spilled() == 0
    assert files(tmp_path) == []


@promise("store:blob-no-folder")
async def test_with_sqlite_the_setting_is_refused(tmp_path):
    with pytest.raises(SettingsInvalid, match="BACKSTAY_PAYLOADS: database needs Postgres"):
        async with open_store(database_url=None, home=tmp_path, payloads_in_database=True):
            pass
    assert files(tmp_path) == []


@promise("workers:misfit-place")
async def test_a_worker_that_keeps_payloads_elsewhere_than_the_others_is_refused_until_an_operator_adopts_it(
    options, tmp_path
):
    brought = Belongings(keys={"BACKSTAY_ENCRYPTION_KEYS": []})
    as_files = options | {"payloads_in_database": False}
    async with open_store(home=tmp_path / "a", **options) as store:
        await store.fitness.demand(brought)
    async with open_store(home=tmp_path / "b", **as_files) as store:
        with pytest.raises(WorkerMisfit, match="BACKSTAY_PAYLOADS: this worker has files, and the store's workers"):
            await store.fitness.demand(brought)
        assert files(tmp_path) == []
        await store.fitness.adopt(brought)
        await store.fitness.demand(brought)
    async with open_store(home=tmp_path / "a", **options) as store:
        with pytest.raises(WorkerMisfit, match="BACKSTAY_PAYLOADS: this worker has database"):
            await store.fitness.demand(brought)
