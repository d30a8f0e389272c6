"""Worker and Temporal die while servers work on tasks: the same tasks are asked about, and each call is sent once."""

import asyncio
import random
from collections import Counter

import pytest
from temporalio.service import RPCError

from tests.crash.case import open_case
from tests.crash.temporal_server import client_of, server
from tests.engine import assert_no_task_failure
from tests.ports import own_port
from tests.requirements import promise
from tests.task_server import open_task_server, until

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
KILLS = 10


def step(tool, **arguments):
    return {"tool": tool, "arguments": arguments}


def settings_of(server, folder):
    policy = folder / "tasks.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    return {
        "BACKSTAY_TOOLBOX": str(server.toolbox(folder)),
        "BACKSTAY_POLICY": str(policy),
        "BACKSTAY_STEP_TIMEOUT_SECONDS": "3",
    }


@promise("tools:server-task-killed")
async def test_after_a_kill_the_same_task_is_asked_about_and_there_is_one_result(temporal, nursery, tmp_path):
    async with open_task_server() as slow:
        slow.poll_ms = 1000
        async with open_case(temporal, nursery, tmp_path, shape="plan", **settings_of(slow, tmp_path)) as case:
            doomed = await case.worker()
            handle = await case.start(plan={"steps": [step("slow.send", mark="kept", lasts_s=600)]})
            await until(lambda: any(work.asked for work in slow.works), 150)
            doomed.kill()
            await asyncio.wait_for(asyncio.shield(doomed.died), 150)
            (work,) = slow.works
            asked = work.asked
            await case.worker()
            await until(lambda: work.asked > asked, 150)
            work.arguments["lasts_s"] = 0
            result = await asyncio.wait_for(handle.result(), 150)
            assert_no_task_failure(await handle.fetch_history())
    assert [(effect["state"], effect["send"]) for effect in result["effects"]] == [("applied", 1)]
    assert slow.marks("send") == ["kept"]


@promise("tools:server-task-killed")
@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_ten_kills_of_worker_and_temporal_send_each_call_once_and_settle_every_lost_answer(nursery, tmp_path):
    dice, port, kills = random.Random(7), own_port(), Counter()
    database = tmp_path / "temporal.db"
    steps = [
        *(step("slow.send", mark=f"m{number}", lasts_s=dice.uniform(5, 15)) for number in range(6)),
        step("slow.send", mark="asks", asks=True, lasts_s=3),
        step("slow.plain", mark="lost"),
        step("slow.look", mark="read", lasts_s=5),
    ]
    async with open_task_server() as slow:
        running = server(port, database)
        await running.__aenter__()
        client = await client_of(port)
        async with open_case(client, nursery, tmp_path, shape="plan", **settings_of(slow, tmp_path)) as case:
            living = await case.worker()
            handle = await case.start(plan={"steps": steps})
            slow.loses |= {"send", "plain"}
            deciding = asyncio.create_task(decided(client, handle.id))
            for number in range(KILLS):
                await asyncio.sleep(dice.uniform(1, 6))
                victim = ("worker", "temporal")[number % 2]
                kills[victim] += 1
                if victim == "worker":
                    living.kill()
                    await asyncio.wait_for(asyncio.shield(living.died), 150)
                    living = await case.worker()
                else:
                    await running.__aexit__(None, None, None)
                    running = server(port, database)
                    await running.__aenter__()
            result = await asyncio.wait_for(ended(client, handle.id), 600)
            deciding.cancel()
            assert_no_task_failure(await client.get_workflow_handle(handle.id).fetch_history())
        await running.__aexit__(None, None, None)
    assert result["outcome"] == "completed", result
    sent = Counter(slow.marks("send") + slow.marks("plain"))
    assert sent == Counter([*(f"m{number}" for number in range(6)), "asks", "lost"]), sent
    assert {effect["state"] for effect in result["effects"]} == {"applied"}


async def ended(client, workflow_id):
    """Return the result of a run, over every restart of Temporal."""
    while True:
        try:
            return await client.get_workflow_handle(workflow_id).result()
        except RPCError:
            await asyncio.sleep(0.5)


async def decided(client, workflow_id):
    """Decide whatever the run asks, as it comes: questions with yes, lost answers with what the server knows."""
    while True:
        await asyncio.sleep(0.5)
        try:
            handle = client.get_workflow_handle(workflow_id)
            for request in await handle.query("pending"):
                answer = {"verdict": "happened"} if request["kind"] == "outcome" else {"verdict": "answer"}
                answer |= {"answer": {"yes": True}} if request["kind"] == "elicitation" else {}
                await handle.execute_update("decide", {"request_id": request["id"], "by": "ana", **answer})
        except Exception:
            continue
