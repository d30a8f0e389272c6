"""A store restored from an old copy: what it has forgotten is asked about, and not sent again."""

import asyncio
import shutil

from tests.cli.commands import forked
from tests.crash.case import open_case
from tests.crash.script import MAILS
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
        (question,) = [request for request in case.person.asked.values() if request["kind"] == "outcome"]
        assert question["calls"][0]["arguments"]["to"] == MAILS[0]["to"]
        assert case.mailbox.requests("send_email") == len(MAILS)
