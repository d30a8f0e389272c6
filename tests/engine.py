"""A whole engine for one test: worker, store, mailbox and scripted model, all real."""

import asyncio
import json
import os
import sqlite3
import sys
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio import workflow
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.workflowservice.v1 import (
    DeleteWorkflowExecutionRequest,
    PauseWorkflowExecutionRequest,
    ResetWorkflowExecutionRequest,
    UnpauseWorkflowExecutionRequest,
)
from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowHistory,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.service import RPCError
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    Replayer,
    UnsandboxedWorkflowRunner,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

import opening
import worker
from backstay.client.connecting import DATA_CONVERTER
from backstay.client.roles import find_sandbox
from backstay.settings import Settings
from backstay.testing import Conversation, Reply, ScriptedModel
from examples.mailbox.faults import Faults
from sandbox.programs.sandbox import Sandbox
from store.blobs.shown import FileBlobStore
from tests.mailbox_server import open_mailbox
from tests.stores import prepare
from tests.whole_ends import WholeEnds
from workflows import WORKFLOWS

ROOT = Path(__file__).resolve().parent.parent
NO_FAILURES = (
    # A reset is noted in the history as a failed task.
    "WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW",
    # The run wanted to end while something new arrived, such as the answer of a receiver that had hung. The server
    # refuses to close over news that the run has not read, and gives it a task with them: no code has failed.
    "WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND",
    # So much arrived during a task that the server closed it and gave the run another one.
    "WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND",
)
PLANS = "default: {plans: true}\n"
"""Profiles under which models may propose plans."""
PRICES = {"scripted": {"input": 1.0, "cached": 0.1, "output": 4.0}}
CACHED = int(os.environ.get("ENGINE_CACHED", "1000"))
"""How many runs an engine keeps between their tasks; `make soak` opens the same engines with none."""


@dataclass
class Mailbox:
    """Look into the mailbox's own database."""

    path: Path

    def rows(self, query: str, *values: Any, **named: Any) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.path, timeout=10) as connection:
            return connection.execute(query, named or values).fetchall()

    async def refuse_recall(self, workflow_id: str, number: int = 1) -> None:
        """Let it refuse to recall what an effect of a run sent; it may be served from this loop, amid a write."""
        gone = "UPDATE sent SET recalled_at = 'before' WHERE effect_id LIKE ?"
        await asyncio.to_thread(self.rows, gone, f"{workflow_id}/%/{number}")

    def sent(self) -> list[str]:
        return [row[0] for row in self.rows("SELECT recipient FROM sent WHERE recalled_at IS NULL ORDER BY id")]

    def requests(self, tool: str) -> int:
        return self.rows("SELECT count(*) FROM requests WHERE tool = ?", tool)[0][0]


class Ran(Interceptor):
    """Note which executions a worker was given; the server would list them a moment later only."""

    def __init__(self) -> None:
        self.executions: dict[tuple[str, str], None] = {}

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002 - Temporal names it
        executions = self.executions

        class Noting(WorkflowInboundInterceptor):
            async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002 - Temporal names it
                info = workflow.info()
                executions[info.workflow_id, info.run_id] = None
                return await super().execute_workflow(input)

        return Noting


@dataclass
class Engine:
    """Drive one engine through its Temporal client only."""

    client: Client
    settings: Settings
    mailbox: Mailbox
    model: ScriptedModel
    ran: Ran = field(default_factory=Ran)
    ends: WholeEnds = field(default_factory=WholeEnds)

    async def start(self, task: Any, workflow_id: str | None = None, **options: Any) -> WorkflowHandle[Any, Any]:
        """Start a run by name with plain JSON, as a foreign program would."""
        name = workflow_id or f"task-{uuid.uuid4()}"
        queue = self.settings.task_queue
        return await self.client.start_workflow("RunTask", task, id=name, task_queue=queue, **options)

    async def undo(self, workflow_id: str, **more: Any) -> WorkflowHandle[Any, Any]:
        """Start the undo of a run that has ended, under the id that it has by default."""
        ask, queue = {"workflow_id": workflow_id, **more}, self.settings.task_queue
        return await self.client.start_workflow("UndoRun", ask, id=f"undo-{workflow_id}", task_queue=queue)


def toolbox_of(folder: Path, database: Path, *, address: str = "", **env: str) -> Path:
    """Write a toolbox.json whose mailbox answers at an address, or is a child that keeps its mail in `database`."""
    data = json.loads((ROOT / "examples/toolbox.json").read_text(encoding="utf-8"))
    mail = data["mcpServers"]["mail"]
    mail.update(command=sys.executable, args=[str(ROOT / "examples/mailbox/server.py")])
    mail["env"] = {**mail.get("env", {}), "MAILBOX_DB": str(database), **env}
    if address:
        data["mcpServers"]["mail"] = {"url": address}
    path = folder / "toolbox.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def share_images(home: Path) -> Path:
    """Let a home find the root images of all tests instead of building its own."""
    images = ROOT / "build" / "sandbox" / "images"
    images.mkdir(parents=True, exist_ok=True)
    home.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (home / "images").symlink_to(images)
    return home


@asynccontextmanager
async def engine(
    client: Client,
    folder: Path,
    rules: Any,
    *,
    env: dict[str, str] | None = None,
    policy: str | None = None,
    profiles: str | None = None,
    cached: int = CACHED,
    replayed: bool = True,
    sandbox: Sandbox | None = None,
    **settings: Any,
) -> AsyncGenerator[Engine]:
    """Open an engine on a queue of its own; at the end the history of each of its runs is replayed, if `replayed`.

    A run that is completed though the endpoint did not say that its model's last answer is whole fails the test.
    With nothing cached, every workflow task replays its run from the beginning, which costs a long run most of its
    time. Unless a toolbox is given, its mailbox speaks HTTP from this process, which costs no start of another one.
    """
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    database = folder / "mailbox.db"
    async with AsyncExitStack() as stack:
        if "toolbox" not in settings:
            address = await stack.enter_async_context(open_mailbox(database, Faults.read(env or {})))
            settings["toolbox"] = toolbox_of(folder, database, address=address)
        model = await stack.enter_async_context(ScriptedModel(rules))
        policy_path = folder / "policy.yaml"
        policy_path.write_text(
            policy if policy is not None else (ROOT / "examples/policy.yaml").read_text(encoding="utf-8"),
            encoding="utf-8",
        )
        if profiles is not None:
            (folder / "profiles.yaml").write_text(profiles, encoding="utf-8")
        values: dict[str, Any] = {
            "profiles": folder / "profiles.yaml",
            "home": folder / "home",
            "policy": policy_path,
            "model": "scripted",
            "openai_base_url": model.base_url,
            "openai_api_key": "test-key-of-the-scripted-model",
            "prices": PRICES,
            "task_queue": f"queue-{uuid.uuid4()}",
            "settle_after_seconds": 0.2,
            **settings,
        }
        opened = Settings.load(None, **values)
        if not opened.database_url:
            await asyncio.to_thread(prepare, opened.home)
        resources = await stack.enter_async_context(opening.open_resources(opened, client))
        # Model, mailbox, test and worker share one interpreter here: where it is busy, a look at how long a workflow
        # task takes would measure the others. Workers in processes of their own keep that look.
        ran = Ran()
        options = {"max_cached_workflows": cached, "debug_mode": True, "interceptors": [ran]}
        await stack.enter_async_context(worker.open_worker(client, resources, **options))
        if opened.notify_urls or opened.smtp_url:
            await stack.enter_async_context(worker.telling(opened, client, resources.store))
        if sandbox is not None:
            await stack.enter_async_context(sandbox_role(client, opened, sandbox))
        made = Engine(client, opened, Mailbox(database), model, ran)
        await made.ends.listen([resources.endpoints.default, *resources.endpoints.clients.values()])
        yield made
        await made.ends.assert_none_is_taken_for_whole(client)
        if replayed and cached:
            await replay_all(client, ran)


def replayer(*, sandboxed: bool, **options: Any) -> Replayer:
    """Return what replays histories of the present code."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules("backstay", "pydantic_core", "annotated_types")
    runner = SandboxedWorkflowRunner(restrictions=restrictions) if sandboxed else UnsandboxedWorkflowRunner()
    # Without a build id Temporal reads the code of all imported modules to make one up. The SDK takes an activation of
    # two seconds for a deadlock, and on a busy machine the imports of a sandbox alone may last so long.
    options = {"workflow_runner": runner, "build_id": "replayed", "debug_mode": True, **options}
    return Replayer(workflows=WORKFLOWS, data_converter=DATA_CONVERTER, **options)


async def replay_all(client: Client, ran: Ran) -> None:
    """Replay every execution that a worker was given.

    Raises NondeterminismError for one that would do something else now.
    Runs after a reset are left out: their history names the run id of the run that was reset, so a replay would take
    them for that one.
    """

    async def histories_without_resets() -> AsyncGenerator[WorkflowHistory]:
        for name, run_id in list(ran.executions):
            history = await client.get_workflow_handle(name, run_id=run_id).fetch_history()
            failed = [event.workflow_task_failed_event_attributes for event in history.events]
            if not any(
                each.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW for each in failed
            ):
                yield history

    replaying = replayer(sandboxed=False)
    async with replaying.workflow_replay_iterator(histories_without_resets()) as results:
        async for result in results:
            if result.replay_failure is not None:
                raise result.replay_failure


@asynccontextmanager
async def sandbox_role(client: Client, settings: Settings, sandbox: Sandbox) -> AsyncGenerator[None]:
    """Serve programs beside the engine, in jails."""
    if settings.payloads == "files":
        # Engines of tests mark no folder as that of their store.
        blobs, store = FileBlobStore(opening.blobs_of(settings)), ""
    else:
        blobs, store = await opening.find_blobs(client, settings, "")
    async with worker.open_sandbox_worker(client, settings, sandbox, blobs, store):
        async with asyncio.timeout(150):
            while not await find_sandbox(client, settings):
                await asyncio.sleep(0.05)
        yield


async def pending(handle: WorkflowHandle[Any, Any], count: int = 1, within_s: float = 150) -> list[dict[str, Any]]:
    """Wait until at least so many requests are open.

    A query can be answered from a workflow task that is still under way, so the task is waited for, too. A run whose
    history has not grown since it was asked would answer the same.
    """
    asked = None
    async with asyncio.timeout(within_s):
        while True:
            described = await handle.describe()
            written = (described.run_id, described.history_length)
            if written != asked and not described.raw_description.HasField("pending_workflow_task"):
                found = await through_switches(lambda: handle.query("pending"))
                if len(found) < count:
                    asked = written
                elif not await is_deciding(handle):
                    return found
            await asyncio.sleep(0.1)


async def through_switches(send: Callable[[], Awaitable[Any]]) -> Any:
    """Send a query or an update again while its run continues as a new execution, as every client must."""
    while True:
        try:
            return await send()
        except (WorkflowQueryFailedError, WorkflowUpdateFailedError) as error:
            said = f"{error} {getattr(error.cause, 'type', '')}"
            if "continuing as a new execution" not in said and "RunContinuing" not in said:
                raise
        await asyncio.sleep(0.1)


async def update(handle: WorkflowHandle[Any, Any], name: str, payload: Any) -> Any:
    """Send an update, again while the run continues as a new execution."""
    return await through_switches(lambda: handle.execute_update(name, payload))


async def is_deciding(handle: WorkflowHandle[Any, Any]) -> bool:
    """Return whether a workflow task of the run is scheduled or under way."""
    return (await handle.describe()).raw_description.HasField("pending_workflow_task")


async def reset(
    engine: Engine, handle: WorkflowHandle[Any, Any], task: int, execution: str | None = None
) -> WorkflowHandle[Any, Any]:
    """Have Temporal run a closed run again from one of its workflow tasks, by index; return the new execution.

    `execution`: the run id of the execution, by default of the first one.
    """
    execution = execution or handle.first_execution_run_id
    history = await engine.client.get_workflow_handle(handle.id, run_id=execution).fetch_history()
    tasks = [event.event_id for event in history.events if event.HasField("workflow_task_completed_event_attributes")]
    answer = await engine.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=engine.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=handle.id, run_id=execution),
            reason="a test",
            workflow_task_finish_event_id=tasks[task],
            request_id=str(uuid.uuid4()),
        )
    )
    return engine.client.get_workflow_handle(handle.id, run_id=answer.run_id)


@asynccontextmanager
async def held_by_temporal(client: Client, workflow_id: str) -> AsyncGenerator[None]:
    """Have Temporal itself pause a run while the block runs."""
    named = {"namespace": client.namespace, "workflow_id": workflow_id, "identity": "a test"}
    pause = PauseWorkflowExecutionRequest(**named, request_id=str(uuid.uuid4()))
    await client.workflow_service.pause_workflow_execution(pause)
    try:
        yield
    finally:
        unpause = UnpauseWorkflowExecutionRequest(**named, request_id=str(uuid.uuid4()))
        await client.workflow_service.unpause_workflow_execution(unpause)


async def forgotten(engine: Engine, workflow_id: str, run_id: str = "") -> None:
    """Have Temporal forget an execution, by default the newest one, as it does when the time to keep it is over."""
    execution = WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
    forget = DeleteWorkflowExecutionRequest(namespace=engine.client.namespace, workflow_execution=execution)
    handle = engine.client.get_workflow_handle(workflow_id, run_id=run_id or None)
    run_id = run_id or (await handle.describe()).run_id
    await engine.client.workflow_service.delete_workflow_execution(forget)
    async with asyncio.timeout(60):
        with suppress(RPCError):
            while True:
                await handle.describe()
                await asyncio.sleep(0.1)
    # Nothing is left of it that could be replayed.
    engine.ran.executions.pop((workflow_id, run_id), None)


def assert_no_task_failure(history: WorkflowHistory) -> None:
    """Assert that no workflow task of a run has failed; what the server only notes as a failure is none."""
    harmless = {WorkflowTaskFailedCause.Value(name) for name in NO_FAILURES}
    failed = [
        event
        for event in history.events
        if event.HasField("workflow_task_failed_event_attributes")
        and event.workflow_task_failed_event_attributes.cause not in harmless
    ]
    assert not failed, failed


def differing(requests: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[tuple[str, Any, Any]]:
    """Return the fields in which requests differ; their time may be that of a workflow task that was taken again."""
    assert len(requests) == len(others)
    pairs = zip(requests, others, strict=True)
    return [
        (key, pair.get(key), other.get(key))
        for pair, other in pairs
        for key in sorted({*pair, *other} - {"created_at", "expires_at"})
        if pair.get(key) != other.get(key)
    ]


class Scripts:
    """Play one script per task text, so that many runs share one engine; after a script's last reply comes finish."""

    def __init__(self) -> None:
        self._scripts: dict[str, tuple[Reply | Callable[[Conversation], Reply], ...]] = {}

    def task(self, *replies: Reply | Callable[[Conversation], Reply], **fields: Any) -> dict[str, Any]:
        """Return a task whose model answers with these replies, one per step."""
        text = f"script {len(self._scripts):04}"
        self._scripts[text] = replies
        return {"text": text, **fields}

    def __call__(self, conversation: Conversation) -> Reply:
        if "finish" not in conversation.tools:
            return Reply(text="closing summary")
        replies = self._scripts[conversation.task[:11]]
        step = sum(1 for message in conversation.messages if message.get("role") == "assistant")
        if step < len(replies):
            reply = replies[step]
            return reply if isinstance(reply, Reply) else reply(conversation)
        return Reply(calls=[("finish", {"summary": "done", "outputs": {}, "success": True})])


async def ended(handle: WorkflowHandle[Any, Any], within_s: float = 150) -> dict[str, Any]:
    """Wait for the Result, and assert that no workflow task failed on the way."""
    async with asyncio.timeout(within_s):
        result = await handle.result()
    assert_no_task_failure(await handle.fetch_history())
    return result


__all__ = [
    "Engine",
    "Mailbox",
    "Scripts",
    "assert_no_task_failure",
    "differing",
    "ended",
    "engine",
    "forgotten",
    "held_by_temporal",
    "pending",
    "through_switches",
    "toolbox_of",
    "update",
]
