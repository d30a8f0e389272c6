"""Operations of a store in transactions: each in its own, or several in one."""

import asyncio

import asyncpg
import pytest

from backstay.effects.effect import EffectState
from store.opening import open_store
from store.runs.runs import Runs
from tests.requirements import promise
from tests.store.test_begin import FIRST, ONCE
from tests.store.test_outbox import RUN, asked

KNOWN = {"workflow_id": "task-1", "workflow_run_id": "first", "user_id": "ana", "text": "a task", "opened": {}}


@pytest.fixture
def opened(tmp_path, database_url):
    return lambda: open_store(database_url=database_url, home=tmp_path)


@promise("store:transactions")
async def test_several_operations_in_one_transaction_are_kept_together_or_not_at_all(opened):
    async with opened() as store:

        def work(connection, *, fails):
            store.runs.opened.within(connection, run="task-1/first", **KNOWN)
            store.decisions.append.within(connection, "task-1/first", [])
            notices = store.outbox.write.within(connection, "task-1/first", "task-1", "first", [asked(1)])
            # What was written before is seen within the transaction.
            assert store.requests.count_open.within(connection) == 1
            if fails:
                raise KeyError("power")
            return notices

        with pytest.raises(KeyError):
            await store.write(lambda connection: work(connection, fails=True))
        assert (await store.runs.newest(9), await store.requests.count_open()) == ([], 0)
        (notice,) = await store.write(lambda connection: work(connection, fails=False))
        (run,) = await store.runs.newest(9)
        assert (run.run, notice.workflow_id, await store.requests.count_open()) == ("task-1/first", "task-1", 1)


@promise("store:postgres-isolation")
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_writers_wait_for_each_other_whatever_the_database_does_by_default(tmp_path, postgres, level):
    address = await postgres.new_store()
    name = address.partition("@/")[2].partition("?")[0]
    holder = await asyncpg.connect(address)
    await holder.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{level}'")
    async with open_store(database_url=address, home=tmp_path) as store:
        begun = await store.effects.begin(FIRST, attempt=1, **ONCE)
        async with holder.transaction():
            await holder.execute("UPDATE effects SET step = step")
            settling = asyncio.create_task(store.effects.settle(FIRST.effect_id, begun.token, EffectState.APPLIED))
            async with asyncio.timeout(60):
                while not await holder.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                    await asyncio.sleep(0.01)
        assert await settling
    await holder.close()


@promise("store:postgres-isolation")
async def test_what_does_not_fit_to_another_transaction_is_tried_again(tmp_path, postgres_url):
    tried = []

    def work(connection):
        tried.append(store.requests.count_open.within(connection))
        if len(tried) < 3:
            connection.exec_driver_sql("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$")
        return "done"

    async with open_store(database_url=postgres_url, home=tmp_path) as store:
        assert (await store.write(work), tried) == ("done", [0, 0, 0])


@promise("store:transactions")
async def test_who_waits_for_news_is_told_once_they_are_committed(opened):
    async with opened() as store:
        seen = store.outbox.written
        notices = await store.write(lambda connection: store.outbox.write.within(connection, *RUN, [asked(1)]))
        assert store.outbox.written == seen
        store.outbox.tell_here(notices)
        assert store.outbox.written == seen + 1
        await store.outbox.write(*RUN, [asked(2)])
        assert store.outbox.written == seen + 2
        # A repeat is no news.
        await store.outbox.write(*RUN, [asked(2)])
        assert store.outbox.written == seen + 2


@promise("store:transactions")
async def test_what_has_nothing_to_do_opens_no_transaction(tmp_path, monkeypatch):
    async with open_store(database_url=None, home=tmp_path) as store:

        async def refused(_work):
            raise AssertionError("a transaction was opened")

        monkeypatch.setattr(store._database, "write", refused)
        monkeypatch.setattr(store._database, "read", refused)
        assert await store.decisions.append("task-1/first", []) is None
        assert await store.decisions.append("task-1/first", new=[]) is None
        assert await store.events.append("task-1/first", [], numbered=[]) is None
        assert await store.plans.end("task-1/first", []) is None
        assert await store.outbox.write(*RUN, []) == []
        assert await store.outbox.claim([]) == []
        assert await store.requests.count_alike([]) == {}
        assert await store.looks.people([]) == {}
        assert await store.secrets.reveal("task-1/first", []) == {}
        with pytest.raises(AssertionError):
            await store.events.append("task-1/first", [], ["a draft"])


@promise("store:transactions")
async def test_a_dry_run_waits_for_no_writer(tmp_path, monkeypatch):
    async with open_store(database_url=None, home=tmp_path) as store:

        async def refused(_work):
            raise AssertionError("it writes")

        monkeypatch.setattr(store._database, "write", refused)
        assert await store.requests.forget(1.0, dry_run=True) == 0
        with pytest.raises(AssertionError):
            await store.requests.forget(1.0)


@promise("store:transactions")
async def test_an_operation_is_found_on_its_class_and_can_be_replaced_there(tmp_path, monkeypatch):
    async with open_store(database_url=None, home=tmp_path) as store:
        original, called = Runs.opened, []

        async def watched(*arguments, **named):
            called.append(named["run"])
            return await original(*arguments, **named)

        with monkeypatch.context() as patched:
            patched.setattr(Runs, "opened", watched)
            await store.runs.opened(run="task-1/first", **KNOWN)
        await store.runs.opened(run="task-1/first", **KNOWN)
        assert (Runs.opened, called) == (original, ["task-1/first"])
        assert [row.run for row in await store.runs.newest(9)] == ["task-1/first"]
