"""A worker that does not fit harms no run: it is waited out, a person is asked, and a worker that fits goes on."""

import asyncio
import sqlite3
import uuid
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities.retrying import implements
from backstay import calls
from backstay.errors import StoreUnavailable
from backstay.redaction.redactor import Redactor
from backstay.testing import Reply
from tests.engine import Scripts, assert_no_task_failure, engine, pending
from tests.requirements import promise
from tests.sizes import spread
from workflows.dispatch import options

KEY, OTHER = ("0" * 43 + "=", "1" * 42 + "0=")
POLICY = "default: {read_only: allow, write_safe: ask, restricted_write: ask}\n"


def mail(to):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"})])


async def decide(handle, verdict, count=1, **more):
    (request, *_) = await pending(handle, count)
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": verdict, "by": "ana", **more})
    return request


def of_site(temporal, tmp_path, rules):
    """Return how to open a worker of one site, with settings of its own."""
    site = {"task_queue": f"queue-{uuid.uuid4()}", "policy": POLICY, "transient_seconds": 1.5}

    def opened(**settings):
        return engine(temporal, tmp_path, rules, **site, **settings)

    return opened


@promise("workers:transient")
@pytest.mark.parametrize("keys", spread([(OTHER,), ()], 1))
async def test_an_undo_is_not_parked_by_a_worker_that_lacks_the_key(temporal, tmp_path, keys):
    rules = Scripts()
    worker = of_site(temporal, tmp_path, rules)
    async with worker(encryption_keys=(KEY,)) as opened:
        handle = await opened.start(rules.task(mail("a@key.example"), mail("b@key.example")))
        first = await decide(handle, "approve")
        async with asyncio.timeout(150):
            while (await pending(handle))[0]["id"] == first["id"]:
                await asyncio.sleep(0.1)
    async with worker(encryption_keys=keys):
        await decide(handle, "reject", stop=True)
        async with asyncio.timeout(150):
            while (asked := (await pending(handle))[0])["kind"] != "outcome":
                await asyncio.sleep(0.1)
    async with worker(encryption_keys=(KEY,)) as opened:
        await decide(handle, "retry")
        result = await asyncio.wait_for(handle.result(), 150)
        assert opened.mailbox.sent() == []

    assert "BACKSTAY_ENCRYPTION_KEYS" in asked["question"]
    assert (result["outcome"], [undone["state"] for undone in result["undone"]]) == ("rolled_back", ["compensated"])
    assert_no_task_failure(await handle.fetch_history())


@promise("workers:transient-payload")
async def test_a_run_does_not_fail_at_a_worker_with_another_folder_of_payloads(temporal, tmp_path):
    rules = Scripts()
    worker = of_site(temporal, tmp_path, rules)
    async with worker() as opened:
        # What it is told first is too large for the database.
        context = {"notes": "all that is known of them " * 4000}
        handle = await opened.start(rules.task(mail("a@folder.example"), extra_context=context))
        await pending(handle)
    async with worker(blobs=tmp_path / "elsewhere"):
        # The model is told of the refusal, for which what it was told before is needed.
        await decide(handle, "reject")
        async with asyncio.timeout(150):
            while not (asked := [r for r in await handle.query("pending") if r["kind"] == "outcome"]):
                await asyncio.sleep(0.1)
    async with worker():
        await decide(handle, "retry")
        result = await asyncio.wait_for(handle.result(), 150)

    assert "BACKSTAY_BLOBS" in asked[0]["question"]
    assert result["outcome"] == "completed"
    assert_no_task_failure(await handle.fetch_history())


@promise("workers:transient-lost")
async def test_a_lost_worker_is_asked_about_and_the_run_goes_on(temporal, tmp_path, monkeypatch):
    # As it is shipped, a hundred attempts are lost before anybody is asked.
    row = replace(options.TABLE["open_run"], start_to_close=timedelta(seconds=1), retry=options.ONCE)
    monkeypatch.setitem(options.TABLE, "open_run", row)
    rules = Scripts()
    async with of_site(temporal, tmp_path, rules)() as opened:
        with sqlite3.connect(tmp_path / "home" / "backstay.db", isolation_level=None) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            handle = await opened.start(rules.task())
            async with asyncio.timeout(150):
                while not (asked := await handle.query("pending")):
                    await asyncio.sleep(0.1)
            connection.rollback()
        monkeypatch.undo()
        await decide(handle, "retry")
        result = await asyncio.wait_for(handle.result(), 150)

    assert (asked[0]["kind"], "no answer from the worker" in asked[0]["question"]) == ("outcome", True)
    assert result["outcome"] == "completed"


class Failing:
    """An activity that always fails, and tells how its attempts began."""

    def __init__(self, transient_s):
        self.transient_s = transient_s
        self.resources = self
        self.attempts = []
        self.together = nullcontext

    async def redactor_of(self, _run):
        return Redactor(())

    @implements(calls.settle_effect)
    async def settle_effect(self, ask: calls.SettleEffect):
        self.attempts.append(activity.info())
        raise StoreUnavailable("the store is away", retry_after=0.2)


@promise("workers:patience")
async def test_patience_counts_from_the_first_attempt_and_travels_to_the_later_ones(temporal):
    queue, body = f"queue-{uuid.uuid4()}", Failing(1.5)
    started = await temporal.start_activity(
        "settle_effect",
        calls.SettleEffect(run="w/r", store="", effect=1, verdict="look"),
        id=queue,
        task_queue=queue,
        start_to_close_timeout=timedelta(seconds=20),
        heartbeat_timeout=timedelta(seconds=10),
    )
    # Nobody takes it for longer than the patience: that is no failure of it.
    async with asyncio.timeout(150):
        began = (await started.describe()).schedule_time
        while (datetime.now(UTC) - began).total_seconds() < body.transient_s:
            await asyncio.sleep(0.1)
    async with Worker(temporal, task_queue=queue, activities=[body.settle_effect]):
        with pytest.raises(Exception, match="Activity") as failed:
            await asyncio.wait_for(started.result(), 150)

    first, *later = body.attempts
    assert isinstance(failed.value.__cause__, ApplicationError)
    assert len(later) >= 2
    said = {detail["first_attempt"] for info in later for detail in info.heartbeat_details}
    assert said == {first.started_time.isoformat()}
