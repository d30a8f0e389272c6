"""What a block keeps back for its next transaction."""

import asyncio

import pytest

from backstay.errors import StoreUnavailable
from store.opening import open_store
from tests.requirements import promise
from tests.store.test_outbox import RUN, asked
from tests.store.test_transactions import KNOWN


@pytest.fixture
def opened(tmp_path, database_url):
    return lambda: open_store(database_url=database_url, home=tmp_path)


async def notify_later(store, number):
    """Keep a notice back; return what is told of it once it is committed."""
    told = []

    async def then(written):
        told.append(written)

    await store.write_later(lambda connection: store.outbox.write.within(connection, *RUN, [asked(number)]), then)
    return told


async def numbers(store):
    return sorted(row.request_id for row in await store.requests.page())


@promise("store:waiting")
async def test_what_waits_is_written_with_the_next_transaction_or_at_the_end(opened):
    async with opened() as store, opened() as reader:
        async with store.together():
            first = await notify_later(store, 1)
            assert (await numbers(reader), first) == ([], [])
            await store.runs.opened(run="task-1/first", **KNOWN)
            assert (await numbers(reader), len(first)) == (["r1"], 1)
            second = await notify_later(store, 2)
            assert (await numbers(reader), second) == (["r1"], [])
        assert (await numbers(reader), len(second)) == (["r1", "r2"], 1)
        # Where nothing is kept back, later is now.
        assert len(await notify_later(store, 3)) == 1


@promise("store:waiting")
async def test_a_block_that_fails_writes_nothing_more(opened):
    async with opened() as store:

        async def fail():
            async with store.together():
                await notify_later(store, 1)
                raise KeyError("power")

        with pytest.raises(KeyError):
            await fail()
        assert await numbers(store) == []


@promise("store:waiting")
async def test_what_waits_survives_a_transaction_that_fails_and_is_written_once(opened):
    async with opened() as store:
        async with store.together():
            told = await notify_later(store, 1)

            def fail(_connection):
                raise StoreUnavailable("power")

            with pytest.raises(StoreUnavailable):
                await store.write(fail)
            assert (await numbers(store), told) == ([], [])
            runs = ("task-1/first", "task-1/other")
            await asyncio.gather(*(store.runs.opened(**KNOWN, run=run) for run in runs))
            assert (await numbers(store), len(told)) == (["r1"], 1)
        assert (len(await store.runs.newest(9)), len(told)) == (2, 1)


@promise("store:waiting")
async def test_a_task_that_outlives_its_block_writes_at_once(opened):
    async with opened() as store:
        over = asyncio.Event()

        async def outlive():
            await over.wait()
            return await notify_later(store, 1)

        async with store.together():
            outliving = asyncio.create_task(outlive())
        over.set()
        assert len(await outliving) == 1
        assert await numbers(store) == ["r1"]
