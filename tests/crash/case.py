"""One run with its own mailbox, model and home; workers come and go."""

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle

from backstay.testing import ScriptedModel
from examples.mailbox.faults import Faults
from tests.crash.person import Person
from tests.crash.points import Point, Shape, Transport
from tests.crash.script import MAILS, Script, plan
from tests.crash.waits import TASK
from tests.engine import ROOT, Mailbox, assert_no_task_failure, toolbox_of
from tests.mailbox_server import open_mailbox
from tests.nursery.nursery import Child, Nursery, worker_environment
from tests.sizes import FULL
from tests.skew import skewed

BILL = {"scripted": (1.0, 0.1, 4.0)}


@dataclass
class Case:
    """Hold what one run needs, and check what must hold when it has ended."""

    client: Client
    nursery: Nursery
    folder: Path
    environment: dict[str, str]
    mailbox: Mailbox
    model: ScriptedModel
    person: Person
    shape: Shape
    ceiling_usd: float
    workers: int = 0

    async def worker(self, kill_at: str = "", sign: str = "KILL", skew: float = 0, **changed: str) -> Child:
        """Raise a worker; with `kill_at` it dies by itself at that point, or is stopped there.

        By `skew` seconds its clock is ahead of all others, or behind them; `changed` are settings of its own.
        """
        self.workers += 1
        kill = {
            "KILL_AT": kill_at,
            "KILL_WITH": sign,
            "KILL_MAILBOX": str(self.mailbox.path),
            "KILL_WITNESS": str(self.folder / "witness"),
        }
        log = self.folder / f"worker-{self.workers}.log"
        more = (kill if kill_at else {}) | (skewed(skew) if skew else {}) | changed
        return await self.nursery.worker(self.environment | more, log)

    async def ready(self, environment: dict[str, str], log: str, said: str) -> Child:
        """Raise a worker with an environment of its own, and wait until it has said that it is ready."""
        child = await self.nursery.worker(environment, self.folder / log)
        async with asyncio.timeout(150):
            while said not in child.said():
                assert not child.died.done(), child.said()
                await asyncio.sleep(0.05)
        return child

    async def start(self, **more: Any) -> WorkflowHandle[Any, Any]:
        task = {"plan": plan()} if self.shape == "plan" else {"text": "Remind the customers."}
        task |= {"budget": {"max_llm_cost_usd": self.ceiling_usd}, **more}
        queue = self.environment["BACKSTAY_TASK_QUEUE"]
        patience = None if FULL else TASK
        named: dict[str, Any] = {"id": f"task-{uuid.uuid4()}", "task_queue": queue, "task_timeout": patience}
        return await self.client.start_workflow("RunTask", task, **named)

    async def start_undo(self, workflow_id: str, **more: str) -> WorkflowHandle[Any, Any]:
        queue = self.environment["BACKSTAY_TASK_QUEUE"]
        ask = {"workflow_id": workflow_id, **more}
        patience = None if FULL else TASK
        named: dict[str, Any] = {"id": f"undo-{workflow_id}", "task_queue": queue, "task_timeout": patience}
        return await self.client.start_workflow("UndoRun", ask, **named)

    async def drive(self) -> list[tuple[WorkflowHandle[Any, Any], dict[str, Any]]]:
        """Let the errand happen to its end; return each workflow with its Result."""
        run = await self.start()
        ended = [(run, await self.person.attend(run))]
        if self.shape == "undo_run":
            undo = await self.start_undo(run.id)
            ended.append((undo, await self.person.attend(undo)))
        return ended

    async def check(self, ended: list[tuple[WorkflowHandle[Any, Any], dict[str, Any]]]) -> None:
        for handle, _ in ended:
            assert_no_task_failure(await handle.fetch_history())
        self.check_mail()
        self.check_bill(ended[0][1])
        (_, last) = ended[-1]
        if self.shape in {"rollback", "undo_run"}:
            self.check_undone(last)
        else:
            assert last["outcome"] == "completed", last

    def check_mail(self) -> None:
        """Every mail was sent once; it was asked for again only where a person had found that it was not sent."""
        sent = Counter(row[0] for row in self.mailbox.rows("SELECT recipient FROM sent"))
        assert sent == Counter(mail["to"] for mail in MAILS), sent
        asked = self.mailbox.rows("SELECT arguments FROM requests WHERE tool = 'send_email'")
        for to, count in Counter(json.loads(row[0])["to"] for row in asked).items():
            assert count <= 1 + self.person.resent[to], (to, count, self.person.resent)

    def check_undone(self, result: dict[str, Any]) -> None:
        """Each compensation was sent at most once, and what is called compensated was recalled."""
        asked = Counter(
            row[0] for row in self.mailbox.rows("SELECT arguments FROM requests WHERE tool = 'recall_email'")
        )
        assert set(asked.values()) <= {1}, asked
        states = Counter(effect["state"] for effect in result["undone"])
        assert states.total() == len(MAILS), result["undone"]
        recalled = len(MAILS) - len(self.mailbox.sent())
        assert states["compensated"] <= recalled <= states["compensated"] + states["parked"], result["undone"]
        assert result["outcome"] == ("rollback_failed" if states["parked"] else "rolled_back"), result

    def check_bill(self, result: dict[str, Any]) -> None:
        """The run charged at least what the model billed, lost answers included, and stayed under the ceiling."""
        billed = self.model.billed_micro(BILL)
        charged = round(result["usage"]["llm_cost_usd"] * 1_000_000)
        assert billed <= charged <= self.ceiling_usd * 1_000_000, (billed, result["usage"])


@asynccontextmanager
async def open_case(
    client: Client,
    nursery: Nursery,
    folder: Path,
    *,
    shape: Shape = "reminders",
    transport: Transport = "http",
    during_model: int = 0,
    notify: str = "",
    faults: Faults | None = None,
    declared: dict[str, Any] | None = None,
    declared_undo: dict[str, Any] | None = None,
    ceiling_usd: float = 0.5,
    rules: Any = None,
    kept: int | None = None,
    **settings: str,
) -> AsyncGenerator[Case]:
    """Lay out one run; at the end no worker of it is left. At full size its workers wait as they ship.

    `declared` replaces what is declared of `send_email`, `declared_undo` what is declared of `recall_email`, and
    `rules` the script of the model, of whose requests `kept` are kept.
    """
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    database = folder / "mailbox.db"
    script = Script(folder / "witness", during=during_model, success=shape != "rollback")
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ScriptedModel(rules or script, kept=kept))
        address = ""
        if transport == "http":
            address = await stack.enter_async_context(open_mailbox(database, faults or Faults()))
        dying = {"MAILBOX_DIE_AFTER_SEND": "2"} if shape == "lost" else {}
        toolbox = toolbox_of(folder, database, address=address, **dying)
        data = json.loads(toolbox.read_text(encoding="utf-8"))
        for tool, said in {"send_email": declared, "recall_email": declared_undo}.items():
            if said is not None:
                data["providers"]["mail"]["tools"][tool] = said
        toolbox.write_text(json.dumps(data), encoding="utf-8")
        told = {
            "BACKSTAY_HOME": str(folder / "home"),
            "BACKSTAY_TOOLBOX": str(toolbox),
            "BACKSTAY_POLICY": str(ROOT / "examples/policy.yaml"),
            "BACKSTAY_TASK_QUEUE": f"queue-{uuid.uuid4()}",
            "BACKSTAY_SETTLE_AFTER_SECONDS": "0.2",
            "BACKSTAY_REQUEST_DEADLINE_SECONDS": "3",
            **({"BACKSTAY_NOTIFY_URLS": notify} if notify else {}),
            **({"WAITS": "shipped"} if FULL else {}),
            **settings,
        }
        environment = worker_environment(client, model, **told)
        first = len(nursery.known)
        mailbox = Mailbox(database)
        case = Case(client, nursery, folder, environment, mailbox, model, Person(mailbox), shape, ceiling_usd)
        try:
            yield case
        finally:
            ours = [process for process in nursery.known[first:] if str(process.log).startswith(f"{folder}/")]
            await asyncio.gather(*(process.end() for process in ours))


async def killed_at(case: Case, point: Point) -> None:
    """Drive one run whose first worker dies at the point, and check everything."""
    await check_killed(case, point, case.drive, case.check)


async def check_killed(
    case: Case,
    point: Point,
    drive: Callable[[], Coroutine[Any, Any, Any]],
    check: Callable[[Any], Awaitable[None]],
    *,
    within_s: float = 100,
) -> None:
    """Drive what a case serves, whose first worker dies at the point, within so many seconds; then check it."""
    doomed = await case.worker(point.spec)
    driving = asyncio.create_task(drive())
    try:
        await asyncio.wait([driving, doomed.died], timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        async with asyncio.timeout(150):
            status = await asyncio.shield(doomed.died)
        assert status == -9, doomed.said()
        assert f"killed {point.spec}" in doomed.said()
        await case.worker()
        await check(await driving)
    finally:
        driving.cancel()
