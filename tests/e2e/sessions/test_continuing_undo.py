"""An undo amid a run that asks people: no new execution begins before it is done, and nothing happens twice."""

import asyncio

import pytest

from tests.e2e.sessions.test_continuing import asked, finished, mail, run_of
from tests.e2e.subruns.family import PROFILES, begun, delegate
from tests.engine import Scripts, engine
from tests.requirements import promise
from workflows.context import carrying

POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: ask}
ask: [{tool: "mail.send_email", when: {to: {ends_with: "@ask.example"}}}]
allow: ["engine.delegate", "mail.send_email"]
undo: {ask: [{tool: "mail.recall_email"}]}
"""


@pytest.fixture(autouse=True)
def _every_signal_counts(monkeypatch):
    """Let each signal make the history long, so that a test decides when a run would continue as a new execution."""
    monkeypatch.setattr(carrying, "MOST_SIGNALS", 0)


async def recalled_after_a_long_history(run, handle):
    """Make the history long while people are asked whether a mail is recalled, then have it recalled."""
    (request,) = await asked(run)
    assert request.question.startswith("May the run undo an effect")
    before = (await handle.describe()).run_id
    await handle.signal("approval", "a word that makes the history long")
    await asyncio.sleep(2)
    assert ((await handle.describe()).run_id, await asked(run)) == (before, [request])
    await run.approve(request.id, by="ana")


@promise("subruns:cancelled-once")
async def test_sub_runs_are_not_started_again_while_people_are_asked_about_the_undo_of_one(temporal, tmp_path):
    scripts, told = Scripts(), []
    async with engine(temporal, tmp_path, scripts, policy=POLICY, profiles=PROFILES) as opened:
        waiting = scripts.task(mail("a@free.example"), mail("never@ask.example"))
        other = scripts.task(mail("b@free.example"))

        def looks(talk):
            told.extend(talk.answers("delegate"))
            return mail("c@free.example")

        handle = await opened.start(scripts.task(delegate(waiting, other), looks))
        run, names = run_of(opened, handle), await begun(handle, 2)
        children = [opened.client.get_workflow_handle(name) for name in names]
        await asyncio.wait_for(children[1].result(), 150)
        await asked(run_of(opened, children[0]))
        await children[0].cancel()
        await recalled_after_a_long_history(run, handle)
        # Once that is done, the run continues as a new execution before it asks its model.
        result = await finished(opened, run, executions=2)
        assert result.outcome == "completed", result
        assert ["error" in answer for answer in told] == [True, False]
        assert opened.mailbox.requests("send_email") == 3
        assert sorted(opened.mailbox.sent()) == ["b@free.example", "c@free.example"]
