"""A program whose worker dies again and again comes to the same end, and makes no call twice."""

import asyncio
import json
from pathlib import Path

import pytest

from backstay.testing import Reply
from tests.crash.case import open_case
from tests.engine import assert_no_task_failure, share_images
from tests.requirements import promise
from tests.sizes import sized

ROUNDS = sized(30, 12)
EVERY = sized(10, 12)
PROGRAM = f"""
import random, time, uuid

readings = []
for n in range({ROUNDS}):
    page = await mail.list_customers(offset=n, limit=1)
    reading = f"{{n}} {{time.time():.6f}} {{random.random()}} {{uuid.uuid4()}} {{list({{str(n), 'a', 'b', 'c'}})}}"
    reading += " -" * 60
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


READY = {"runs": "backstay worker ready", "sandbox": "backstay sandbox ready"}


class Workers:
    """The processes of both roles of one engine, one pair after the other."""

    def __init__(self, case):
        self.case = case
        self.living = []
        self.pairs = 0

    async def replace(self):
        """Kill those that live, and raise two that have kept nothing."""
        for item in self.living:
            item.kill()
        for item in self.living:
            await asyncio.wait_for(asyncio.shield(item.died), 150)
        self.pairs += 1
        here = self.case.environment
        raising = (
            self.case.ready({**here, "ROLE": role}, f"{role}-{self.pairs}.log", said) for role, said in READY.items()
        )
        self.living = await asyncio.gather(*raising)


@promise("recovery:killed")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("every", [sized(14, 7), pytest.param(1, marks=pytest.mark.soak)])
async def test_a_program_whose_worker_dies_at_every_turn_ends_as_if_nothing_had_happened(
    temporal, nursery, sandbox, tmp_path, every
):
    async with open_case(temporal, nursery, tmp_path, rules=rules) as case:
        share_images(Path(case.environment["BACKSTAY_HOME"]))
        workers = Workers(case)
        await workers.replace()
        handle = await case.start(budget={"max_tool_calls": 100})
        result = await harassed(case, handle, workers, every)

        assert result["outcome"] == "completed", result
        assert_no_task_failure(await handle.fetch_history())
        readings = result["raw_outputs"]["result"]["data"]["items"]
        assert len(set(readings)) == ROUNDS
        assert json.loads(json.dumps(result["raw_outputs"]["output"]["data"])).splitlines() == readings
        # The mails were written before later kills: what they tell is what the program still says at its end.
        sent = case.mailbox.rows("SELECT recipient, subject FROM sent ORDER BY id")
        asked = range(EVERY - 1, ROUNDS, EVERY)
        assert sent == [(f"c{n}@example.com", readings[n]) for n in asked]
        assert case.mailbox.requests("send_email") <= len(asked) + case.person.resent.total()
        assert workers.pairs > ROUNDS // every // 2 + len(asked)


async def harassed(case, handle, workers, every):
    """Kill both roles at every so many rounds, and while a person is asked, who then approves."""
    seen = 0
    ending = asyncio.create_task(case.person.result(handle))
    try:
        async with asyncio.timeout(800):
            while not ending.done():
                for request in await case.person.pending(handle):
                    await workers.replace()
                    await case.person.decide(handle, request)
                read = case.mailbox.requests("list_customers")
                if read >= seen + every:
                    seen = read
                    await workers.replace()
                await asyncio.wait([ending], timeout=0.05)
        return ending.result()
    finally:
        ending.cancel()
