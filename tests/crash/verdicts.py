"""A program whose worker is killed amid one of its calls, and a person who says what became of that call."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from temporalio.client import Client

from backstay.testing import Reply
from tests.crash.case import Case, open_case
from tests.crash.matrix import AT_ONCE
from tests.crash.person import Person
from tests.engine import assert_no_task_failure, share_images
from tests.nursery.nursery import Child, Nursery
from workflows.run_task import EFFECTS

ROUNDS = 3
PROGRAM = f"""
for n in range({ROUNDS}):
    sent = await mail.send_email(to=f"c{{n}}@example.com", subject="s", body="b")
    assert sent["to"] == f"c{{n}}@example.com"
return "sent"
"""
SENT, NOT_SENT = "after:provider.request.send:{}", "after:effects.begin:{}"
POINTS = {"happened": SENT, "did_not_happen": NOT_SENT, "retry": NOT_SENT, "reject": None}
"""Where the worker dies so that the verdict is the truth; None: while the call waits for its approval."""
ENDS = {"happened": "OutcomeSettled", "did_not_happen": "ToolError", "retry": None, "reject": "ToolError"}
Told = tuple[dict[str, Any], list[str]]
"""What the program answered, and what its model was told of its effects."""
CASES = [(number, verdict) for number in range(1, ROUNDS + 1) for verdict in POINTS]
SAMPLE = [(1, "did_not_happen"), (2, "happened"), (2, "reject"), (3, "retry")]
MORE = [case for case in CASES if case not in SAMPLE]


def rules(conversation: Any) -> Reply:
    """Run the program, and finish with all that is told of it."""
    runs = conversation.calls("run_program")
    if not runs:
        return Reply(calls=[("run_program", {"code": PROGRAM})])
    return Reply(calls=[("finish", {"summary": "done", "outputs": {"answer": runs[0].answer}})])


@asynccontextmanager
async def open_cases(
    client: Client, nursery: Nursery, folder: Path, cases: Sequence[tuple[int, str]]
) -> AsyncGenerator[dict[tuple[int, str], asyncio.Task[Told]]]:
    """Play cases, several at once; yields them by round and verdict."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def play(number: int, verdict: str) -> Told:
        async with turns, asyncio.timeout(200):
            return await told_after(client, nursery, folder / f"{verdict}-{number}", number, verdict)

    running = {case: asyncio.create_task(play(*case)) for case in cases}
    try:
        yield running
    finally:
        for item in running.values():
            item.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)


class Judge(Person):
    """Approve every call, and give one verdict on that of one round."""

    def __init__(self, case: Case, number: int, verdict: str) -> None:
        super().__init__(case.mailbox)
        self.recipient = f"c{number - 1}@example.com"
        self.verdict = verdict

    def is_about_it(self, request: dict[str, Any]) -> bool:
        return request["calls"][0]["arguments"]["to"] == self.recipient

    def _verdict(self, request: dict[str, Any]) -> str:
        if request["kind"] == "outcome":
            assert self.is_about_it(request), request
            return self.verdict
        return "reject" if self.verdict == "reject" and self.is_about_it(request) else "approve"


async def told_after(client: Client, nursery: Nursery, folder: Path, number: int, verdict: str) -> Told:
    """Kill the worker amid a call of the program, give the verdict; return the program's answer and what was told."""
    async with open_case(client, nursery, folder, rules=rules, declared={"safety": "write_safe"}) as case:
        share_images(Path(case.environment["BACKSTAY_HOME"]))
        point = POINTS[verdict]
        doomed = await case.worker("" if point is None else point.format(number))
        await said(doomed, "backstay worker ready")
        jails = await nursery.worker({**case.environment, "ROLE": "sandbox"}, folder / "sandbox.log")
        await said(jails, "backstay sandbox ready")
        handle = await case.start()
        result = await attended(case, handle, doomed, Judge(case, number, verdict))
        assert_no_task_failure(await handle.fetch_history())
        assert result["outcome"] == "completed", result
        check_mail(case, done_of(number, verdict))
        answer = result["raw_outputs"]["answer"]
        return answer, answer.get(EFFECTS, [])


async def attended(case: Case, handle: Any, doomed: Child, judge: Judge) -> dict[str, Any]:
    """Decide every request until the run ends; where the worker does not die by itself, kill it amid its question."""
    ending = asyncio.create_task(judge.result(handle))
    replaced = False
    try:
        async with asyncio.timeout(150):
            while not ending.done():
                await asyncio.wait([ending], timeout=0.1)
                for request in [] if ending.done() else await judge.pending(handle):
                    if judge.verdict == "reject" and judge.is_about_it(request) and not doomed.died.done():
                        doomed.kill()
                        await asyncio.wait_for(asyncio.shield(doomed.died), 150)
                    else:
                        await judge.decide(handle, request)
                if doomed.died.done() and not replaced:
                    replaced = True
                    await case.worker()
        assert replaced, doomed.said()
        return ending.result()
    finally:
        ending.cancel()


async def said(child: Child, words: str) -> None:
    """Wait until a process has said so."""
    async with asyncio.timeout(150):
        while words not in child.said():
            assert not child.died.done(), child.said()
            await asyncio.sleep(0.05)


def done_of(number: int, verdict: str) -> int:
    """Return how many mails are to be sent."""
    return {"happened": number, "retry": ROUNDS}.get(verdict, number - 1)


def check_mail(case: Case, done: int) -> None:
    """Every mail was sent once, and none was even asked for twice."""
    sent = [recipient for (recipient,) in case.mailbox.rows("SELECT recipient FROM sent ORDER BY id")]
    assert sent == [f"c{n}@example.com" for n in range(done)]
    assert case.mailbox.requests("send_email") == done


def stands(number: int, verdict: str) -> list[str]:
    """Return what the model is to be told."""
    calls = [{"to": f"c{n}@example.com", "body": "b", "subject": "s"} for n in range(done_of(number, verdict))]
    told = [json.dumps(call, separators=(",", ":")) for call in calls]
    return [f"effect {n}: mail.send_email {arguments}: applied" for n, arguments in enumerate(told, 1)]
