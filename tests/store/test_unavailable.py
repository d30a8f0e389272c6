"""A database that does not answer is reported, and used again when it does."""

import asyncio
import sqlite3

import asyncpg
import pytest
from sqlalchemy import bindparam, event, text

from backstay.effects.effect import EffectState
from backstay.errors import SettingsInvalid, StoreUnavailable
from backstay.task.event import Event
from store.effects.types import Intent
from store.opening import open_store
from tests.postgres import open_postgres
from tests.requirements import promise

FIRST = Intent(effect_id="w/r/1", run="w/r", n=1, tool="mail.send", args_digest="d1", lease_s=1e12, user_id="ana")
ONCE = {"idempotency_ttl": None, "attempt": 1, "epoch_differs": False}


@promise("store:locked")
async def test_a_store_locked_for_too_long_is_unavailable_and_works_again_afterwards(tmp_path):
    async with open_store(database_url=None, home=tmp_path, busy_timeout_s=0.05) as store:
        holder = sqlite3.connect(tmp_path / "backstay.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable) as refused:
            await store.effects.begin(FIRST, **ONCE)
        assert str(refused.value) == (
            "store: database is locked; another process holds it; find out which one keeps a transaction open"
        )
        assert await store.effects.get("w/r/1") is None
        holder.execute("ROLLBACK")
        assert (await store.effects.begin(FIRST, **ONCE)).kind == "go"
        holder.close()


@promise("store:locked")
async def test_many_who_wait_for_a_locked_store_are_all_told(tmp_path):
    async with open_store(database_url=None, home=tmp_path, busy_timeout_s=0.05) as store:
        holder = sqlite3.connect(tmp_path / "backstay.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        told = await asyncio.gather(*(store.effects.begin(FIRST, **ONCE) for _ in range(20)), return_exceptions=True)
        assert {type(answer) for answer in told} == {StoreUnavailable}
        holder.execute("ROLLBACK")
        holder.close()
        assert (await store.effects.begin(FIRST, **ONCE)).kind == "go"


@promise("store:locked-short")
async def test_a_short_lock_is_waited_for(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        holder = sqlite3.connect(tmp_path / "backstay.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(store.effects.begin(FIRST, **ONCE))
        # A read is answered meanwhile, so the writer has had its turn to start.
        assert await store.effects.get("w/r/1") is None
        assert not waiting.done()
        holder.execute("COMMIT")
        holder.close()
        async with asyncio.timeout(10):
            assert (await waiting).kind == "go"


@promise("store:locked-cancelled")
async def test_a_writer_that_is_cancelled_while_it_waits_does_not_block_the_next(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        holder = sqlite3.connect(tmp_path / "backstay.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        waiting = [asyncio.create_task(store.effects.begin(FIRST, **ONCE)) for _ in range(3)]
        assert await store.effects.get("w/r/1") is None
        for task in waiting:
            task.cancel()
        assert all(
            isinstance(e, asyncio.CancelledError) for e in await asyncio.gather(*waiting, return_exceptions=True)
        )
        holder.execute("COMMIT")
        holder.close()
        async with asyncio.timeout(10):
            begun = await store.effects.begin(FIRST, **ONCE)
        assert begun.kind == "wait"
        assert begun.row.state is EffectState.DISPATCHED


@promise("store:replaced")
async def test_a_database_that_was_replaced_under_a_worker_is_unavailable(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        await store.events.append("w/r", [Event(n=1, name="x", at="2026")])
        await store._database.write(lambda connection: connection.exec_driver_sql("DROP TABLE effects"))
        with pytest.raises(StoreUnavailable) as refused:
            await store.effects.begin(FIRST, **ONCE)
        assert "restart the worker" in str(refused.value)
        assert len(await store.events.of_run("w/r")) == 1


@promise("store:migration-place")
async def test_the_lock_of_a_migration_that_hangs_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("store.database.sqlite.LOCK_WAIT_S", 0.05)
    async with open_store(database_url=None, home=tmp_path) as store, store._database.alone():
        with pytest.raises(StoreUnavailable) as refused:
            async with open_store(database_url=None, home=tmp_path):
                pass
    assert "backstay.db.lock" in str(refused.value)


@promise("store:postgres-away")
async def test_a_postgres_that_was_killed_is_unavailable_and_works_again_when_it_is_back(tmp_path):
    async with (
        open_postgres() as server,
        open_store(database_url=await server.new_database(), home=tmp_path) as store,
    ):
        begun = await store.effects.begin(FIRST, **ONCE)
        # Several connections are open, and each is found dead by itself.
        await asyncio.gather(*(store.effects.get("w/r/1") for _ in range(5)))
        await server.kill()
        settling = asyncio.gather(*(store.effects.get("w/r/1") for _ in range(5)), return_exceptions=True)
        assert {type(answer) for answer in await settling} == {StoreUnavailable}
        with pytest.raises(StoreUnavailable):
            await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED)
        await server.start()
        found = await asyncio.gather(*(store.effects.get("w/r/1") for _ in range(5)))
        assert {row.token for row in found} == {begun.token}
        assert await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED)


@promise("store:postgres-locked")
async def test_a_row_locked_for_too_long_in_postgres_is_unavailable_and_works_again_afterwards(tmp_path, postgres_url):
    async with open_store(database_url=postgres_url, home=tmp_path, busy_timeout_s=0.05) as store:
        begun = await store.effects.begin(FIRST, **ONCE)
        holder = await asyncpg.connect(postgres_url)
        async with holder.transaction():
            await holder.execute("SELECT 1 FROM effects FOR UPDATE")
            settling = (store.effects.settle("w/r/1", begun.token, EffectState.APPLIED) for _ in range(20))
            told = await asyncio.gather(*settling, return_exceptions=True)
            assert {type(answer) for answer in told} == {StoreUnavailable}
            assert "lock" in str(told[0])
        assert await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED)
        await holder.close()


@promise("store:postgres-silent")
async def test_a_process_that_falls_silent_amid_a_transaction_on_postgres_does_not_keep_the_others_waiting(
    tmp_path, postgres_url, monkeypatch
):
    monkeypatch.setattr("store.database.postgres.IDLE_S", 0.3)
    async with (
        open_store(database_url=postgres_url, home=tmp_path) as silent,
        open_store(database_url=postgres_url, home=tmp_path) as other,
    ):
        begun = await silent.effects.begin(FIRST, **ONCE)
        async with silent._database._engine.connect() as connection:
            await connection.exec_driver_sql("SELECT 1 FROM effects FOR UPDATE")
            # It waits for the lock, and well before it would give up the lock is free.
            assert await other.effects.settle("w/r/1", begun.token, EffectState.APPLIED)
            await connection.invalidate()
        assert (await silent.effects.get("w/r/1")).state is EffectState.APPLIED


@promise("store:postgres-silent")
@pytest.mark.thorough
async def test_a_postgres_that_hangs_is_unavailable_and_works_again_when_it_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("store.database.postgres.ANSWER_S", 0.3)
    monkeypatch.setattr("store.database.postgres.CONNECT_S", 0.3)
    async with (
        open_postgres() as server,
        open_store(database_url=await server.new_database(), home=tmp_path) as store,
    ):
        begun = await store.effects.begin(FIRST, **ONCE)
        with server.stopped():
            for _ in range(3):
                with pytest.raises(StoreUnavailable):
                    await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED)
        async with asyncio.timeout(150):
            while True:
                try:
                    assert await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED)
                    break
                except StoreUnavailable:
                    continue


@promise("store:postgres-read-only")
async def test_a_server_that_takes_no_more_writes_is_left_for_the_one_that_does(tmp_path, postgres_url):
    async with open_store(database_url=postgres_url, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, **ONCE)

        def demoted(connection):
            connection.exec_driver_sql("SET default_transaction_read_only = on")

        await asyncio.gather(*(store.effects.get("w/r/1") for _ in range(3)))
        await asyncio.gather(*(store._database.write(demoted) for _ in range(3)))
        with pytest.raises(StoreUnavailable) as told:
            await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED)
        assert "leads to a server that takes writes" in str(told.value)
        # No other connection to the old server is tried after that.
        assert await store.effects.settle("w/r/1", begun.token, EffectState.APPLIED)
        assert (await store.effects.get("w/r/1")).state is EffectState.APPLIED


@promise("store:postgres-read-only")
async def test_a_server_that_takes_no_writes_is_not_connected_to_unless_the_address_says_so(tmp_path, postgres):
    address = await postgres.new_store()
    name = address.partition("@/")[2].partition("?")[0]
    holder = await asyncpg.connect(address)
    await holder.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    await holder.close()
    for fields, said in (("", "None of the hosts match"), ("&target_session_attrs=any", "in a read-only transaction")):
        with pytest.raises(StoreUnavailable, match=f"{said}.*leads to a server that takes writes"):
            async with open_store(database_url=address + fields, home=tmp_path):
                pass


@promise("store:postgres-pooled")
async def test_time_limits_of_a_session_are_set_in_it_and_not_asked_for_by_the_connection(tmp_path, postgres_url):
    names = ("lock_timeout", "idle_in_transaction_session_timeout")
    query = text(
        "SELECT name, setting, source FROM pg_settings WHERE name IN :names OR source = 'client' ORDER BY name"
    )
    query = query.bindparams(bindparam("names", names, expanding=True))
    async with open_store(database_url=postgres_url, home=tmp_path, busy_timeout_s=0.05) as store:
        # A transaction that is rolled back takes nothing of it along.
        with pytest.raises(KeyError):
            await store._database.write(lambda _: {}["gone"])
        found = await store._database.read(lambda connection: connection.execute(query).all())
        asked = []
        engine = store._database._engine.sync_engine
        # The listener of the store is between these two.
        event.listen(
            engine, "connect", lambda made, _: made.driver_connection.add_query_logger(asked.append), insert=True
        )
        event.listen(engine, "connect", lambda made, _: made.driver_connection.remove_query_logger(asked.append))
        await store._database._engine.dispose()
        assert await store.runs.newest(1) == []
    assert len(asked) == 1, asked
    assert {row.name for row in found if row.source == "client"} == {"application_name", "client_encoding"}
    assert [tuple(row) for row in found if row.name in names] == [
        ("idle_in_transaction_session_timeout", "10000", "session"),
        ("lock_timeout", "50", "session"),
    ]


@promise("store:postgres-none")
@pytest.mark.parametrize(
    ("wrong", "said", "kind"),
    [
        ("/postgres?host={folder}", None, SettingsInvalid),
        ("/missing?host={folder}", "missing", SettingsInvalid),
        ("/postgres?host=/nowhere", "reachable", StoreUnavailable),
    ],
)
async def test_a_postgres_that_cannot_be_used_is_named_in_one_line(tmp_path, postgres, wrong, said, kind):
    address = "postgresql://stranger:hidden@" if said is None else "postgresql://postgres:hidden@"
    with pytest.raises(kind) as refused:
        async with open_store(database_url=address + wrong.format(folder=postgres.folder), home=tmp_path):
            pass
    assert (said or "stranger") in str(refused.value)
    assert "hidden" not in str(refused.value)
    assert "\n" not in str(refused.value)
