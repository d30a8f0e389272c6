"""Payloads: what is stored comes back, or an error says why not."""

import asyncio
import hashlib
import json
import os
import sqlite3
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st

from backstay.errors import ArgumentsInvalid, SettingsInvalid, StoreUnavailable, WorkerMisfit
from store.blobs.shown import FileBlobStore, Recent
from store.opening import open_store
from tests.requirements import promise

OLD, NEW, OTHER = (Fernet.generate_key().decode() for _ in range(3))


LARGE = 70_000
"""So many times a text is longer than what the database keeps."""
kept = pytest.mark.parametrize("times", [1, LARGE], ids=["row", "file"])


def files(home: Path) -> list[Path]:
    return [path for path in (home / "blobs").rglob("*") if path.is_file()]


def rows(home: Path) -> dict[tuple[str, str], bytes]:
    with sqlite3.connect(home / "backstay.db") as connection:
        return {(run, name): data for run, name, data in connection.execute("SELECT * FROM payloads")}


def lying(home: Path) -> dict[str, bytes]:
    """Return all payloads by their names, wherever they are."""
    return {path.name: path.read_bytes() for path in files(home)} | {key[1]: data for key, data in rows(home).items()}


def change(home: Path, data: bytes) -> None:
    """Change all payloads."""
    for path in files(home):
        path.write_bytes(data)
    with sqlite3.connect(home / "backstay.db") as connection:
        connection.execute("UPDATE payloads SET data = ?", (data,))


@promise("store:blobs")
async def test_bytes_come_back_under_their_hash(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        blobs = store.blobs.of("w/r")
        for data in (b"", b"a result", b"\x00" * LARGE, os.urandom(65_536), os.urandom(65_537)):
            ref, sealed = await blobs.put(data), await blobs.seal(data)
            assert ref == hashlib.sha256(data).hexdigest()[:40]
            async with open_store(database_url=database_url, home=tmp_path) as other:
                assert await other.blobs.of("w/r").get(ref) == await other.blobs.of("w/r").unseal(sealed) == data


@promise("store:blob-rows")
async def test_small_payloads_are_in_the_database_and_larger_ones_are_files(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        small, large = [b"a" * 65_536, b"b" * 65_537]
        refs = await store.blobs.of("w/r").put(small), await store.blobs.of("w/r").put(large)
        # Sealing makes the small one longer than what is a file.
        sealed = await store.blobs.of("w/r").seal(small), await store.blobs.of("w/r").seal(large)
    assert rows(tmp_path).keys() == {("w/r", refs[0]), ("w/r", f"{sealed[0]}.sealed")}
    assert {path.name for path in files(tmp_path)} == {refs[1], f"{sealed[1]}.sealed"}
    assert rows(tmp_path)["w/r", refs[0]] == small


@promise("store:blob-rows")
async def test_what_waits_for_a_transaction_is_read_before_it_and_gone_without_it(tmp_path, database_url):
    options = {"database_url": database_url, "home": tmp_path}
    async with open_store(**options) as store, open_store(**options) as reader:
        blobs = store.blobs.of("w/r")

        async def fail():
            async with store.together():
                refs = await blobs.put(b"shown"), await blobs.seal(b"raw")
                assert (await blobs.get(refs[0]), await blobs.unseal(refs[1])) == (b"shown", b"raw")
                with pytest.raises(WorkerMisfit):
                    await reader.blobs.of("w/r").get(refs[0])
                raise KeyError("power")

        with pytest.raises(KeyError):
            await fail()
        async with store.together():
            # That it was in memory once does not mean that it is kept.
            shown, sealed = await blobs.put(b"shown"), await blobs.seal(b"raw")
        assert await reader.blobs.of("w/r").get(shown) == b"shown"
        assert await reader.blobs.of("w/r").unseal(sealed) == b"raw"


@promise("store:blob-rows")
async def test_what_waits_for_a_database_that_fails_is_kept_as_files(tmp_path):
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[NEW]) as store, store.together():
        shown, sealed = await store.blobs.of("w/r").put(b"shown"), await store.blobs.of("w/r").seal(b"raw")
        await store.blobs.spill()
    assert rows(tmp_path) == {}
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[NEW]) as store:
        assert await store.blobs.of("w/r").get(shown) == b"shown"
        assert await store.blobs.of("w/r").unseal(sealed) == b"raw"


@promise("store:blob-shared")
async def test_what_is_shown_of_a_run_with_programs_is_files_as_well_and_nothing_else(tmp_path, database_url):
    options = {"database_url": database_url, "home": tmp_path}
    async with open_store(**options) as store, open_store(**options) as other:
        first, second = store.blobs.of("w/1"), store.blobs.of("w/2")
        of_first, own = await first.put(b"of the first"), await second.put(b"its own")
        await second.seal(b"raw")
        await store.blobs.of("w/3").put(b"of another")
        await second.follow("w/1")
        async with store.together():
            waiting = await second.put(b"waiting")
            await second.share()
        later = await second.put(b"later"), await other.blobs.of("w/2").put(b"by another worker")
        await second.seal(b"raw later")
        # The role that runs programs reads files only.
        sandbox = FileBlobStore(tmp_path / "blobs").of("w/2")
        for ref in (of_first, own, waiting, *later):
            assert await sandbox.get(ref) == await store.blobs.of("w/2").get(ref)
    names = {path.name for path in files(tmp_path)}
    assert names == {of_first, own, waiting, *later, "follows"}


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


@promise("store:blob-shared")
async def test_what_a_lost_worker_began_to_share_is_shared_whole_by_the_next(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        blobs = store.blobs.of("w/r")
        early = await blobs.put(b"early")
        # A worker is lost right after it has marked the run.
        await store.blobs.rows.share("w/r")
        later = await blobs.put(b"later")
        await blobs.share()
    assert {path.name for path in files(tmp_path)} == {early, later}


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
@kept
@pytest.mark.parametrize("damage", [b"", b"changed"])
async def test_a_payload_changed_on_disk_is_noticed_and_healed_when_it_is_written_again(tmp_path, damage, times):
    genuine = b"genuine" * times
    async with open_store(database_url=None, home=tmp_path) as store:
        shown, sealed = await store.blobs.of("w/r").put(genuine), await store.blobs.of("w/r").seal(genuine)
    change(tmp_path, damage)
    async with open_store(database_url=None, home=tmp_path) as store:
        with pytest.raises(StoreUnavailable):
            await store.blobs.of("w/r").get(shown)
        with pytest.raises(StoreUnavailable):
            await store.blobs.of("w/r").unseal(sealed)
        assert await store.blobs.of("w/r").put(genuine) == shown
        assert await store.blobs.of("w/r").seal(genuine) == sealed
        assert await store.blobs.of("w/r").get(shown) == await store.blobs.of("w/r").unseal(sealed) == genuine


@promise("secrets:kept-apart")
@kept
async def test_a_sealed_payload_cannot_be_swapped_for_another(tmp_path, times):
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[NEW]) as store:
        first = await store.blobs.of("w/r").seal(b"one" * times)
        other = await store.blobs.of("w/r").seal(b"other" * times)
        change(tmp_path, lying(tmp_path)[f"{other}.sealed"])
        with pytest.raises(StoreUnavailable):
            await store.blobs.of("w/r").unseal(first)


@promise("store:blobs")
@kept
async def test_the_same_bytes_written_at_once_are_one_payload(tmp_path, times):
    async with (
        open_store(database_url=None, home=tmp_path) as first,
        open_store(database_url=None, home=tmp_path) as other,
    ):
        refs = await asyncio.gather(
            *(store.blobs.of("w/r").put(b"same" * times) for store in (first, other) for _ in range(10))
        )
    assert len(set(refs)) == 1
    assert [*lying(tmp_path)] == [refs[0]]


@promise("store:folders")
@kept
async def test_runs_share_no_payload_and_find_only_what_they_wrote(tmp_path, times):
    same = b"the same" * times
    async with open_store(database_url=None, home=tmp_path) as store:
        mine, theirs = store.blobs.of("w/1"), store.blobs.of("w/2")
        shown, sealed = await mine.put(same), await mine.seal(same)
        with pytest.raises(WorkerMisfit):
            await theirs.get(shown)
        with pytest.raises(WorkerMisfit):
            await theirs.unseal(sealed)
        assert (await theirs.put(same), await theirs.seal(same)) == (shown, sealed)
        names = [path.name for path in files(tmp_path)] or [name for _, name in rows(tmp_path)]
        assert sorted(names) == sorted([shown, f"{sealed}.sealed"] * 2)


@promise("store:blob-writes")
async def test_a_write_that_fails_leaves_no_file_and_says_why(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    too_much = b"too much" * LARGE

    async with open_store(database_url=None, home=tmp_path) as store:
        with monkeypatch.context() as disk:
            disk.setattr(os, "fsync", full)
            with pytest.raises(StoreUnavailable) as refused:
                await store.blobs.of("w/r").put(too_much)
        assert "No space left" in str(refused.value)
        assert files(tmp_path) == []
        assert await store.blobs.of("w/r").get(await store.blobs.of("w/r").put(too_much)) == too_much


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
@kept
async def test_with_a_key_nothing_sealed_lies_on_disk_in_clear(tmp_path, times):
    raw = b"the raw payload" * times
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[NEW]) as store:
        ref = await store.blobs.of("w/r").seal(raw)
        assert await store.blobs.of("w/r").unseal(ref) == raw
    assert lying(tmp_path)
    assert all(b"the raw payload" not in data for data in lying(tmp_path).values())


@promise("secrets:sealed")
async def test_without_a_key_a_look_into_the_table_shows_nothing_sealed(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        await store.blobs.of("w/r").seal(b"the raw payload")
    assert len(rows(tmp_path)) == 1
    assert all(b"the raw payload" not in path.read_bytes() for path in tmp_path.glob("backstay.db*"))


@promise("secrets:rotate")
@kept
async def test_keys_are_rotated_by_putting_the_new_one_first(tmp_path, times):
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[OLD]) as store:
        ref = await store.blobs.of("w/r").seal(b"payload" * times)
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[NEW, OLD]) as store:
        assert await store.blobs.of("w/r").unseal(ref) == b"payload" * times
        later = await store.blobs.of("w/r").seal(b"later" * times)
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[NEW]) as store:
        assert await store.blobs.of("w/r").unseal(later) == b"later" * times
        with pytest.raises(WorkerMisfit):
            await store.blobs.of("w/r").unseal(ref)
        assert await store.blobs.of("w/r").seal(b"payload" * times) == ref
        assert await store.blobs.of("w/r").unseal(ref) == b"payload" * times


@promise("secrets:bad-keys")
@kept
async def test_a_missing_or_wrong_key_is_named_as_the_cause(tmp_path, times):
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[OLD]) as store:
        ref = await store.blobs.of("w/r").seal(b"payload" * times)
    for keys in ([], [OTHER]):
        async with open_store(database_url=None, home=tmp_path, encryption_keys=keys) as store:
            with pytest.raises(WorkerMisfit) as refused:
                await store.blobs.of("w/r").unseal(ref)
            assert "BACKSTAY_ENCRYPTION_KEYS" in str(refused.value)


@promise("secrets:unkeyed")
@kept
async def test_what_was_sealed_without_keys_is_readable_later_and_encrypted_when_it_is_sealed_again(tmp_path, times):
    async with open_store(database_url=None, home=tmp_path) as store:
        ref = await store.blobs.of("w/r").seal(b"payload" * times)
    async with open_store(database_url=None, home=tmp_path, encryption_keys=[NEW]) as store:
        assert await store.blobs.of("w/r").unseal(ref) == b"payload" * times
        assert await store.blobs.of("w/r").seal(b"payload" * times) == ref
    assert all(b"payload" not in data for data in lying(tmp_path).values())


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
        with sqlite3.connect(tmp_path / "backstay.db") as connection:
            connection.execute("DELETE FROM payloads")
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
