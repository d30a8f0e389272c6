"""Faults around the store and the run's own record: waited out, asked about, never sent twice."""

import asyncio
import sqlite3
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.testing import WorkflowEnvironment

from backstay.client.connecting import DATA_CONVERTER
from backstay.testing import Reply
from tests.e2e.labelled import DONE, Labelled
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import assert_no_task_failure, engine, pending, reset
from tests.requirements import promise

BINARY = str(Path(sys.executable).parent / "temporal")
ASKING = "default: {read_only: allow, write_safe: ask, restricted_write: ask}\n"
DENYING = "deny: ['desk.*']\n"


def send(body):
    return Reply(calls=[("desk__send", {"body": body})])


def scripts():
    return Labelled(
        locked=[send("one"), DONE],
        stores=[send("two"), DONE],
        reset=[send("same"), send("same"), DONE],
        other=[send("first"), send("second"), DONE],
        policy=[send("three"), DONE],
        quick=[DONE],
    )


def desk_in(folder):
    tools, answers = [reads("look"), writes("send")], {"send": {"data": {"sent": True}}, "look": {"data": {}}}
    return ScriptedServer(folder / "desk.json", tools, answers)


@asynccontextmanager
async def office(client, folder, policy=ASKING, rules=None, **settings):
    desk = desk_in(folder)
    options = {"toolbox": toolbox_of_servers(folder, desk=desk), "transient_seconds": 3, **settings}
    async with engine(client, folder, rules or scripts(), policy=policy, **options) as opened:
        yield opened, desk


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with office(temporal, tmp_path_factory.mktemp("store")) as opened:
        yield opened


async def decide(handle, verdict="approve", seen=()):
    async with asyncio.timeout(150):
        while not (found := [request for request in await handle.query("pending") if request["id"] not in seen]):
            await asyncio.sleep(0.1)
    request = found[0]
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": verdict, "by": "ana"})
    return request


async def ended(handle):
    result = await handle.result()
    assert_no_task_failure(await handle.fetch_history())
    return result


@asynccontextmanager
async def locked(opened):
    """Hold the database as a foreign process does, until the block ends."""
    connection = sqlite3.connect(opened.settings.home / "backstay.db", isolation_level=None, timeout=10)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        connection.rollback()
        connection.close()


async def failing(handle, name):
    """Wait until an activity of this name has failed at least once and is tried again."""
    async with asyncio.timeout(150):
        while True:
            described = (await handle.describe()).raw_description
            if any(
                activity.activity_type.name == name and activity.attempt > 1
                for activity in described.pending_activities
            ):
                return
            await asyncio.sleep(0.1)


@promise("recovery:store-locked")
@pytest.mark.thorough
async def test_a_store_that_is_locked_for_a_while_is_waited_for(temporal, tmp_path):
    async with office(temporal, tmp_path, transient_seconds=60) as (opened, desk):
        handle = await opened.start("<locked>")
        (request,) = await pending(handle)
        async with locked(opened):
            approval = {"request_id": request["id"], "verdict": "approve", "by": "ana"}
            await handle.execute_update("decide", approval)
            await failing(handle, "call_tool")
        assert (await ended(handle))["outcome"] == "completed"
    assert len(desk.calls("send")) == 1


@promise("recovery:store-locked")
@pytest.mark.thorough
async def test_a_store_that_stays_locked_is_asked_about_and_the_run_goes_on(shared):
    opened, desk = shared
    before = len(desk.calls("send"))
    handle = await opened.start("<locked>")
    first = await decide_while_locked(handle, opened)
    # Whichever activity waits in front says that another process holds it; the one behind it gets no turn.
    locked_said = "database is locked; another process holds it"
    no_turn_said = "no turn to write within 5 s; the database is locked or overloaded"
    assert any(f"call_tool: store: {said}" in first["question"] for said in (locked_said, no_turn_said))
    assert first["options"] == ["retry", "reject"]
    await handle.execute_update("decide", {"request_id": first["id"], "verdict": "retry", "by": "ana"})
    assert (await ended(handle))["outcome"] == "completed"
    assert len(desk.calls("send")) == before + 1


async def decide_while_locked(handle, opened):
    (request,) = await pending(handle)
    async with locked(opened), asyncio.timeout(150):
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
        while not (found := [other for other in await handle.query("pending") if other["id"] != request["id"]]):
            await asyncio.sleep(0.1)
    return found[0]


@promise("recovery:store-locked")
@pytest.mark.thorough
async def test_a_store_locked_before_the_first_step_is_asked_about(shared):
    opened, _ = shared
    async with locked(opened):
        handle = await opened.start("<quick>")
        (request,) = await pending(handle)
        assert "open_run: store: database is locked" in request["question"]
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "retry", "by": "ana"})
    assert (await ended(handle))["outcome"] == "completed"


@promise("recovery:store-locked")
async def test_a_store_locked_while_the_model_thinks_loses_no_answer(temporal, tmp_path):
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def rules(conversation):
        arrived.set()
        await go_on.wait()
        return DONE

    async with office(temporal, tmp_path, rules=rules, transient_seconds=60) as (opened, _):
        handle = await opened.start("<quick>")
        async with asyncio.timeout(150):
            await arrived.wait()
        async with locked(opened):
            go_on.set()
            await opened.model.charged()
            # Longer than one attempt to write waits for the lock: the answer must be kept for another.
            ending = asyncio.ensure_future(handle.result())
            done, _ = await asyncio.wait({ending}, timeout=6)
            assert not done
        await ending
        result = await ended(handle)
        assert result["outcome"] == "completed"
        assert len(opened.model.requests) == 1


@promise("recovery:two-stores")
async def test_a_worker_with_another_store_is_refused_naming_both(temporal, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    rules = scripts()
    async with office(temporal, here, rules=rules) as (opened, desk):
        queue, home = opened.settings.task_queue, opened.settings.home
        handle = await opened.start("<stores>")
        (request,) = await pending(handle)
    async with office(temporal, there, rules=rules, task_queue=queue) as (_, stranger):
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
        async with asyncio.timeout(150):
            while not (found := [other for other in await handle.query("pending") if other["id"] != request["id"]]):
                await asyncio.sleep(0.1)
        ids = [row[0] for folder in (home, there / "home") for row in stamp_of(folder)]
        assert all(stamp in found[0]["question"] for stamp in ids), found[0]["question"]
        assert stranger.calls() == []
    async with office(temporal, here, rules=rules, task_queue=queue, home=home):
        await handle.execute_update("decide", {"request_id": found[0]["id"], "verdict": "retry", "by": "ana"})
        assert (await ended(handle))["outcome"] == "completed"
    assert len(desk.calls("send")) == 1
    assert stranger.calls() == []


def stamp_of(home):
    with sqlite3.connect(home / "backstay.db") as connection:
        return connection.execute("SELECT id FROM store_identity").fetchall()


@promise("recovery:right-one")
async def test_of_two_workers_with_two_stores_the_right_one_carries_the_run_or_a_person_is_asked(temporal, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    rules = scripts()
    async with office(temporal, here, rules=rules) as (opened, desk):
        handle = await opened.start("<stores>")
        await pending(handle)
        # A process has one worker per queue and connection.
        second = await Client.connect(temporal.service_client.config.target_host, data_converter=DATA_CONVERTER)
        async with office(second, there, rules=rules, task_queue=opened.settings.task_queue) as (_, stranger):
            await decide(handle)
            assert (await ended_or_asked(handle)).get("outcome", "completed") == "completed"
        while "outcome" not in (found := await ended_or_asked(handle)):
            assert "give all workers of one task queue the same BACKSTAY_DATABASE_URL" in found["question"]
            await decide(handle, "retry")
        assert (await ended(handle))["outcome"] == "completed"
    assert len(desk.calls("send")) == 1
    assert stranger.calls() == []


async def ended_or_asked(handle):
    """Wait until the run is closed or waits for a person; return its Result or the request."""
    async with asyncio.timeout(150):
        while True:
            if (result := await handle.query("result")) is not None:
                return result
            if found := await handle.query("pending"):
                return found[0]
            await asyncio.sleep(0.1)


@promise("recovery:reset")
async def test_after_a_reset_the_same_decision_finds_the_recorded_outcome(shared):
    opened, desk = shared
    handle = await opened.start("<reset>")
    await decide(handle)
    await decide(handle, "reject", seen=("r1",))
    assert (await ended(handle))["outcome"] == "completed"
    sent = len(desk.calls("send"))
    again = await reset(opened, handle, task=1)
    opened.model._rules.asked["reset"] = 1
    await decide(again)
    result = await ended(again)
    assert result["outcome"] == "completed"
    assert [effect["state"] for effect in result["effects"]] == ["applied"]
    assert len(desk.calls("send")) == sent


@promise("recovery:reset")
@pytest.mark.thorough
async def test_after_a_reset_another_decision_is_a_conflict_that_a_person_settles(shared):
    opened, desk = shared
    handle = await opened.start("<other>")
    await decide(handle)
    await decide(handle, "reject", seen=("r1",))
    await ended(handle)
    sent = desk.calls("send")
    again = await reset(opened, handle, task=1)
    opened.model._rules.asked["other"] = 1
    await decide(again)
    request = await decide(again, "did_not_happen", seen=("r1",))
    assert request["kind"] == "outcome"
    assert "Another call is recorded in the place of desk.send" in request["question"]
    assert (await ended(again))["outcome"] == "completed"
    assert desk.calls("send") == sent


@promise("runs:attach")
async def test_a_second_start_of_an_open_workflow_id_is_refused_or_attached(shared):
    opened, _ = shared
    handle = await opened.start("<policy>", "once-only")
    await pending(handle)
    with pytest.raises(WorkflowAlreadyStartedError):
        await opened.start("<policy>", "once-only")
    attached = await opened.start("<policy>", "once-only", id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING)
    assert attached.result_run_id == handle.result_run_id
    await decide(attached, "reject")
    assert (await ended(handle))["outcome"] == "completed"


@promise("runs:open-once")
@pytest.mark.thorough
async def test_a_run_keeps_the_policy_it_was_opened_with(temporal, tmp_path):
    rules = scripts()
    async with office(temporal, tmp_path, rules=rules) as (opened, desk):
        queue = opened.settings.task_queue
        handle = await opened.start("<policy>")
        await pending(handle)
    async with office(temporal, tmp_path, policy=DENYING, rules=rules, task_queue=queue):
        await decide(handle)
        assert (await ended(handle))["outcome"] == "completed"
    assert len(desk.calls("send")) == 1


@promise("recovery:attributes")
async def test_a_namespace_without_our_search_attributes_carries_runs_all_the_same(tmp_path):
    async with await WorkflowEnvironment.start_local(
        data_converter=DATA_CONVERTER, dev_server_existing_path=BINARY
    ) as environment:
        client = environment.client
        # This server bears only so many attributes of a kind: with all places taken, ours cannot be registered.
        taken = {f"Taken{n}": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD for n in range(10)}
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace=client.namespace, search_attributes=taken)
        )
        async with office(client, tmp_path) as (opened, _):
            handle = await opened.start("<quick>")
            assert (await ended(handle))["outcome"] == "completed"
            history = await handle.fetch_history()
            kind = "upsert_workflow_search_attributes_event_attributes"
            assert not any(event.HasField(kind) for event in history.events)


@promise("recovery:attributes")
@pytest.mark.thorough
async def test_a_new_namespace_gets_our_search_attributes_before_the_first_run(tmp_path):
    async with (
        await WorkflowEnvironment.start_local(
            data_converter=DATA_CONVERTER, dev_server_existing_path=BINARY
        ) as environment,
        office(environment.client, tmp_path) as (opened, _),
    ):
        handle = await opened.start("<quick>")
        assert (await ended(handle))["outcome"] == "completed"
        found = (await handle.describe()).search_attributes
        assert found["BackstayState"] == ["done"]
