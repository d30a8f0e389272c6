"""A program whose worker dies again and again comes to the same end, and makes no call twice."""

import asyncio
import json

import pytest

from backstay.testing import Reply
from tests.crash.processes import plain_environment
from tests.engine import ROOT, assert_no_task_failure

ROUNDS = 30
EVERY = 10
PROGRAM = f"""
import random, time, uuid

readings = []
for n in range({ROUNDS}):
    page = await mail.list_customers(offset=n, limit=1)
    reading = f"{{n}} {{time.time():.6f}} {{random.random()}} {{uuid.uuid4()}} {{list({{str(n), 'a', 'b', 'c'}})}}"
    print(reading)
    readings.append(reading)
    if n % {EVERY} == {EVERY} - 1:
        await mail.send_email(to=f"c{{n}}@example.com", subject=reading, body=str(page["total"]))
return readings
"""


def rules(conversation):
    runs = conversation.calls("run_program")
    if not runs:
        return Reply(calls=[("run_program", {"code": PROGRAM})])
    parts = conversation.calls("read_result")
    if not parts:
        ref = runs[0].answer.get("storage_ref")
        if ref is None:
            return Reply(calls=[("finish", {"summary": json.dumps(runs[0].answer), "success": False})])
        reads = [("read_result", {"ref": ref, "path": path, "limit": 100}) for path in ("result", "output")]
        return Reply(calls=reads)
    outputs = {"result": parts[0].answer, "output": parts[1].answer}
    return Reply(calls=[("finish", {"summary": "done", "outputs": outputs, "success": True})])


class Roles:
    """The processes of the sandbox role of one engine, one after the other."""

    def __init__(self, nursery, engine, folder):
        self.nursery, self.engine, self.folder = nursery, engine, folder
        self.living = None
        self.count = 0

    async def replace(self):
        """Kill the one that lives, and raise one that has kept nothing."""
        if self.living is not None:
            self.living.kill()
            await asyncio.wait_for(asyncio.shield(self.living.died), 20)
        self.count += 1
        environment = {
            **plain_environment(),
            "TEMPORAL_ADDRESS": self.engine.client.service_client.config.target_host,
            "BACKSTAY_HOME": str(self.engine.settings.home),
            "BACKSTAY_TASK_QUEUE": self.engine.settings.task_queue,
            "ROLE": "sandbox",
        }
        self.living = await self.nursery.worker(environment, self.folder / f"sandbox-{self.count}.log")
        async with asyncio.timeout(60):
            while "backstay sandbox ready" not in self.living.said():
                assert not self.living.died.done(), self.living.said()
                await asyncio.sleep(0.05)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.soak)])
async def test_a_program_whose_worker_dies_at_every_turn_ends_as_if_nothing_had_happened(
    open_engine, nursery, sandbox, tmp_path, every
):
    async with open_engine(rules) as engine:
        (engine.settings.home / "images").symlink_to(ROOT / "build" / "sandbox" / "images")
        roles = Roles(nursery, engine, tmp_path)
        await roles.replace()
        try:
            task = {"text": "run it", "budget": {"max_tool_calls": 100}}
            handle = await engine.start(task)
            await _harassed(handle, engine, roles, every)
            result = await asyncio.wait_for(handle.result(), 60)
        finally:
            await roles.living.end()

        assert result["outcome"] == "completed", result
        assert_no_task_failure(await handle.fetch_history())
        readings = result["raw_outputs"]["result"]["data"]["items"]
        assert len(set(readings)) == ROUNDS
        assert json.loads(json.dumps(result["raw_outputs"]["output"]["data"])).splitlines() == readings
        # The mails were written before later kills: what they tell is what the program still says at its end.
        sent = engine.mailbox.rows("SELECT recipient, subject FROM sent ORDER BY id")
        asked = range(EVERY - 1, ROUNDS, EVERY)
        assert sent == [(f"c{n}@example.com", readings[n]) for n in asked]
        assert engine.mailbox.requests("send_email") == len(asked)
        assert engine.mailbox.requests("list_customers") == ROUNDS
        assert roles.count >= ROUNDS // every // 2


async def _harassed(handle, engine, roles, every):
    """Kill the sandbox role at every so many rounds, and while a person is asked; approve what is asked."""
    seen = 0
    async with asyncio.timeout(800):
        while (status := await handle.query("status"))["state"] != "done":
            if status["state"] == "waiting":
                await roles.replace()
                (request,) = await handle.query("pending")
                await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ann"})
            calls = status["usage"]["tool_calls"]
            if calls >= seen + every:
                seen = calls
                await roles.replace()
            await asyncio.sleep(0.05)
