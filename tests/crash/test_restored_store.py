"""A store restored from an old copy: what it has forgotten is asked about, and not sent again."""

import asyncio
import shutil
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tests.cli.commands import forked
from tests.crash.case import open_case
from tests.crash.person import Person
from tests.crash.script import MAILS
from tests.crash.temporal_server import client_of, server
from tests.ports import own_port
from tests.requirements import promise

WITHOUT_CHECK = {"safety": "write_safe", "idempotent": False}


@promise("store:retention-restored")
async def test_after_a_restore_a_send_that_the_store_forgot_is_asked_about(temporal, nursery, tmp_path):
    async with open_case(temporal, nursery, tmp_path, shape="plan", declared=WITHOUT_CHECK) as case:
        home, backup = tmp_path / "home", tmp_path / "backup"
        doomed = await case.worker("before:call_tool.send:1")
        driving = asyncio.create_task(case.drive())
        assert await asyncio.wait_for(asyncio.shield(doomed.died), 150) == -9
        await asyncio.to_thread(shutil.copytree, home, backup)
        doomed = await case.worker("after:provider.request.send:1")
        assert await asyncio.wait_for(asyncio.shield(doomed.died), 150) == -9
        assert case.mailbox.requests("send_email") == 1

        await asyncio.to_thread(shutil.rmtree, home)
        await asyncio.to_thread(shutil.copytree, backup, home)
        arguments = ("store", "new-epoch", "--yes")
        done = await forked(nursery, *arguments, environment=case.environment, folder=tmp_path)
        assert (done.code, " -> " in done.out) == (0, True), done.err
        await case.worker()
        ended = await driving

        await case.check(ended)
        asked = [request for request in case.person.asked.values() if request["kind"] == "outcome"]
        # On a busy machine a later send may need a second attempt, about which is asked, too.
        assert MAILS[0]["to"] in {request["calls"][0]["arguments"]["to"] for request in asked}
        assert case.mailbox.requests("send_email") == len(MAILS)


@asynccontextmanager
async def restarted(port, database):
    """Start a Temporal server on what it has kept, and kill it afterwards."""
    async with server(port, database):
        await client_of(port)
        yield


@promise("store:retention-restored-both")
@pytest.mark.parametrize("backed_up", ["before:call_tool.read:1", "before:open_run:1"])
@pytest.mark.timeout(400)
async def test_after_a_restore_of_temporal_too_a_send_that_both_forgot_is_asked_about(nursery, tmp_path, backed_up):
    port, kept, backup = own_port(), tmp_path / "kept", tmp_path / "backup"
    await asyncio.to_thread(kept.mkdir)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(server(port, kept / "temporal.db"))
        places: dict[str, Any] = {"BACKSTAY_HOME": str(kept / "home")}
        opened = open_case(await client_of(port), nursery, tmp_path, shape="plan", declared=WITHOUT_CHECK, **places)
        case = await stack.enter_async_context(opened)
        doomed = await case.worker(backed_up)
        driving = asyncio.create_task(case.drive())
        assert await asyncio.wait_for(asyncio.shield(doomed.died), 150) == -9
        first.kill()
        await first.wait()
        await asyncio.to_thread(shutil.copytree, kept, backup)
        async with restarted(port, kept / "temporal.db"):
            doomed = await case.worker("after:provider.request.send:1")
            assert await asyncio.wait_for(asyncio.shield(doomed.died), 150) == -9
        assert case.mailbox.requests("send_email") == 1

        await asyncio.to_thread(shutil.rmtree, kept)
        await asyncio.to_thread(shutil.copytree, backup, kept)
        arguments = ("store", "new-epoch", "--temporal-restored", "--yes")
        done = await forked(nursery, *arguments, environment=case.environment, folder=tmp_path)
        assert (done.code, " -> " in done.out) == (0, True), done.err
        async with restarted(port, kept / "temporal.db"):
            await case.worker()
            await case.check(await driving)
            asked = [request for request in case.person.asked.values() if request["kind"] == "outcome"]
            assert asked[0]["calls"][0]["arguments"]["to"] == MAILS[0]["to"]
            assert case.mailbox.requests("send_email") == len(MAILS)

            later = Person(case.mailbox)
            assert (await later.attend(await case.start()))["outcome"] == "completed"
            assert [request for request in later.asked.values() if request["kind"] == "outcome"] == []
            assert case.mailbox.requests("send_email") == 2 * len(MAILS)
