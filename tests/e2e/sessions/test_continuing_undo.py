"""A run that asks people about an undo, or whether to undo, goes on as a new execution: nothing happens twice."""

import asyncio

import pytest

from backstay.testing import Reply
from tests.e2e.sessions.test_continuing import asked, continued, finished, mail, run_of
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
# The review of every plan fails.
PLANS = """
default: {plans: true}
checked:
  plans: true
  review:
    max_corrections: %d
    checks:
      - {name: custom, tool: mail.list_customers, arguments: {limit: 1}, range: {path: result.total, max: 0}}
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


def step(to, **fields):
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": "s", "body": "b"}, **fields}


def propose(*steps):
    return Reply(calls=[("propose_plan", {"plan": {"title": "letters", "steps": list(steps)}})])


async def plan_of(handle):
    """Return how the plan of a run ended, and its steps."""
    shown = await handle.query("plan")
    return shown["state"], shown["reason"], [step["status"] for step in shown["steps"]]


@promise("plans:failed-whole")
@pytest.mark.parametrize(
    ("groups", "state"),
    [(("pair", "pair"), "FAILED"), ((True, False), "ROLLBACK_COMPLETED")],
    ids=["the group of a step", "the transactional steps"],
)
async def test_a_plan_that_fails_is_undone_before_the_run_continues_as_new(temporal, tmp_path, groups, state):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY, profiles=PLANS % 0) as opened:
        first = step("a@free.example", transactional=groups[0])
        fails = step("nobody", transactional=groups[1])
        plan = propose(first, fails, step("never@free.example"))
        handle = await opened.start(scripts.task(plan, mail("b@free.example")))
        run = run_of(opened, handle)
        await recalled_after_a_long_history(run, handle)
        result = await finished(opened, run, executions=2)
        assert result.outcome == "completed", result
        ended = (state, "step_failed", ["rolled_back", "failed", "pending"])
        assert (await plan_of(handle), opened.mailbox.sent()) == (ended, ["b@free.example"])


@promise("plans:failed-whole")
@pytest.mark.parametrize("corrections", [0, 1], ids=["at its end", "at the end of the run"])
async def test_a_plan_that_its_review_finds_bad_is_undone_before_the_run_continues_as_new(
    temporal, tmp_path, corrections
):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY, profiles=PLANS % corrections) as opened:
        plan = propose(step("a@free.example"), step("b@free.example"))
        handle = await opened.start(scripts.task(plan, profile="checked"))
        run = run_of(opened, handle)
        (question,) = await asked(run)
        await run.approve(question.id, by="ana")
        await recalled_after_a_long_history(run, handle)
        (last,) = await asked(run)
        await run.approve(last.id, by="ana")
        result = await finished(opened, run, executions=2)
        assert result.outcome == "completed", result
        assert await plan_of(handle) == ("ROLLBACK_COMPLETED", "review_failed", ["rolled_back"] * 2)
        assert opened.mailbox.sent() == []


@promise("plans:reviewed-once")
async def test_a_plan_is_reviewed_once_though_the_run_continues_as_new_while_people_are_asked_about_it(
    temporal, tmp_path
):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY, profiles=PLANS % 0) as opened:
        task = scripts.task(propose(step("a@free.example")), profile="checked", budget={"max_tool_calls": 2})
        handle = await opened.start(task)
        run = run_of(opened, handle)
        (question,) = await asked(run)
        await continued(handle)
        assert await asked(run) == [question]
        await run.reject(question.id, by="ana")
        result = await finished(opened, run, executions=2)
        assert result.outcome == "completed", result
        assert await plan_of(handle) == ("FAILED", "review_failed", ["success"])
        assert (opened.mailbox.requests("list_customers"), result.usage["tool_calls"]) == (1, 2)
        assert [event.name for event in result.events].count("plan.reviewed") == 1


@promise("plans:failed-whole")
async def test_a_run_is_paused_and_cancelled_while_people_are_asked_about_the_undo_of_its_plan(temporal, tmp_path):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY, profiles=PLANS % 0) as opened:
        plan = propose(step("a@free.example", transactional=True), step("nobody"))
        handle = await opened.start(scripts.task(plan))
        run = run_of(opened, handle)
        (first,) = await asked(run)
        await run.pause("a look first", by="ana")
        await run.resume(by="ana")
        await handle.cancel()
        async with asyncio.timeout(150):
            while first in (requests := await asked(run)):
                await asyncio.sleep(0.1)
        # What is undone at the end of a run goes on in the next execution.
        await continued(handle)
        assert await asked(run) == requests
        await run.approve(requests[0].id, by="ana")
        result = await finished(opened, run, executions=2)
        assert (result.outcome, opened.mailbox.sent()) == ("cancelled", [])
