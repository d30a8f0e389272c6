"""Start runs, and get the handles of runs that exist."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from backstay.approvals.proof import START, UNDO_RUN, Binding, ShownRequest
from backstay.authority import principal
from backstay.client.executions import Execution, described, first_of, open_executions, started_with, task_of, undo_id
from backstay.client.failures import error_from_failure, translated_errors
from backstay.client.run import PROOF_S, Run, signed
from backstay.client.stored import attached
from backstay.errors import DecisionRefused, RunNotFound, TaskInvalid
from backstay.shown import markdown_line, markdown_link, one_line
from backstay.task.task import URGENT, Task, too_long

READ_WITHIN = timedelta(minutes=2)
_SUMMARY_BYTES = 200
_ONCE = WorkflowIDReusePolicy.REJECT_DUPLICATE
_TRIES = 3
_AGAIN_S = 0.1


class Backstay:
    """Start runs, and get the handles of runs that exist."""

    def __init__(
        self,
        client: Client,
        *,
        task_queue: str = "backstay",
        approver_key: str | None = None,
        page: str | None = None,
    ) -> None:
        """Use `connect` instead; it provides a client."""
        self._page = page
        self.client = client
        self.task_queue = task_queue
        self._key = approver_key.encode() if approver_key else None

    async def start(
        self,
        task: Task | dict[str, Any] | str,
        id: str | None = None,  # noqa: A002 - Temporal's word
        *,
        attach: Sequence[Path] = (),
        once: bool = False,
    ) -> Run:
        """Start a run, or attach to the one that is open under the same id.

        `attach` are pictures and PDFs that the task is about; for them this program needs the settings of the worker.
        `once` is for a start that may be sent again: where the same task was started under the id before, return that
        run, though it has ended. Raises DecisionRefused where it was another task.
        A task with `by` is signed when the connection has the approver key.
        Raises TaskInvalid naming field, value and fix before anything is sent.
        """
        if once and not id:
            raise TaskInvalid("id: required with once; give the name under which the run is started once")
        admitted = Task.admit(task)
        workflow_id = id or f"task-{uuid.uuid4()}"
        ask = admitted.model_dump(mode="json", by_alias=True, exclude_unset=True)
        if attach:
            ask["attachments"] = [*ask.get("attachments", ()), *await attached(workflow_id, attach)]
            admitted = Task.admit(ask)
        if (refused := too_long(ask)) is not None:
            raise refused
        if self._key is not None and admitted.by and admitted.proof is None:
            ask = self.sign_start(workflow_id, ask)
        text = admitted.text or (admitted.plan.title or "plan" if admitted.plan else "")
        return await self._start(
            "RunTask",
            ask,
            workflow_id,
            summary=text,
            details=f"{markdown_line(text)}\n\nfor {markdown_line(admitted.user_id)}{self._link_to(workflow_id)}",
            priority=Priority(fairness_key=admitted.fairness_key),
            once=once,
        )

    def sign_start(self, workflow_id: str, task: dict[str, Any], *, life_s: float = PROOF_S) -> dict[str, Any]:
        """Return a task with a proof of who starts it, valid for one start under this id.

        Raises SettingsInvalid without a key.
        """
        binding = Binding(namespace=self.client.namespace, workflow_id=workflow_id, run_id="", update=START)
        return signed(self._key, binding, task, life_s=life_s)

    def run(self, workflow_id: str, run_id: str | None = None) -> Run:
        """Return the handle of a run, without asking whether it exists.

        `run_id`: of several runs of that name, the one whose chain has this execution; without it, the newest.
        """
        handle: WorkflowHandle[Any, Any] = self.client.get_workflow_handle(workflow_id, run_id=run_id)
        undo, follow = (partial(do, workflow_id, run_id=run_id) for do in (self.start_undo, self.follow_up))
        named = {"workflow_id": workflow_id} | ({} if run_id is None else {"run_id": run_id})
        return Run(self.client, handle, undo, partial(self._read_beside, named), follow, key=self._key)

    async def execution(self, workflow_id: str, run_id: str | None = None) -> Execution:
        """Return what Temporal knows of a run, the newest one of that name; needs no worker.

        Raises RunNotFound or Unreachable.
        """
        return await described(self.client, workflow_id, run_id)

    async def open_runs(self, limit: int = 100, named: str = "") -> list[Execution]:
        """Return the open runs that Temporal knows, the newest first; raises Unreachable.

        `named`: only those whose workflow ID begins so, wherever they stand among others.
        """
        return await open_executions(self.client, limit, named)

    async def task_of(self, workflow_id: str, first_run_id: str) -> dict[str, Any]:
        """Return the task that a run was started with, as it was sent; raises TaskInvalid where it is none."""
        return await task_of(self.client, workflow_id, first_run_id)

    async def follow_up(
        self,
        workflow_id: str,
        text: str,
        *,
        id: str | None = None,  # noqa: A002 - Temporal's word
        run_id: str | None = None,
        attach: Sequence[Path] = (),
        once: bool = False,
        **fields: Any,
    ) -> Run:
        """Start a run that goes on from one that has ended, for the same user and session; see `Run.follow_up`.

        `run_id` says which of several runs of that name, as for `run`. Of a run that Temporal has forgotten it is
        needed, and so is `user_id`, with the `session_id` if there was one.
        """
        if run_id is None:
            first = (await described(self.client, workflow_id)).first_run_id
        else:
            first = await first_of(self.client, workflow_id, run_id)
        same: dict[str, Any] = {}
        try:
            before = await task_of(self.client, workflow_id, first)
            same = {name: before[name] for name in ("user_id", "session_id") if name in before}
        except RunNotFound:
            if "user_id" not in fields:
                raise
        follows = {"workflow_id": workflow_id, "run_id": first}
        return await self.start({"text": text, **same, "follows": follows, **fields}, id, attach=attach, once=once)

    async def start_undo(
        self,
        workflow_id: str,
        *,
        run_id: str | None = None,
        to_step: int | None = None,
        last_seen: int | None = None,
        done: int | None = None,
        comment: str = "",
        by: str = "",
        key: bytes | None = None,
    ) -> Run:
        """Start to undo the effects of a run that has ended, or attach to the same undo that is already open.

        `last_seen`: the newest effect that was shown; the undo ends with DecisionRefused if there is a later one.
        `done` names a parked effect that `by` has undone by hand: it is recorded as that, with the comment, and
        nothing is called. `key` signs in place of the connection's. `run_id` says which of several runs of that name,
        as for `run`. Raises DecisionRefused where something else is open under the id of the undo.
        """
        ask: dict[str, Any] = {"workflow_id": workflow_id}
        ask |= {} if run_id is None else {"run_id": await first_of(self.client, workflow_id, run_id)}
        ask |= {} if to_step is None else {"to_step": to_step}
        ask |= {} if last_seen is None else {"last_seen": last_seen}
        ask |= {} if done is None else {"done": done}
        ask |= {"comment": comment} if comment else {}
        ask |= {"by": principal(by)} if by else {}
        if (key := key or self._key) is not None and by:
            ask = await self._signed_undo(ask, key)
        return await self._start(
            UNDO_RUN,
            ask,
            undo_id(workflow_id),
            summary=f"undo {workflow_id}",
            details=f"Undoes the effects of {markdown_line(workflow_id)}{self._link_to(workflow_id)}",
            priority=Priority(priority_key=URGENT),
        )

    async def _signed_undo(self, ask: dict[str, Any], key: bytes) -> dict[str, Any]:
        """Return what is asked of an undo with a proof, which names the first execution of the run."""
        named = {name: ask[name] for name in ("workflow_id", "run_id") if name in ask}
        run = self.run(**named)
        try:
            return await run.sign(UNDO_RUN, ask, key=key)
        except RunNotFound:
            # Temporal has forgotten the run; the store has not, which a worker reads.
            known = await self._read_beside(named, {"after": 0, "limit": 1})
            if "run_id" not in known:  # as told by workers of an older version
                raise
        return await run.sign(UNDO_RUN, ask, key=key, shown=ShownRequest(run_id=known["run_id"]))

    async def _read_beside(self, named: dict[str, str], reading: dict[str, Any]) -> dict[str, Any]:
        """Read a page of what the run that is named has stored, by a workflow of its own."""
        try:
            with translated_errors(named["workflow_id"]):
                return await self.client.execute_workflow(
                    "ReadRun",
                    {**named, **reading},
                    id=f"read-{uuid.uuid4()}",
                    task_queue=self.task_queue,
                    execution_timeout=READ_WITHIN,
                    priority=Priority(priority_key=URGENT),
                )
        except WorkflowFailureError as failure:
            raise error_from_failure(failure.cause) from None

    def _link_to(self, workflow_id: str) -> str:
        """Return a link to the page of a run, in Markdown; empty when nobody said where it is."""
        if self._page is None:
            return ""
        name = quote(workflow_id, safe="")
        return f"\n\n{markdown_link('The page of this run', f'{self._page}/runs/{name}')}"

    async def _start(
        self,
        kind: str,
        ask: dict[str, Any],
        workflow_id: str,
        *,
        summary: str,
        details: str,
        priority: Priority,
        once: bool = False,
    ) -> Run:
        line = one_line(summary, _SUMMARY_BYTES).encode()[:_SUMMARY_BYTES].decode(errors="ignore")
        start = partial(
            self.client.start_workflow,
            kind,
            ask,
            id=workflow_id,
            task_queue=self.task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            id_reuse_policy=_ONCE if once else WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            static_summary=line,
            static_details=details,
            priority=priority,
        )
        try:
            with translated_errors(workflow_id):
                await _start_again(start, times=_TRIES if once else 1)
        except WorkflowAlreadyStartedError:
            await self._require_same(kind, ask, workflow_id, once=once)
        return self.run(workflow_id)

    async def _require_same(self, kind: str, ask: dict[str, Any], workflow_id: str, *, once: bool) -> None:
        """Raise DecisionRefused unless what bears an id is what was asked for, as far as that matters.

        A run that is open goes on with its own task; `once`, that must be the one that was asked for. An undo must be
        of the same run, and to the same step.
        """
        found = await described(self.client, workflow_id)
        shown = one_line(workflow_id, 200)
        if found.kind != kind:
            raise DecisionRefused(
                f"id: {shown} is the id of an {'earlier' if once else 'open'} {one_line(found.kind, 80)}, which is no "
                f"{kind}; {'use another id' if once else 'end that one, and try again'}"
            )
        if kind != UNDO_RUN and not once:
            return
        _, given = await started_with(self.client, workflow_id, found.first_run_id)
        other = given if isinstance(given, dict) else {}
        if kind != UNDO_RUN:
            if _unsigned(other) != _unsigned(ask):
                raise DecisionRefused(f"id: another task was started as {shown}; use another id")
            return
        if other.get("workflow_id") != ask["workflow_id"] or await self._is_of_another(other, found, ask):
            raise DecisionRefused(f"id: {shown} is open and undoes another run; let it end, and undo again")
        if other.get("done") != ask.get("done"):
            raise DecisionRefused(f"done: another undo of this run is under way: {shown}; let it end, and try again")
        if other.get("to_step") != ask.get("to_step"):
            steps = "everything" if other.get("to_step") is None else f"what came after step {other['to_step']!r}"
            raise DecisionRefused(
                f"to_step: an undo of this run is under way, which undoes {one_line(steps, 80)}: {shown}; "
                "let it end, and undo again"
            )

    async def _is_of_another(self, theirs: dict[str, Any], undo: Execution, ours: dict[str, Any]) -> bool:
        """Return whether an open undo is of another run of the same id than the one that is asked for."""
        named, wanted = theirs.get("run_id"), ours.get("run_id")
        if named and wanted:
            return named != wanted
        try:
            newest = await described(self.client, ours["workflow_id"])
        except RunNotFound:
            # Temporal has forgotten the run; the store has not.
            return False
        if not named and newest.started_at > undo.started_at:
            return True
        return (named or newest.first_run_id) != (wanted or newest.first_run_id)


async def _start_again(start: Callable[[], Awaitable[object]], *, times: int) -> None:
    """Send a start, and send it again where the connection or the server gave it up, which Temporal's client does not.

    A start that may have arrived can be sent again only if nothing begins anew.
    """
    for left in reversed(range(times)):
        try:
            await start()
        except RPCError as error:
            if error.status is not RPCStatusCode.CANCELLED or not left:
                raise
            await asyncio.sleep(_AGAIN_S)
        else:
            return


def _unsigned(task: dict[str, Any]) -> dict[str, Any]:
    """Return a task without its proof, which is made anew for each start."""
    return {name: value for name, value in task.items() if name != "proof"}
