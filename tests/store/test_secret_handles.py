"""What secret handles stand for, and where it must not appear."""

import logging

import pytest
from cryptography.fernet import Fernet

from backstay.errors import StoreUnavailable, WorkerMisfit
from store.opening import open_store
from store.secrets.handles import SecretValue
from tests.requirements import promise

KEY, OTHER = (Fernet.generate_key().decode() for _ in range(2))
VALUE = "hunter2-" + "x" * 20


@promise("secrets:home")
async def test_a_handle_is_revealed_in_its_own_run_only(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        entry = SecretValue(provider="mail", value=VALUE)
        await store.secrets.remember("w/r", {"⟦secret:token:1⟧": entry})
        assert await store.secrets.reveal("w/r", ["⟦secret:token:1⟧", "⟦secret:token:2⟧"]) == {
            "⟦secret:token:1⟧": entry
        }
        assert await store.secrets.reveal("w/s", ["⟦secret:token:1⟧"]) == {}
        assert await store.secrets.reveal("w/r", []) == {}


@promise("secrets:remembered")
async def test_what_a_handle_stands_for_never_changes(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await store.secrets.remember("w/r", {"h1": SecretValue(provider="mail", value=VALUE)})
        await store.secrets.remember(
            "w/r",
            {"h1": SecretValue(provider="evil", value="other"), "h2": SecretValue(provider="crm", value="")},
        )
        await store.secrets.remember("w/r", {})
        revealed = await store.secrets.reveal("w/r", ["h1", "h2"])
    assert (revealed["h1"].provider, revealed["h1"].value) == ("mail", VALUE)
    assert (revealed["h2"].provider, revealed["h2"].value) == ("crm", "")


@promise("secrets:remembered")
async def test_thousands_of_handles_fit(tmp_path, database_url):
    entries = {f"h{n}": SecretValue(provider="mail", value=f"value {n}") for n in range(3000)}
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await store.secrets.remember("w/r", entries)
        await store.secrets.remember("w/r", entries)
        assert await store.secrets.reveal("w/r", iter(entries)) == entries


@promise("secrets:sealed")
async def test_with_a_key_no_secret_lies_on_disk_in_clear(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path, encryption_keys=[KEY]) as store:
        await store.secrets.remember("w/r", {"h": SecretValue(provider="mail", value=VALUE)})
        for path in tmp_path.iterdir():
            assert not path.is_file() or VALUE.encode() not in path.read_bytes()
        assert (await store.secrets.reveal("w/r", ["h"]))["h"].value == VALUE
    async with open_store(database_url=database_url, home=tmp_path, encryption_keys=[OTHER]) as store:
        with pytest.raises(WorkerMisfit):
            await store.secrets.reveal("w/r", ["h"])


@promise("secrets:remembered")
def test_a_secret_value_does_not_show_itself():
    entry = SecretValue(provider="mail", value=VALUE)
    for shown in (repr(entry), str(entry), f"{entry}", repr({"h": entry}), entry.model_dump_json(), str(entry.plain())):
        assert VALUE not in shown


@promise("secrets:logs")
async def test_no_secret_reaches_logs_or_errors(tmp_path, caplog, capsys, database_url):
    caplog.set_level(logging.DEBUG)
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await store.secrets.remember("w/r", {"h": SecretValue(provider="mail", value=VALUE)})
        await store.secrets.reveal("w/r", ["h"])
        await store._database.write(lambda connection: connection.exec_driver_sql("DROP TABLE secret_handles"))
        with pytest.raises(StoreUnavailable) as refused:
            await store.secrets.remember("w/r", {"h": SecretValue(provider="mail", value=VALUE)})
        logging.getLogger("test").error("failed", exc_info=refused.value)
    printed = capsys.readouterr()
    for shown in (caplog.text, printed.out, printed.err, str(refused.value)):
        assert VALUE not in shown
        assert store.identity.secret.get_secret_value().hex() not in shown
