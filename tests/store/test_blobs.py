"""Payloads: what is stored comes back, or an error says why not."""

import asyncio
import hashlib
import json
import os
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st

from backstay.errors import ArgumentsInvalid, SettingsInvalid, StoreUnavailable, WorkerMisfit
from store.blobs.shown import Recent
from store.opening import open_store
from tests.requirements import promise

OLD, NEW, OTHER = (Fernet.generate_key().decode() for _ in range(3))


def files(home: Path) -> list[Path]:
    return [path for path in (home / "blobs").rglob("*") if path.is_file()]


@promise("store:blobs")
async def test_bytes_come_back_under_their_hash(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        ref = await store.blobs.of("w/r").put(b"a result")
        assert ref == hashlib.sha256(b"a result").hexdigest()[:40]
        assert await store.blobs.of("w/r").get(ref) == b"a result"
        assert await store.blobs.of("w/r").get(await store.blobs.of("w/r").put(b"")) == b""
    assert (tmp_path / "blobs" / hashlib.sha256(b"w/r").hexdigest()[:40] / ref).read_bytes() == b"a result"


@promise("store:blob-json")
async def test_json_comes_back_equal_and_equal_values_share_a_ref(tmp_path):
    value = {"b": [1, 2.5, None, True], "a": "⟦ünï⟧ \ud800", "": {}}
    async with open_store(database_url=None, home=tmp_path) as store:
        ref = await store.blobs.of("w/r").put_json(value)
        assert ref == await store.blobs.of("w/r").put_json(dict(reversed(value.items())))
        assert await store.blobs.of("w/r").get_json(ref) == value
        assert await store.blobs.of("w/r").unseal_json(await store.blobs.of("w/r").seal_json(value)) == value


@promise("sessions:refs")
async def test_a_run_reads_what_the_runs_before_it_have_stored_and_no_other_does(tmp_path):
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[NEW]) as store:
        first, second, third = (store.blobs.of(f"w/r{number}") for number in (1, 2, 3))
        shown, sealed = await first.put_json("shown by the first"), await first.seal_json("sealed by the first")
        own = await third.put_json("of the third")
        await second.follow("w/r1")
        await third.follow("w/r2")
        await third.follow("w/r2")
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[NEW]) as fresh:
        assert await fresh.blobs.of("w/r3").get_json(shown) == "shown by the first"
        assert await fresh.blobs.of("w/r3").unseal_json(sealed) == "sealed by the first"
        for run, ref in (("w/r1", own), ("w/r2", own), ("w/r4", shown)):
            with pytest.raises(WorkerMisfit):
                await fresh.blobs.of(run).get_json(ref)


@promise("store:blob-no-json")
@pytest.mark.parametrize("value", [float("nan"), {"x": float("inf")}, {1, 2}, b"bytes"])
async def test_a_value_that_is_not_json_is_refused(tmp_path, value):
    async with open_store(database_url=None, home=tmp_path) as store:
        with pytest.raises(ArgumentsInvalid):
            await store.blobs.of("w/r").put_json(value)


@promise("store:blob-deep-json")
async def test_json_nested_too_deep_is_refused(tmp_path):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    async with open_store(database_url=None, home=tmp_path) as store:
        with pytest.raises(ArgumentsInvalid):
            await store.blobs.of("w/r").put_json(deep)
        ref = await store.blobs.of("w/r").put(b"[" * 100_000)
        with pytest.raises(ArgumentsInvalid):
            await store.blobs.of("w/r").get_json(ref)


@promise("store:blob-no-json")
async def test_bytes_that_are_not_json_are_refused_as_json(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        for data in (b"\xff\xfe", b"{", b""):
            with pytest.raises(ArgumentsInvalid):
                await store.blobs.of("w/r").get_json(await store.blobs.of("w/r").put(data))


@promise("store:blob-refs")
@pytest.mark.parametrize(
    "ref",
    ["", "0" * 39, "0" * 41, "A" * 40, "../../etc/passwd", "0" * 38 + "/x", "0" * 40 + "\n", "٣" * 40, "x" * 100_000],
)
async def test_what_is_no_ref_is_refused_before_any_file_is_touched(tmp_path, ref):
    async with open_store(database_url=None, home=tmp_path) as store:
        for read in (store.blobs.of("w/r").get, store.blobs.of("w/r").unseal):
            with pytest.raises(ArgumentsInvalid) as refused:
                await read(ref)
            assert "40 hexadecimal digits" in str(refused.value)
            assert len(str(refused.value)) < 200


@promise("store:blob-refs")
async def test_an_unknown_ref_is_named(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        for read in (store.blobs.of("w/r").get, store.blobs.of("w/r").unseal):
            with pytest.raises(WorkerMisfit, match="no stored result " + "0" * 40):
                await read("0" * 40)


@promise("store:blobs")
@pytest.mark.parametrize("damage", [b"", b"changed"])
async def test_a_payload_changed_on_disk_is_noticed_and_healed_when_it_is_written_again(tmp_path, damage):
    async with open_store(database_url=None, home=tmp_path) as store:
        shown, sealed = await store.blobs.of("w/r").put(b"genuine"), await store.blobs.of("w/r").seal(b"genuine")
    for path in files(tmp_path):
        path.write_bytes(damage)
    async with open_store(database_url=None, home=tmp_path) as store:
        with pytest.raises(StoreUnavailable):
            await store.blobs.of("w/r").get(shown)
        with pytest.raises(StoreUnavailable):
            await store.blobs.of("w/r").unseal(sealed)
        assert await store.blobs.of("w/r").put(b"genuine") == shown
        assert await store.blobs.of("w/r").seal(b"genuine") == sealed
        assert await store.blobs.of("w/r").get(shown) == await store.blobs.of("w/r").unseal(sealed) == b"genuine"


@promise("secrets:kept-apart")
async def test_a_sealed_payload_cannot_be_swapped_for_another(tmp_path):
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[NEW]) as store:
        first, other = await store.blobs.of("w/r").seal(b"one"), await store.blobs.of("w/r").seal(b"other")
        (place,) = (tmp_path / "blobs").iterdir()
        (place / f"{first}.sealed").write_bytes((place / f"{other}.sealed").read_bytes())
        with pytest.raises(StoreUnavailable):
            await store.blobs.of("w/r").unseal(first)


@promise("store:blobs")
async def test_the_same_bytes_written_at_once_are_one_file(tmp_path):
    async with (
        open_store(database_url=None, home=tmp_path) as first,
        open_store(database_url=None, home=tmp_path) as other,
    ):
        refs = await asyncio.gather(
            *(store.blobs.of("w/r").put(b"same") for store in (first, other) for _ in range(10))
        )
    assert len(set(refs)) == 1
    assert [path.name for path in files(tmp_path)] == [refs[0]]


@promise("store:folders")
async def test_runs_share_no_file_and_find_only_what_they_wrote(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        mine, theirs = store.blobs.of("w/1"), store.blobs.of("w/2")
        shown, sealed = await mine.put(b"the same"), await mine.seal(b"the same")
        with pytest.raises(WorkerMisfit):
            await theirs.get(shown)
        with pytest.raises(WorkerMisfit):
            await theirs.unseal(sealed)
        assert (await theirs.put(b"the same"), await theirs.seal(b"the same")) == (shown, sealed)
        assert sorted(path.name for path in files(tmp_path)) == sorted([shown, f"{sealed}.sealed"] * 2)


@promise("store:blob-writes")
async def test_a_write_that_fails_leaves_no_file_and_says_why(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    async with open_store(database_url=None, home=tmp_path) as store:
        with monkeypatch.context() as disk:
            disk.setattr(os, "fsync", full)
            with pytest.raises(StoreUnavailable) as refused:
                await store.blobs.of("w/r").put(b"too much")
        assert "No space left" in str(refused.value)
        assert files(tmp_path) == []
        assert await store.blobs.of("w/r").get(await store.blobs.of("w/r").put(b"too much")) == b"too much"


@promise("secrets:kept-apart")
async def test_a_shown_ref_cannot_read_what_is_sealed_nor_the_other_way_round(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        sealed, shown = await store.blobs.of("w/r").seal(b"raw"), await store.blobs.of("w/r").put(b"raw")
        assert sealed != shown
        with pytest.raises(WorkerMisfit):
            await store.blobs.of("w/r").get(sealed)
        with pytest.raises(WorkerMisfit):
            await store.blobs.of("w/r").unseal(shown)


@promise("secrets:kept-apart")
async def test_the_ref_of_a_sealed_payload_does_not_reveal_its_hash_nor_the_key_of_a_run(tmp_path):
    async with (
        open_store(database_url=None, home=tmp_path / "a") as first,
        open_store(database_url=None, home=tmp_path / "b") as other,
    ):
        ref = await first.blobs.of("w/r").seal(b"w/r")
        assert ref == await first.blobs.of("w/r").seal(b"w/r")
        assert ref != await other.blobs.of("w/r").seal(b"w/r")
        assert ref not in hashlib.sha256(b"w/r").hexdigest()
        assert ref not in first.run_key("w/r").hex()


@promise("secrets:sealed")
async def test_with_a_key_nothing_sealed_lies_on_disk_in_clear(tmp_path):
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[NEW]) as store:
        ref = await store.blobs.of("w/r").seal(b"the raw payload")
        assert await store.blobs.of("w/r").unseal(ref) == b"the raw payload"
    assert all(b"the raw payload" not in path.read_bytes() for path in files(tmp_path))


@promise("secrets:rotate")
async def test_keys_are_rotated_by_putting_the_new_one_first(tmp_path):
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[OLD]) as store:
        ref = await store.blobs.of("w/r").seal(b"payload")
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[NEW, OLD]) as store:
        assert await store.blobs.of("w/r").unseal(ref) == b"payload"
        later = await store.blobs.of("w/r").seal(b"later")
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[NEW]) as store:
        assert await store.blobs.of("w/r").unseal(later) == b"later"
        with pytest.raises(WorkerMisfit):
            await store.blobs.of("w/r").unseal(ref)
        assert await store.blobs.of("w/r").seal(b"payload") == ref
        assert await store.blobs.of("w/r").unseal(ref) == b"payload"


@promise("secrets:bad-keys")
async def test_a_missing_or_wrong_key_is_named_as_the_cause(tmp_path):
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[OLD]) as store:
        ref = await store.blobs.of("w/r").seal(b"payload")
    for keys in ([], [OTHER]):
        async with open_store(database_url=None, home=tmp_path, encryption_keys=keys) as store:
            with pytest.raises(WorkerMisfit) as refused:
                await store.blobs.of("w/r").unseal(ref)
            assert "BACKSTAY_ENCRYPTION_KEYS" in str(refused.value)


@promise("secrets:unkeyed")
async def test_what_was_sealed_without_keys_is_readable_later_and_encrypted_when_it_is_sealed_again(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        ref = await store.blobs.of("w/r").seal(b"payload")
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[NEW]) as store:
        assert await store.blobs.of("w/r").unseal(ref) == b"payload"
        assert await store.blobs.of("w/r").seal(b"payload") == ref
    assert all(b"payload" not in path.read_bytes() for path in files(tmp_path))


@promise("secrets:bad-keys")
@pytest.mark.parametrize("bad", ["", "short", "ü" * 44, "!" * 44, "A" * 40])
async def test_a_bad_key_is_refused_by_its_place_and_not_shown(tmp_path, bad):
    with pytest.raises(SettingsInvalid) as refused:
        async with open_store(database_url=None, home=tmp_path, encryption_keys=[OLD, bad]):
            pass
    assert "BACKSTAY_ENCRYPTION_KEYS: key 2" in str(refused.value)
    assert not bad or bad not in str(refused.value)
    assert not (tmp_path / "backstay.db").exists()


@promise("store:recent")
async def test_a_recent_payload_is_read_from_memory(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        ref = await store.blobs.of("w/r").put_json({"recent": True})
        for path in files(tmp_path):
            path.unlink()
        assert json.loads(await store.blobs.of("w/r").get(ref)) == {"recent": True}


@promise("store:recent")
@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 40))))
def test_what_is_kept_in_memory_never_exceeds_its_limit(operations):
    recent = Recent(limit=100)
    sizes = {}
    for ref, first_size in operations:
        size = sizes.setdefault(ref, first_size)
        if recent.get(ref) is None:
            recent.put(ref, bytes(size))
        kept = [found for name in "abcdefgh" if (found := recent.get(name)) is not None]
        assert sum(map(len, kept)) <= 100
        assert (recent.get(ref) is not None) == (size <= 25)
