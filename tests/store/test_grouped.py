"""Writes of one process that come at the same time share a transaction on SQLite."""

import asyncio
import sqlite3

import pytest
from sqlalchemy import event, insert, update

from backstay.errors import StoreUnavailable
from store.database.schema import ledger_heads, ledger_rows
from store.opening import open_store
from tests.ledger.recorded import event as an_event
from tests.requirements import promise
from tests.store.test_transactions import KNOWN

MANY = 20


def begins(database):
    """Count the write transactions of a store's own database."""
    begun = []

    @event.listens_for(database._engine, "before_cursor_execute")
    def note(_connection, _cursor, statement, *_):
        if statement.startswith("BEGIN IMMEDIATE"):
            begun.append(statement)

    return begun


def opening(store, name):
    return lambda connection: store.runs.opened.within(connection, run=f"task-1/{name}", **KNOWN)


def recorded(folder):
    with sqlite3.connect(folder / "backstay.db") as reader:
        return {row[0] for row in reader.execute("SELECT run FROM runs")}


@promise("store:grouped")
async def test_writes_at_the_same_time_share_a_transaction_and_each_returns_once_it_is_committed(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        begun = begins(store._database)

        async def written(number):
            await store.write(opening(store, number))
            assert f"task-1/{number}" in await asyncio.to_thread(recorded, tmp_path)

        await asyncio.gather(*map(written, range(MANY)))
        assert len(begun) < MANY / 2


@promise("store:grouped")
async def test_a_write_that_fails_fails_no_other_of_its_transaction(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:

        def fail(connection):
            opening(store, "failed")(connection)
            raise KeyError("power")

        works = [fail if number % 5 == 3 else opening(store, number) for number in range(MANY)]
        answers = await asyncio.gather(*map(store.write, works), return_exceptions=True)
    assert [type(answer) for answer in answers] == [KeyError if n % 5 == 3 else type(None) for n in range(MANY)]
    assert recorded(tmp_path) == {f"task-1/{number}" for number in range(MANY) if number % 5 != 3}


@promise("store:grouped")
async def test_where_a_transaction_cannot_be_committed_none_of_its_writes_returns(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        full = []

        @event.listens_for(store._database._engine, "commit")
        def fail(_connection):
            if full:
                raise OSError(28, "No space left on device")

        full.append(True)
        works = [opening(store, number) for number in range(MANY)]
        answers = await asyncio.gather(*map(store.write, works), return_exceptions=True)
        assert {type(answer) for answer in answers} == {StoreUnavailable}
        assert recorded(tmp_path) == set()
        full.clear()
        await asyncio.gather(*map(store.write, works))
    assert len(recorded(tmp_path)) == MANY


@promise("store:grouped")
async def test_a_store_that_is_closed_refuses_what_still_waits(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        pass
    async with asyncio.timeout(5):
        with pytest.raises(StoreUnavailable):
            await store.write(opening(store, 1))


SALT = update(ledger_heads).where(ledger_heads.c.run == "task-1/7").values(salt="no hexadecimal digits")
NEXT = insert(ledger_rows).values(run="task-1/7", n=2, at="", kind="event", name="x", body="{}", digest="", hash="")


@promise("store:grouped")
@pytest.mark.parametrize("damage", [SALT, NEXT], ids=["its key of digests was changed", "its next row is there"])
async def test_a_run_whose_ledger_cannot_go_on_fails_no_other_of_its_transaction(tmp_path, damage):
    runs = [f"task-1/{number}" for number in range(MANY)]
    async with open_store(database_url=None, home=tmp_path) as store:
        await asyncio.gather(*(store.events.append(run, [an_event(1)]) for run in runs))
        await store.write(lambda connection: connection.execute(damage))
    # Another process, such as a worker after its restart, knows none of the chains.
    async with open_store(database_url=None, home=tmp_path) as store:
        begun = begins(store._database)
        adding = (store.events.append(run, [an_event(2)]) for run in runs)
        answers = dict(zip(runs, await asyncio.gather(*adding, return_exceptions=True), strict=True))
        assert len(begun) < MANY / 2
        assert isinstance(answers.pop("task-1/7"), StoreUnavailable)
        assert {type(answer).__name__ for answer in answers.values()} == {"WrittenEvents"}
        for run in runs:
            known = [found.n for found in await store.events.of_run(run)]
            (chain,) = [chain async for chain in store.chains.read([run])]
            assert len(known) == chain.head.n == (1 if run == "task-1/7" else 2)
