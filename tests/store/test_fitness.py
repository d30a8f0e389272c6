"""Which keys a store accepts of its workers, and which folder."""

import shutil

import pytest
from structlog.testing import capture_logs

from backstay.errors import WorkerMisfit
from store.fitness import Belongings
from store.opening import open_store
from tests.requirements import promise

SETTING = "BACKSTAY_ENCRYPTION_KEYS"


def brought(*keys, toolbox=b"{}"):
    return Belongings(keys={SETTING: keys}, toolbox=toolbox)


async def demand(home, *keys, **more):
    async with open_store(database_url=None, home=home, **more) as store:
        await store.fitness.demand(brought(*keys))


@promise("workers:keys")
async def test_keys_are_rotated_without_a_worker_that_cannot_read_what_others_write(tmp_path):
    for keys in (["old"], ["old", "new"], ["new", "old"], ["old", "new"], ["new", "old"], ["new"], ["newer", "new"]):
        await demand(tmp_path, *keys)
    with pytest.raises(WorkerMisfit, match=SETTING):
        await demand(tmp_path, "new")
    await demand(tmp_path, "newer")


@promise("workers:keys")
@pytest.mark.parametrize(("first", "later"), [(["a"], ["b"]), (["a"], []), ([], ["a"]), (["a", "b"], ["b"])])
async def test_a_worker_that_lacks_the_key_that_others_write_with_is_refused_and_changes_nothing(
    tmp_path, first, later
):
    await demand(tmp_path, *first)
    for _ in range(2):
        with pytest.raises(WorkerMisfit, match=SETTING) as refused:
            await demand(tmp_path, *later)
        assert "adopt-settings" in str(refused.value)
    await demand(tmp_path, *first)


@promise("workers:keys-not-stored")
async def test_no_key_is_found_in_the_store_and_two_stores_tell_the_same_key_apart(tmp_path):
    key = "a long key that nobody shall find"
    said = []
    for name in ("a", "b"):
        await demand(tmp_path / name, key)
        assert all(key.encode() not in path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file())
        with pytest.raises(WorkerMisfit) as refused:
            await demand(tmp_path / name, "another")
        said.append(str(refused.value).partition("workers use key ")[2][:12])
    assert len({*said}) == 2


@promise("workers:keys-differences")
async def test_every_difference_is_named_at_once(tmp_path):
    await demand(tmp_path, "a")
    with pytest.raises(WorkerMisfit) as refused:
        await demand(tmp_path, "b", blobs=tmp_path / "empty")
    assert SETTING in str(refused.value)
    assert "BACKSTAY_BLOBS" in str(refused.value)


@promise("workers:fitness-payloads")
async def test_a_folder_of_payloads_stays_with_its_store(tmp_path):
    await demand(tmp_path / "a", "k")
    await demand(tmp_path / "b", "k")
    with pytest.raises(WorkerMisfit, match="holds the payloads of store"):
        await demand(tmp_path / "a", "k", blobs=tmp_path / "b" / "blobs")
    shutil.move(tmp_path / "a" / "blobs", tmp_path / "moved")
    await demand(tmp_path / "a", "k", blobs=tmp_path / "moved")
    with pytest.raises(WorkerMisfit, match="is not the folder in which this store keeps its payloads"):
        await demand(tmp_path / "a", "k")


@promise("workers:fitness-payloads")
async def test_a_store_of_an_earlier_release_does_not_take_an_empty_folder_for_its_own(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        await store.blobs.of("w/r").put(b"payload" * 10_000)
        await store.runs.opened(
            run="w/r",
            workflow_id="w",
            workflow_run_id="r",
            user_id="ana",
            text="t",
            opened={},
            store=store.stamp,
        )
    with pytest.raises(WorkerMisfit, match="BACKSTAY_BLOBS"):
        await demand(tmp_path, "k", blobs=tmp_path / "empty")
    await demand(tmp_path, "k")


@promise("workers:adopt")
async def test_what_an_operator_adopts_is_what_fits_from_then_on(tmp_path):
    await demand(tmp_path, "a")
    async with open_store(database_url=None, home=tmp_path, blobs=tmp_path / "new") as store:
        await store.fitness.adopt(brought("b"))
    await demand(tmp_path, "b", blobs=tmp_path / "new")
    with pytest.raises(WorkerMisfit):
        await demand(tmp_path, "a", blobs=tmp_path / "new")


@promise("workers:toolbox")
async def test_another_toolbox_is_named_once_and_no_fault(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        with capture_logs() as logs:
            for toolbox in (b"{}", b"{}", b"{ }", b"{ }"):
                await store.fitness.demand(brought("k", toolbox=toolbox))
    assert [entry["event"] for entry in logs] == ["worker.toolbox_differs"]
