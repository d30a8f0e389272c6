"""A run that waits for a payment to be approved, and strangers who send it all they can."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.service import RPCError

from backstay.client import Backstay, Run
from backstay.errors import BackstayError
from backstay.testing import Reply
from store.opening import open_store
from tests import signing
from tests.crash.longrun import histories_of
from tests.engine import Engine, Scripts, assert_no_task_failure, engine, pending

KEY = "the key that workers and gateways share"
ANA, EVE = "ana@example.com", "eve@example.com"
POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: ask}
ask: [{tool: "mail.send_email", approvers: ["ana@example.com"]}]
"""
PAYMENTS = ("before@one.example", "amid@one.example", "after@one.example")
LANES = 8
HUGE = 1_950_000
"""Bytes of a huge signal; with its frame it stays under the 2 MiB at which the server refuses one."""
MOST_EXECUTIONS = 100
WITHIN_S = 300

Say = Callable[[WorkflowHandle[Any, Any]], Awaitable[Any]]


@dataclass
class Flood:
    """Count what strangers send, in which proportion, and how it was answered."""

    signals: int = 0
    updates: int = 0
    huge: int = 0
    pauses: int = 0
    sent: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    insisted: Counter[str] = field(default_factory=Counter)
    """What the right approver was told before the approval was taken."""
    executions: int = 0
    """In how many the run was flooded."""
    half: asyncio.Event = field(default_factory=asyncio.Event)

    def sayings(self, strangers: "Strangers") -> Iterator[Say]:
        """Yield all that is sent, the kinds interleaved."""
        kinds = (
            (strangers.signal(number) for number in range(self.signals)),
            (strangers.update(number) for number in range(self.updates)),
            (strangers.huge() for _ in range(self.huge)),
            (strangers.pause(number) for number in range(self.pauses)),
        )
        for together in itertools.zip_longest(*kinds):
            yield from (say for say in together if say is not None)

    def figures(self) -> dict[str, Any]:
        """Return what was sent and how it was answered."""
        return {"sent": self.sent, "answers": dict(self.answers), "the approver was told": dict(self.insisted)}

    async def pour(self, handle: WorkflowHandle[Any, Any], strangers: "Strangers") -> None:
        """Send all of it, a few at a time."""
        left = self.sayings(strangers)
        total = self.signals + self.updates + self.huge + self.pauses

        async def lane() -> None:
            for say in left:
                self.sent += 1
                self.answers[await answered(say(handle))] += 1
                if self.sent >= total // 2:
                    self.half.set()

        await asyncio.gather(*(lane() for _ in range(LANES)))


class Strangers:
    """Make up what somebody without the key can say; they know the approver's name, and old and foreign proofs."""

    def __init__(
        self, first: dict[str, Any], foreign: dict[str, Any], stale: dict[str, Any], bound: dict[str, Any]
    ) -> None:
        self.first, self.foreign, self.stale, self.bound = first, foreign, stale, bound
        self.turn = asyncio.Lock()

    def lies(self, number: int) -> Any:
        """Return one of the many forms of a decision that nobody entitled made."""
        yes = {"request_id": f"r{2 + number % 2}", "verdict": ("approve", "reject")[number // 2 % 2], "by": ANA}
        forms: tuple[Callable[[], Any], ...] = (
            lambda: yes,
            lambda: {**yes, "proof": self.forged(yes)},
            lambda: {**yes, "by": EVE, "proof": self.forged(yes)},
            lambda: self.stale,
            lambda: self.foreign,
            lambda: self.first,
            lambda: ("junk", None, 7, ["r2"], {"request_id": {}}, {"": ""})[number % 6],
            lambda: {**yes, "comment": "x" * 20_000, "proof": self.forged(yes)},
            lambda: {**yes, "event_id": f"click-{number}"},
        )
        return forms[number % len(forms)]()

    def forged(self, payload: dict[str, Any], **bound: Any) -> str:
        return signing.proof_of(payload, {**self.bound, **bound}, key="another key")

    def signal(self, number: int) -> Say:
        return lambda handle: handle.signal("approval", self.lies(number))

    def update(self, number: int) -> Say:
        if number % 4:
            return lambda handle: handle.execute_update("decide", self.lies(number))
        way, said = (("top_up", {"max_steps": 1}), ("undo", {"to_step": 0}), ("nothing", {}))[number // 4 % 3]
        said |= {"by": ANA}
        return lambda handle: handle.execute_update(way, {**said, "proof": self.forged(said, update=way)})

    def huge(self) -> Say:
        async def say(handle: WorkflowHandle[Any, Any]) -> None:
            # Nothing helps against those that the server takes before any worker could look at the first.
            async with self.turn:
                await handle.signal("approval", "x" * HUGE)
                await seen(handle)

        return say

    def pause(self, number: int) -> Say:
        said = {"by": ANA, "reason": str(number)}
        return lambda handle: handle.execute_update("pause", {**said, "proof": self.forged(said, update="pause")})


async def seen(handle: WorkflowHandle[Any, Any]) -> None:
    """Wait until the run has looked at all that it was sent."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                await pending(handle, count=0, within_s=WITHIN_S)
            except RPCError:  # A busy worker answers no query in time.
                await asyncio.sleep(0.2)
            else:
                return


async def answered(said: Awaitable[Any]) -> str:
    """Return in one word how something was answered."""
    try:
        await said
    except WorkflowUpdateFailedError as refused:
        return str(getattr(refused.cause, "type", "refused"))
    except RPCError as refused:
        return f"{refused.status.name}: {refused.message[:60]}"
    return "taken"


async def insist(run: Run, flood: Flood, request_id: str) -> None:
    """Approve as the right person, again and again while the server or the run refuses for the moment."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                await run.approve(request_id, by=ANA, event_id=f"yes-{request_id}")
            except BackstayError as error:
                flood.insisted[f"{type(error).__name__}: {error}"[:100]] += 1
                assert await run.is_open(), flood.insisted
            else:
                return
            await asyncio.sleep(0.2)


async def insist_by_signal(run: Run, handle: WorkflowHandle[Any, Any], flood: Flood, request_id: str) -> None:
    """Approve with signals, which nobody answers, until the request is closed."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                if request_id not in {request.id for request in await run.pending()}:
                    return
                yes = {"request_id": request_id, "verdict": "approve", "by": ANA, "event_id": f"yes-{request_id}"}
                await handle.signal("approval", await run.sign("approval", yes))
            except BackstayError as error:
                flood.insisted[f"{type(error).__name__}: {error}"[:100]] += 1
            except RPCError as error:
                flood.insisted[error.message[:100]] += 1
            assert await run.is_open(), flood.insisted
            await asyncio.sleep(1)


async def asked(handle: WorkflowHandle[Any, Any], request_id: str) -> None:
    """Wait until a request is open."""
    async with asyncio.timeout(WITHIN_S):
        while [request["id"] for request in await pending(handle, within_s=WITHIN_S)] != [request_id]:
            await asyncio.sleep(0.2)


async def flooded(client: Client, folder: Path, flood: Flood, *, by_signal: bool = False) -> Flood:
    """Have strangers flood a run between two payments, amid the approval of a third; then check all of it."""
    scripts = Scripts()
    mails = [Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"})]) for to in PAYMENTS]
    async with engine(client, folder, scripts, policy=POLICY, approver_key=KEY, cached=10) as opened:
        backstay = Backstay(opened.client, task_queue=opened.settings.task_queue, approver_key=KEY)
        other, run = [await backstay.start(scripts.task(*mails)) for _ in range(2)]
        handle = opened.client.get_workflow_handle(run.id)
        foreign = await opened_proof(opened.client.get_workflow_handle(other.id))
        first, stale = await opened_proof(handle), await opened_proof(handle, life=-5)
        await handle.execute_update("decide", first)
        await asked(handle, "r2")
        assert opened.mailbox.sent() == [PAYMENTS[0]]
        strangers = Strangers(first, foreign, stale, await signing.binding(handle, "decide", "r2"))
        pouring = asyncio.create_task(flood.pour(handle, strangers))
        await flood.half.wait()
        await (insist_by_signal(run, handle, flood, "r2") if by_signal else insist(run, flood, "r2"))
        await pouring
        await asked(handle, "r3")
        await insist(run, flood, "r3")
        flood.executions = await check(opened, run)
        await opened.client.get_workflow_handle(other.id).terminate()
    return flood


async def opened_proof(handle: WorkflowHandle[Any, Any], life: int = 600) -> dict[str, Any]:
    """Return a genuine approval of the first payment, as soon as it is asked for."""
    await pending(handle)
    return await signing.signed(handle, {"request_id": "r1", "verdict": "approve", "by": ANA}, key=KEY, life=life)


async def check(opened: Engine, run: Run) -> int:
    """Assert that the run ended well, and did and recorded exactly what was approved; return its executions."""
    async with asyncio.timeout(WITHIN_S):
        result = await run.result()
    assert (result.outcome, [effect.state for effect in result.effects]) == ("completed", ["applied"] * len(PAYMENTS))
    assert result.undone == ()
    assert sorted(opened.mailbox.sent()) == sorted(PAYMENTS)
    assert opened.mailbox.requests("recall_email") == 0
    status = await run.status()
    async with open_store(database_url=None, home=opened.settings.home) as store:
        decisions = await store.decisions.of_run(f"{run.id}/{status.run_id}")
        events = await store.events.of_run(f"{run.id}/{status.run_id}")
    taken = [(decision.request_id, decision.by, decision.verdict, decision.verified) for decision in decisions]
    assert taken == [(f"r{n}", ANA, "approve", True) for n in (1, 2, 3)]
    assert [event.n for event in events] == list(range(1, len(events) + 1))
    histories = await histories_of(opened.client, run.id)
    assert len(histories) <= MOST_EXECUTIONS
    for history in histories:
        assert_no_task_failure(history)
    return len(histories)
