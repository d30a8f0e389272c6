"""Tasks that take hours, and runs that outlive executions and workers while they wait."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from backstay.client.connecting import DATA_CONVERTER
from tests.conftest import KEYS, SERVER
from tests.e2e.labelled import DONE, Labelled
from tests.engine import assert_no_task_failure, engine, pending, update
from tests.requirements import promise
from tests.task_server import open_task_server, until
from workflows.context import carrying

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
HOUR = 3600.0


def sends(mark, **more):
    return {"plan": {"steps": [{"tool": "slow.send", "arguments": {"mark": mark, **more}}]}}


@promise("tools:server-task-hours")
@pytest.mark.thorough
async def test_a_task_of_an_hour_is_asked_about_less_and_less_often_and_holds_nothing_meanwhile(tmp_path):
    binary = str(Path(sys.executable).parent / "temporal")
    skips = ["--dynamic-config-value", "frontend.WorkflowTimeSkippingEnabled=true"]
    async with await WorkflowEnvironment.start_time_skipping_v2(
        data_converter=DATA_CONVERTER,
        dev_server_existing_path=binary,
        dev_server_extra_args=[*SERVER, *skips],
        search_attributes=KEYS,
    ) as environment:
        handle = environment.client.get_workflow_handle("hour")

        async def clock():
            return (await environment.get_current_time(handle)).timestamp()

        async with open_task_server(clock) as server:
            toolbox, rules = server.toolbox(tmp_path), Labelled(done=[DONE])
            async with engine(environment.client, tmp_path, rules, policy=POLICY, toolbox=toolbox) as opened:
                started = await opened.start(sends("hour", lasts_s=HOUR), "hour")
                await environment.fast_forward(started)
                result = await started.result()
                history = await started.fetch_history()
                passed = await clock() - server.works[0].began
    assert [(effect["state"], effect["send"]) for effect in result["effects"]] == [("applied", 1)]
    assert HOUR <= passed <= HOUR + 120
    (work,) = server.works
    assert 50 < work.asked < 200
    assert len(history.events) < 3000


@promise("tools:server-task-hours")
async def test_a_run_continues_as_a_new_execution_amid_a_task_and_asks_about_the_same_one(
    temporal, tmp_path, monkeypatch
):
    monkeypatch.setattr(carrying, "MOST_EVENTS", 30)
    async with open_task_server() as server:
        toolbox, rules = server.toolbox(tmp_path), Labelled(done=[DONE])
        async with engine(temporal, tmp_path, rules, policy=POLICY, toolbox=toolbox) as opened:
            handle = await opened.start(sends("long", lasts_s=600, asks=True))
            latest = opened.client.get_workflow_handle(handle.id)
            (request,) = await pending(latest)
            decision = {"request_id": request["id"], "verdict": "answer", "by": "ana", "answer": {"yes": True}}
            await update(latest, "decide", decision)
            (work,) = server.works
            async with asyncio.timeout(60):
                while (await latest.describe()).run_id == handle.first_execution_run_id:
                    await asyncio.sleep(0.1)
            seen = work.asked
            await until(lambda: work.asked > seen)
            work.arguments["lasts_s"] = 0
            result = await asyncio.wait_for(latest.result(), 60)
            assert_no_task_failure(await latest.fetch_history())
    assert [(effect["state"], effect["send"]) for effect in result["effects"]] == [("applied", 1)]
    assert (server.marks("send"), len(work.answers)) == (["long"], 1)
    assert json.dumps(result).count(work.id) == 0
