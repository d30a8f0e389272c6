"""A run that cannot continue as a new execution pauses before the server would end it, and asks."""

import asyncio

import pytest

from tests.e2e.loop.test_endless import executions_of
from tests.e2e.sessions.test_continuing import asked, mail, run_of
from tests.engine import Scripts, assert_no_task_failure, engine, replayer
from tests.requirements import promise
from workflows.context import carrying

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: ask}\nundo: {default: allow}"
STEPS = 12
SENT = [f"n{number}@free.example" for number in range(STEPS)]


@pytest.fixture(autouse=True)
def _states_too_long_to_carry(monkeypatch):
    """Let every state be too long to be carried, and the server's limits be near."""
    for name, limit in {"MOST_EVENTS": 30, "MOST_CARRIED": 10, "LAST_EVENTS": 50, "LATER_EVENTS": 15}.items():
        monkeypatch.setattr(carrying, name, limit)


async def stuck(opened, run):
    """Return the request of a run that has paused, and how many mails it has sent by then."""
    (request,) = await asked(run)
    sent = len(opened.mailbox.sent())
    await asyncio.sleep(1)
    assert len(opened.mailbox.sent()) == sent
    return request, sent


async def settled(opened, run, verdicts):
    """Return the Result of a run whose questions are answered with these verdicts; the last one answers all others."""
    ended, rest = asyncio.ensure_future(run.result()), list(verdicts)
    questions = []
    async with asyncio.timeout(150):
        while not ended.done():
            for request in await run.pending():
                verdict = rest.pop(0) if len(rest) > 1 else rest[0]
                questions.append(request.question)
                await run.decide({"request_id": request.id, "verdict": verdict, "by": "ana"})
            await asyncio.sleep(0.1)
    (history,) = await executions_of(opened, run.id)
    assert_no_task_failure(history)
    await replayer(sandboxed=False).replay_workflow(history)
    assert all("60 % of what the server allows" in question for question in questions)
    return ended.result(), len(questions)


@pytest.fixture
async def opened(temporal, tmp_path):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY) as opened:
        yield opened, run_of(opened, await opened.start(scripts.task(*map(mail, SENT), budget={"max_steps": 30})))


@promise("runs:stuck")
async def test_it_says_why_and_goes_on_each_time_a_person_says_so(opened):
    engine, run = opened
    request, sent = await stuck(engine, run)
    assert 0 < sent < STEPS
    assert "its state is longer than 10 characters" in request.question
    result, questions = await settled(engine, run, ["retry"])
    assert (result.outcome, engine.mailbox.sent()) == ("completed", SENT)
    assert questions > 1


@promise("runs:stuck-rollback")
async def test_when_a_person_ends_it_the_rollback_asks_too_and_goes_on(opened):
    engine, run = opened
    _, sent = await stuck(engine, run)
    result, questions = await settled(engine, run, ["reject", "retry"])
    assert (result.outcome, engine.mailbox.sent()) == ("rolled_back", [])
    assert [undone.effect for undone in result.undone] == list(range(sent, 0, -1))
    assert questions > 1


@promise("runs:stuck-rollback")
@pytest.mark.thorough
async def test_effects_stay_and_are_named_when_a_person_stops_the_rollback(opened):
    engine, run = opened
    _, sent = await stuck(engine, run)
    result, questions = await settled(engine, run, ["reject"])
    assert (result.outcome, questions) == ("rollback_failed", 2)
    left = engine.mailbox.sent()
    assert 0 < len(left) < sent
    parked = result.undone[-1]
    assert (parked.effect, parked.state) == (len(left), "parked")
    assert f"this and the {len(left) - 1} effects before it stay" in parked.detail
