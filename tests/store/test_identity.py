"""A store knows who it is."""

import hashlib
import hmac

import pytest

from backstay.errors import StoreMismatch
from store.opening import open_store
from tests.requirements import promise


@promise("store:identity")
async def test_another_store_is_refused_and_both_are_named(tmp_path, database_url, another_database_url):
    async with (
        open_store(database_url=database_url, home=tmp_path / "a") as first,
        open_store(database_url=another_database_url, home=tmp_path / "b") as other,
    ):
        first.check(first.stamp)
        first.check("")
        with pytest.raises(StoreMismatch) as refused:
            first.check(other.stamp)
        assert first.stamp in str(refused.value)
        assert other.stamp in str(refused.value)
        with pytest.raises(StoreMismatch):
            first.check("nonsense")


@promise("store:epoch")
async def test_a_new_epoch_is_the_same_store_and_is_noticed(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        before = store.stamp
        assert not store.epoch_differs(before)
        made = await store.new_epoch()
        assert made.id == before.partition("/")[0]
        store.check(before)
        assert store.epoch_differs(before)
        assert not store.epoch_differs("")
    async with open_store(database_url=database_url, home=tmp_path) as again:
        assert again.stamp == made.stamp
        assert again.run_key("w/r") == store.run_key("w/r")


@promise("store:epoch-temporal")
async def test_only_stamps_of_before_a_restore_of_temporal_are_of_forgotten_attempts(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        first = store.stamp
        second = (await store.new_epoch()).stamp
        assert not any(map(store.attempts_forgotten, ("", first, second)))
        third = (await store.new_epoch(temporal_restored=True)).stamp
        fourth = (await store.new_epoch()).stamp
    async with open_store(database_url=database_url, home=tmp_path) as again:
        stamps = ("", first, second, third, fourth)
        assert [again.attempts_forgotten(stamp) for stamp in stamps] == [False, True, True, False, False]
        restored_at = int(third.partition("/")[2])
        assert again.identity.stamp_at(restored_at) == fourth
        assert again.attempts_forgotten(again.identity.stamp_at(restored_at - 0.1))


@promise("store:epoch")
async def test_every_new_epoch_is_later(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        epochs = [store.identity.epoch, *[(await store.new_epoch()).epoch for _ in range(3)]]
    assert epochs == sorted(set(epochs))


@promise("store:epoch")
async def test_two_restores_of_one_backup_lead_to_different_epochs(tmp_path, monkeypatch):
    async with open_store(database_url=None, home=tmp_path):
        pass
    backup = (tmp_path / "backstay.db").read_bytes()
    epochs = []
    for moment in (1_800_000_000, 1_800_000_060):
        (tmp_path / "backstay.db").write_bytes(backup)
        monkeypatch.setattr("store.database.identity.time.time", lambda moment=moment: moment)
        async with open_store(database_url=None, home=tmp_path) as store:
            epochs.append((await store.new_epoch()).epoch)
    assert len(set(epochs)) == 2


@promise("secrets:run-key")
async def test_a_run_key_is_the_keyed_hash_of_the_run(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        secret = store.identity.secret.get_secret_value()
        assert len(secret) == 32
        assert store.run_key("w/r") == hmac.new(secret, b"w/r", hashlib.sha256).digest()
        assert store.run_key("w/r") != store.run_key("w/s")


@promise("secrets:run-key")
async def test_the_secret_is_never_shown(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        secret = store.identity.secret.get_secret_value()
        for shown in (repr(store.identity), str(store.identity), str(store.identity.plain())):
            assert repr(secret)[2:-1] not in shown
            assert "secret" not in store.identity.plain()
