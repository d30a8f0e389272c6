"""A run that continues as a new execution while a decision is looked at: the decision counts there, and once."""

import asyncio

import pytest
from temporalio.api.enums.v1 import EventType

from backstay.testing import Reply
from store.runs.decisions import Decisions
from tests import signing
from tests.e2e.sessions.test_continuing import ANA, KEY, POLICY, asked, continued, finished, mail, run_of
from tests.engine import Scripts, engine
from tests.requirements import promise
from workflows.context import carrying

JUNK = "a word that makes the history long"
EDIT = {"verdict": "modify", "calls": {"0": {"verdict": "modify", "arguments": {"to": "b@one.example"}}}, "by": ANA}


@pytest.fixture(autouse=True)
def _every_signal_counts(monkeypatch):
    """Let each signal make the history long, so that a test decides when a run continues as a new execution."""
    monkeypatch.setattr(carrying, "MOST_SIGNALS", 0)


class Looking:
    """Let the worker look at a proof for as long as a test wants."""

    def __init__(self, monkeypatch):
        self.begun, self.free = {}, {}
        prove = Decisions.prove

        async def slowly(decisions, key, binding, payload, **more):
            proof = payload["proof"]
            if proof in self.free:
                self.begun[proof].set()
                await self.free[proof].wait()
            return await prove(decisions, key, binding, payload, **more)

        monkeypatch.setattr(Decisions, "prove", slowly)

    def hold(self, payload):
        self.begun[payload["proof"]], self.free[payload["proof"]] = asyncio.Event(), asyncio.Event()
        return self.begun[payload["proof"]], self.free[payload["proof"]]


@promise("runs:execution-looked-at")
async def test_an_approval_by_signal_that_is_looked_at_as_the_run_continues_counts(temporal, tmp_path, monkeypatch):
    monkeypatch.setattr(carrying, "URGENT_SIGNALS", 0)
    looking, scripts = Looking(monkeypatch), Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY, approver_key=KEY) as opened:
        handle = await opened.start(scripts.task(mail("a@one.example")))
        run = run_of(opened, handle, KEY)
        (request,) = await asked(run)
        said = {"request_id": request.id, "verdict": "approve", "by": ANA}
        yes = await signing.signed(handle, said, update="approval", key=KEY)
        forged = {**yes, "proof": yes["proof"][:-4] + "0000"}
        (forged_begun, forged_free), (begun, free) = looking.hold(forged), looking.hold(yes)
        async with asyncio.timeout(100):
            await handle.signal("approval", forged)
            await forged_begun.wait()
            # It is held back, since the run is about to continue, and looked at in the next execution.
            await handle.signal("approval", yes)
            forged_free.set()
            await begun.wait()
            await handle.signal("approval", JUNK)
            await asyncio.sleep(2)
            free.set()
            result = await run.result()
        assert (result.outcome, opened.mailbox.sent()) == ("completed", ["a@one.example"])
        assert [event.name for event in result.events].count("approval.decided") == 1


async def accepted(handle):
    """Wait until the execution under way has accepted an update."""
    async with asyncio.timeout(60):
        while EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED not in [
            event.event_type async for event in handle.fetch_history_events()
        ]:
            await asyncio.sleep(0.1)


@promise("runs:execution-edit")
@pytest.mark.parametrize("by_signal", [True, False])
async def test_an_edit_of_what_a_paused_program_asks_about_is_accepted_in_a_later_execution(
    temporal, tmp_path, sandbox, by_signal
):
    scripts, source = Scripts(), 'return await mail.send_email(to="a@one.example", subject="s", body="b")'
    async with engine(temporal, tmp_path, scripts, policy=POLICY, approver_key=KEY, sandbox=sandbox) as opened:
        handle = await opened.start(scripts.task(Reply(calls=[("run_program", {"code": source})])))
        run = run_of(opened, handle, KEY)
        (request,) = await asked(run)
        await run.pause("a look first", by=ANA)
        await continued(handle)
        said = {"request_id": request.id, **EDIT}
        if by_signal:
            before = (await handle.describe()).run_id
            await handle.signal("approval", await signing.signed(handle, said, update="approval", key=KEY))
            async with asyncio.timeout(60):
                while (await handle.describe()).run_id == before:
                    await asyncio.sleep(0.1)
        else:
            deciding = asyncio.create_task(run.decide(said))
            await accepted(handle)
            await asyncio.wait_for(continued(handle), 60)
        await run.resume(by=ANA)
        result = await finished(opened, run, executions=3)
        assert (result.outcome, opened.mailbox.sent()) == ("completed", ["b@one.example"])
        if not by_signal:
            assert (await deciding)["verdict"] == "modify"
