"""Whose schedules start runs: those of people who proved to have added them, as long as the policy lets them."""

import pytest
from temporalio.client import WorkflowFailureError

from backstay.client.schedules import Schedules
from backstay.errors import NotVerified, SettingsInvalid, TaskInvalid
from backstay.task.standing import start_id
from store.standing.starts import StartReplayed
from tests.engine import update
from tests.requirements import promise
from tests.schedules.office import ANA, KEY, POLICY, open_office, some
from tests.signing import signed

ASKED = {
    "kind": "schedule",
    "by": ANA,
    "times": {"every": 3600},
    "task": {"text": "t"},
    "per_day": {"max_llm_cost_usd": 1},
}
FREE = {"to": "a@free.example", "subject": "x"}
NAMED = POLICY + "groups: {'@desk': [ana@example.com, bo@example.com]}\nscheduling: {people: ['@desk']}\n"


@promise("schedules:proof")
async def test_a_schedule_is_added_with_proof_only(office):
    name = some("proof")
    with pytest.raises(SettingsInvalid, match="BACKSTAY_APPROVER_KEY: required to sign"):
        await office.keeping.add(ASKED | {"name": name}, None)
    forged = f"2.9999999999.{'0' * 32}.{'0' * 64}"
    with pytest.raises(NotVerified):
        await office.keeping.add(ASKED | {"name": name, "proof": forged}, KEY.encode())
    assert await office.store.standing.get("schedule", name) is None
    await office.keeping.add(ASKED | {"name": name}, KEY.encode())
    kept = await office.store.standing.get("schedule", name)
    # The proof was for this schedule, once.
    body = kept.standing.model_dump(mode="json", exclude_unset=True)
    await office.keeping.remove("schedule", name)
    with pytest.raises(NotVerified, match="used already"):
        await office.keeping.add(body, KEY.encode())
    with pytest.raises(NotVerified):
        await office.keeping.add(body | {"name": some("other")}, KEY.encode())


@promise("schedules:right")
async def test_a_schedule_pauses_at_the_next_start_after_its_author_lost_the_right(temporal, tmp_path):
    name = some("leaver")
    async with open_office(temporal, tmp_path, policy=NAMED) as office:
        await office.schedule(name, every=1)
        with pytest.raises(TaskInvalid, match=r"by: cy@example.com may add no schedules"):
            await office.schedule(some("no"), by="cy@example.com", every=1)
        await office.until(name, lambda row: any(start.told == "completed" for start in row.last))
        queue = office.engine.settings.task_queue
        await office.keeping.pause("schedule", name, "while workers are replaced")
    without = NAMED.replace("ana@example.com, ", "")
    async with open_office(temporal, tmp_path, policy=without, task_queue=queue) as office:
        with pytest.raises(TaskInvalid, match=r"is of ana@example.com, who may have no schedules"):
            await office.keeping.resume("schedule", name)
        await office.store.standing.pause("schedule", name, "")
        await office.keeping.schedules.resume(name)
        row = await office.until(name, lambda row: row.paused and row.last[0].state == "refused")
        assert "ana@example.com may start no runs by schedules and triggers any more" in row.paused
        assert (await office.keeping.schedules.times(name)).paused
        with pytest.raises(TaskInvalid, match="is paused"):
            await office.keeping.run_now(name)
        await office.keeping.remove("schedule", name)


@promise("schedules:author-not-approver")
async def test_nobody_approves_a_run_of_their_own_schedule(temporal, tmp_path):
    policy = 'ask: [{tool: "mail.send_email", approvers: [ana@example.com, bo@example.com], no_self_approval: true}]\n'
    async with open_office(temporal, tmp_path, policy=policy) as office:
        await office.trigger("own")
        answer = (await office.send("own", {"to": "a@x.example", "subject": "s"}, "e1")).json()
        handle = await office.asking(answer["workflow_id"])
        yes = {"request_id": "r1", "verdict": "approve"}
        with pytest.raises(Exception) as refused:
            await update(handle, "decide", await signed(handle, yes | {"by": ANA}, key=KEY))
        assert "own" in str(refused.value.cause)
        await update(handle, "decide", await signed(handle, yes | {"by": "bo@example.com"}, key=KEY))
        await office.until("own", lambda row: row.last[0].told == "completed")


@promise("schedules:truth-in-store")
async def test_who_reaches_temporal_only_can_start_no_other_task_and_no_event(office):
    queue = office.engine.settings.task_queue
    await office.trigger(name := some("real"))
    for ask in ({"kind": "trigger", "name": name}, {"kind": "schedule", "name": some("none")}):
        told = await office.engine.client.execute_workflow("StartRun", ask, id=some("start-x"), task_queue=queue)
        assert set(told) == {"refused"}
    assert (await office.listed(name)).runs == 0


@pytest.fixture
def unstarted(office, monkeypatch):
    """Send an event whose page dies before it starts the run; return the id of its start."""

    async def unstarted(name):
        with monkeypatch.context() as dead:

            async def dies(*_):
                raise ConnectionError

            dead.setattr(Schedules, "start", dies)
            assert (await office.send(name, FREE, "e1")).status_code == 500
        return start_id(office.engine.settings.task_queue, "trigger", name, "e1")

    return unstarted


@promise("schedules:removed-events")
async def test_what_a_trigger_was_sent_before_it_was_removed_starts_nothing_of_whoever_takes_its_name(
    office, unstarted
):
    await office.trigger(name := some("mine"))
    start, queue = await unstarted(name), office.engine.settings.task_queue
    before = await office.store.standing.get("trigger", name)
    await office.keeping.remove("trigger", name)
    await office.trigger(name, by="bo@example.com")
    ask = {"kind": "trigger", "name": name}
    told = await office.engine.client.execute_workflow("StartRun", ask, id=start, task_queue=queue)
    assert told == {"refused": "the trigger was removed"}
    assert (await office.send(name, FREE, "e1")).json()["state"] == "refused"
    # A request that was believed while the key still held.
    late = {"event": "late", "signature": "s", "given": FREE}
    with pytest.raises(StartReplayed, match="removed"):
        await office.store.starts.accept(f"{start}-late", before.standing, **late)
    assert (await office.listed(name)).runs == 0


@promise("schedules:own-events")
async def test_who_reaches_temporal_only_cannot_have_another_definition_take_what_a_trigger_was_sent(office, unstarted):
    await office.trigger(name := some("mine"))
    await office.trigger(other := some("other"), by="bo@example.com")
    await office.schedule(third := some("third"), cron="0 7 1 1 *")
    start, queue = await unstarted(name), office.engine.settings.task_queue
    for kind, taker in (("trigger", other), ("schedule", third)):
        ask = {"kind": kind, "name": taker}
        with pytest.raises(WorkflowFailureError) as refused:
            await office.engine.client.execute_workflow("StartRun", ask, id=start, task_queue=queue)
        assert f"belongs to the trigger {name}" in str(refused.value.cause)
        assert (await office.listed(taker)).runs == 0
    await office.keeping.remove("schedule", third)
    row = await office.listed(name)
    assert (row.runs, row.last[0].state) == (0, "accepted")
