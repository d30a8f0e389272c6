"""After the store was restored from a backup, the inbox shows what waits, though only the runs know that."""

import asyncio
import shutil
import sqlite3
import uuid
from contextlib import asynccontextmanager, closing

import opening
from backstay import connect
from backstay.testing import Reply
from people.notices.delivering import tidying
from people.notices.recovering import Recovery
from tests.engine import Scripts, ended, engine, pending, update
from tests.requirements import promise

POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
undo: {ask: ["mail.recall_email"]}
"""


def mail(to):
    return Reply(calls=[("mail__send_email", {"to": f"{to}@x.example", "subject": "s", "body": "b"})])


async def decide(handle, request_id, verdict="approve"):
    await update(handle, "decide", {"request_id": request_id, "verdict": verdict, "by": "ana"})


async def inbox(store, wanted, *, closed=False):
    """Wait until the open requests, or the closed ones, are as they should be; return the rows."""
    async with asyncio.timeout(100):
        while True:
            rows = {(row.workflow_id, row.request_id): row for row in await store.requests.page(closed=closed)}
            if rows.keys() == wanted:
                return rows
            await asyncio.sleep(0.1)


class Asked:
    """Note which runs are asked; of one of them, a request is decided as soon as it was asked for the first time."""

    def __init__(self, backstay, hasty=None):
        self._backstay, self._hasty, self.names = backstay, hasty, []

    def __getattr__(self, name):
        return getattr(self._backstay, name)

    def run(self, workflow_id):
        self.names.append(workflow_id)
        run = self._backstay.run(workflow_id)
        return run if self._hasty is None or workflow_id != self._hasty.id else Hasty(run, self._hasty)


class Hasty:
    """A run of which a request is decided just after it was asked for the first time."""

    def __init__(self, run, handle):
        self._run, self._handle, self.timeline = run, handle, run.timeline

    async def status(self):
        status = await self._run.status()
        if status.pending:
            await decide(self._handle, "r1", "reject")
        return status

    async def is_open(self, run_id):
        return await self._run.is_open(run_id)


@promise("approvals:restored-inbox")
async def test_after_a_restore_the_inbox_has_what_was_asked_since_the_backup_and_not_what_was_decided(
    temporal, tmp_path
):
    scripts, queue, database = Scripts(), f"queue-{uuid.uuid4()}", tmp_path / "home" / "backstay.db"

    @asynccontextmanager
    async def worker():
        # Runs that go on miss what they have stored since the backup, and are to ask nobody about that here.
        options = {"policy": POLICY, "task_queue": queue, "transient_seconds": 600}
        async with (
            engine(temporal, tmp_path, scripts, **options) as running,
            opening.open_store(running.settings) as store,
            connect(client=temporal, task_queue=queue) as backstay,
        ):
            yield running, store, backstay

    async with worker() as (running, store, _):
        decided = await running.start(scripts.task(mail("first"), mail("second")), f"decided-{queue}")
        waiting = await running.start(scripts.task(mail("third")), f"waiting-{queue}")
        sent = await running.start(scripts.task(mail("fourth")), f"sent-{queue}")
        await pending(sent)
        await decide(sent, "r1")
        await ended(sent)
        before = {(decided.id, "r1"), (waiting.id, "r1")}
        await inbox(store, before)
        await inbox(store, {(sent.id, "r1")}, closed=True)
        with closing(sqlite3.connect(database)) as here, closing(sqlite3.connect(tmp_path / "backup.db")) as there:
            here.backup(there)
            # It was made an hour ago.
            there.execute("UPDATE requests SET changed_at = changed_at - 3600")
            there.commit()

        await decide(decided, "r1")
        later = await running.start(scripts.task(mail("fifth")), f"later-{queue}")
        hasty = await running.start(scripts.task(mail("sixth")), f"hasty-{queue}")
        undoing = await running.undo(sent.id)
        await pending(undoing)
        now = {(name, "r1") for name in (waiting.id, later.id, undoing.id)} | {(decided.id, "r2")}
        await inbox(store, now | {(hasty.id, "r1")})

    for name in (".db", ".db-wal", ".db-shm", ".db-journal"):
        database.with_suffix(name).unlink(missing_ok=True)
    await asyncio.to_thread(shutil.copyfile, tmp_path / "backup.db", database)
    async with opening.open_store(running.settings) as store:
        await store.new_epoch()
        assert {(row.workflow_id, row.request_id) for row in await store.requests.page()} == before

    async with worker() as (running, store, backstay):
        async with tidying(store, Asked(backstay, hasty)):
            open_now = await inbox(store, now)
            closed = await inbox(store, {(run.id, "r1") for run in (decided, sent, hasty)}, closed=True)
        assert "fifth@x.example" in str(open_now[later.id, "r1"].request)
        assert open_now[undoing.id, "r1"].run.startswith(f"{sent.id}/")
        for run, verdict in ((decided, "approve"), (hasty, "reject")):
            row = closed[run.id, "r1"]
            assert (row.state, row.decision.verdict, row.decision.by) == ("decided", verdict, "ana")

        # Another worker that starts asks no run again.
        other = Asked(backstay)
        assert await Recovery(store, other).compare() is False
        assert other.names == []

        await decide(waiting, "r1", "reject")
        await ended(waiting)
        await inbox(store, now - {(waiting.id, "r1")})
        for handle in (decided, later, hasty, undoing):
            await handle.terminate()
