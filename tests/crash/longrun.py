"""One run of very many steps on a worker of its own process, watched step by step."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHistory

from backstay.client import Backstay, Run
from backstay.testing import Conversation, Reply
from benchmarks.processes import cpu_seconds, memory_kb
from examples.mailbox.seed import seed
from store.opening import open_store
from tests.crash.case import Case, open_case
from tests.crash.points import Point
from tests.engine import assert_no_task_failure
from tests.histories import asks_model
from tests.nursery.nursery import Child, Nursery

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: ask}\nundo: {default: allow}\n"
BODY = " ".join(f"Line {number} of a letter that is long." for number in range(220))
"""8 kB."""
INVOICES = 75
"""So many are an answer of 8 kB."""
UNDONE = 50
SWITCH_AT = 120
"""Events after which a run that is killed amid switches continues."""
STEPS_A_KILL = 12
"""More than an execution of so few events has, since a worker is killed at the switches."""


@dataclass
class Steps:
    """A model that sends a long letter and reads a long list in turn, and numbers its steps in what it says.

    The number of the next step follows from the last message, since old ones are left out of a long conversation.
    """

    steps: int
    asked: Callable[[int], None] = lambda _number: None

    def __call__(self, talk: Conversation) -> Reply:
        if "finish" not in talk.tools:
            return Reply(text="It was cut short.")
        said = (str(message["content"]) for message in reversed(talk.messages) if message.get("role") == "assistant")
        number = int(next(said, "step 0").split()[1]) + 1
        self.asked(number)
        if number > self.steps:
            return Reply(calls=[("finish", {"summary": "done", "outputs": {}, "success": True})])
        mail = {"to": recipient(number), "subject": f"Letter {number}", "body": BODY}
        call = ("mail__send_email", mail) if number % 2 else ("mail__list_invoices", {"offset": 0, "limit": INVOICES})
        return Reply(text=f"step {number}", calls=[call])


def recipient(step: int) -> str:
    return f"n{step}@free.example"


@dataclass(frozen=True)
class Sample:
    """Hold what a worker had used when it asked for a step."""

    step: int
    at: float
    cpu_s: float
    memory_kb: int


@dataclass
class Watch:
    """Look at the living worker whenever the model is asked."""

    worker: Child | None = None
    samples: list[Sample] = field(default_factory=list)

    def __call__(self, step: int) -> None:
        if self.worker is not None and not self.worker.died.done():
            pid = self.worker.born.result()
            self.samples.append(Sample(step, perf_counter(), cpu_seconds(pid), memory_kb(pid)))

    def memory(self, first: float, last: float) -> float:
        """Return the median of the worker's memory in one part of the run, in kB."""
        count = len(self.samples)
        return median(sample.memory_kb for sample in self.samples[int(first * count) : int(last * count)])

    def cost(self, first: int, last: int) -> tuple[float, float]:
        """Return the wall time and the worker's processor time per step, in milliseconds, between two samples."""
        begin, end = self.samples[first], self.samples[last]
        steps = end.step - begin.step
        return 1000 * (end.at - begin.at) / steps, 1000 * (end.cpu_s - begin.cpu_s) / steps


@asynccontextmanager
async def open_long(
    client: Client, nursery: Nursery, folder: Path, steps: int, **settings: str
) -> AsyncGenerator[tuple[Case, Watch]]:
    """Lay out a long run; its worker is for the caller to raise."""
    watch = Watch()
    policy = folder / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    # Filled before, so that it stays as it is.
    await seed(folder / "mailbox.db", invoices=INVOICES)
    rules = Steps(steps, watch)
    settings = {"BACKSTAY_POLICY": str(policy), **settings}
    async with open_case(client, nursery, folder, rules=rules, kept=10, **settings) as case:
        yield case, watch


async def start(case: Case, steps: int) -> Run:
    """Start the run."""
    backstay = Backstay(case.client, task_queue=case.environment["BACKSTAY_TASK_QUEUE"])
    budget = {"max_steps": steps + 1, "max_tool_calls": steps, "max_llm_cost_usd": None}
    return await backstay.start({"text": "Write to everybody.", "budget": budget})


async def histories_of(client: Client, workflow_id: str) -> list[WorkflowHistory]:
    """Return the histories of all executions of a run, the first one first."""
    latest = await client.get_workflow_handle(workflow_id).describe()
    run_id = latest.raw_description.workflow_execution_info.first_run_id
    histories: list[WorkflowHistory] = []
    while run_id:
        history = await client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history()
        histories.append(history)
        run_id = history.events[-1].workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    return histories


def bytes_by_step(histories: Sequence[WorkflowHistory]) -> list[int]:
    """Return the bytes of history of every step, from one question to the model to the next; the first is the start.

    What a continuation costs is no part of a step: it falls on any.
    """
    sizes = [0]
    for history in histories:
        carried: set[int] = set()
        for event in history.events:
            if asks_model(event):
                sizes.append(0)
            if _carries(event, carried):
                carried.add(event.event_id)
            elif not _continues(event):
                sizes[-1] += event.ByteSize()
    return sizes


def _carries(event: HistoryEvent, carried: Collection[int]) -> bool:
    """Return whether an event is of an activity that hands the state on; `carried` are the earlier ones."""
    if event.HasField("activity_task_scheduled_event_attributes"):
        return event.activity_task_scheduled_event_attributes.activity_type.name in {"carry_over", "load_carried"}
    kinds = ("started", "completed", "failed", "timed_out")
    fields = [f"activity_task_{kind}_event_attributes" for kind in kinds]
    return any(event.HasField(name) and getattr(event, name).scheduled_event_id in carried for name in fields)


def bytes_of_switches(histories: Sequence[WorkflowHistory]) -> list[int]:
    """Return the bytes of history of every continuation: what the old execution hands on, and the new one takes."""
    return [old.events[-1].ByteSize() + new.events[0].ByteSize() for old, new in pairwise(histories)]


def _continues(event: HistoryEvent) -> bool:
    if event.HasField("workflow_execution_started_event_attributes"):
        return bool(event.workflow_execution_started_event_attributes.continued_execution_run_id)
    return event.HasField("workflow_execution_continued_as_new_event_attributes")


async def check_ledger(case: Case, run: Run, steps: int) -> dict[str, Any]:
    """Assert that everything was done and recorded once; return the run's Result."""
    result = await run.result()
    assert result.outcome == "completed", result
    sends = [recipient(step) for step in range(1, steps + 1, 2)]
    assert case.mailbox.sent() == sends
    assert case.mailbox.requests("send_email") == len(sends)
    key = f"{run.id}/{(await run.status()).run_id}"
    async with open_store(database_url=None, home=case.folder / "home") as store:
        effects = await store.effects.of_run(key)
        events = await store.events.of_run(key)
    assert [(effect.n, effect.state) for effect in effects] == [(n, "applied") for n in range(1, len(sends) + 1)]
    assert [event.n for event in events] == list(range(1, len(events) + 1))
    assert events[0].name == "run.started"
    return result.plain()


async def watched(client: Client, nursery: Nursery, folder: Path, steps: int, **settings: str) -> dict[str, Any]:
    """Make a run of so many steps, undo its last effects, check all of it, and return the figures."""
    async with open_long(client, nursery, folder, steps, **settings) as (case, watch):
        watch.worker = await case.worker()
        await watch.worker.ready()
        run = await start(case, steps)
        await check_ledger(case, run, steps)
        sizes = bytes_by_step(histories := await histories_of(client, run.id))
        switches = bytes_of_switches(histories)
        await check_undo(case, run, steps)
    assert len(sizes) == steps + 2
    assert len(switches) > 1
    return {
        "steps": steps,
        "executions": len(histories),
        "longest": max(len(history.events) for history in histories),
        "bytes": (sum(sizes[1:101]) / 100, sum(sizes[-101:-1]) / 100),
        "bytes_of_switches": (switches[0], switches[-1]),
        # The worker keeps payloads in memory, up to a bound that it has reached by then.
        "memory_kb": (watch.memory(0.4, 0.5), watch.memory(0.9, 1)),
        "memory_kb_by_tenth": [watch.memory(tenth / 10, tenth / 10 + 0.1) for tenth in range(10)],
        "ms_wall_and_cpu": (watch.cost(steps // 20, steps // 10), watch.cost(-steps // 20, -1)),
    }


async def check_undo(case: Case, run: Run, steps: int, count: int = UNDONE) -> None:
    """Undo the last effects, and assert that exactly these were undone."""
    before = case.mailbox.sent()
    undone = await run.undo(to_step=steps - 2 * count)
    assert [effect.state for effect in undone] == ["compensated"] * count
    assert case.mailbox.sent() == before[:-count]


async def killed_amid_switches(
    client: Client, nursery: Nursery, folder: Path, points: Sequence[Point], undone: int = UNDONE
) -> None:
    """Make a run whose workers are killed, one after the other, at points of its switches; then check all of it."""
    steps = 2 * undone + STEPS_A_KILL * len(points)
    folder.mkdir()  # noqa: ASYNC240 - nothing waits for it
    async with open_long(client, nursery, folder, steps, SWITCH_AT=str(SWITCH_AT)) as (case, _):
        run = None
        for point in points:
            doomed = await case.worker(point.spec)
            run = run or await start(case, steps)
            async with asyncio.timeout(200):
                status = await asyncio.shield(doomed.died)
            assert status == -9, doomed.said()
            assert f"killed {point.spec}" in doomed.said()
        assert run is not None
        await case.worker()
        await check_ledger(case, run, steps)
        histories = await histories_of(client, run.id)
        assert len(histories) > len(points) // 2
        for history in histories:
            assert_no_task_failure(history)
        await check_undo(case, run, steps, undone)
