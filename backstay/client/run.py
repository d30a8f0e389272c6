"""The handle of one run: follow it, decide about it, get its Result."""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import timedelta
from typing import Any, Literal, Protocol, TypeVar

from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateStage,
)
from temporalio.exceptions import CancelledError, TerminatedError
from temporalio.service import RPCError

from backstay import errors
from backstay.approvals import proof
from backstay.approvals.approval import Approval, ApprovalRequest, CallVerdict, Verdict
from backstay.approvals.deciding import admit
from backstay.client.failures import PASSING, of_rpc, ours, said_by
from backstay.effects.compensation import Undone
from backstay.errors import BackstayError, Unreachable
from backstay.shown import one_line
from backstay.task.event import Event, Timeline
from backstay.task.result import Result
from backstay.task.status import Status

Answer = TypeVar("Answer")
PACE_S = 0.3
PATIENCE_S = 60.0
"""How long an outage of Temporal may last before a run's follower gives up; the run itself does not."""
ANSWER_S = timedelta(seconds=10)
ACCEPTANCE_S = timedelta(seconds=20)
PROOF_S = 300


class StartUndo(Protocol):
    """Start an undo after the end."""

    def __call__(self, workflow_id: str, *, to_step: int | None = None, by: str = "") -> Awaitable["Run"]:
        """Return the run that undoes."""
        ...


class Run:
    """Follow one run, decide about it, and get its Result; a lost connection is no loss."""

    def __init__(self, handle: WorkflowHandle[Any, Any], start_undo: StartUndo, key: bytes | None = None) -> None:
        """Use `Backstay.start` or `Backstay.run` instead."""
        self._handle = handle
        self._start_undo = start_undo
        self._key = key
        # A run answers between its workflow tasks; questions that come in crowds only hold it up.
        self._asking = asyncio.Lock()

    @property
    def id(self) -> str:
        """Return the workflow id."""
        return self._handle.id

    async def status(self) -> Status:
        """Say what the run is doing and what waits for a person."""
        return Status.model_validate(await self._asked("status"))

    async def pending(self) -> list[ApprovalRequest]:
        """Return the requests that wait for a person, oldest first."""
        return [ApprovalRequest.model_validate(request) for request in await self._asked("pending")]

    async def budget(self) -> dict[str, Any]:
        """Return limits, what is used, and what is reserved."""
        return await self._asked("budget")

    async def plan(self) -> dict[str, Any] | None:
        """Return the plan and the step that comes next; None without a plan."""
        return await self._asked("plan")

    async def preview(self) -> dict[str, Any]:
        """Say what undo would do, last first, and what cannot be undone."""
        return await self._asked("undo_preview")

    async def timeline(self, after: int = 0) -> Timeline:
        """Return the events after number `after`; the last 100 are kept."""
        return Timeline.model_validate(await self._asked("timeline", {"after": after}))

    async def is_open(self) -> bool:
        """Say whether the run goes on; needs Temporal only, no worker."""
        with ours(self.id):
            try:
                described = await self._handle.describe(rpc_timeout=ANSWER_S)
            except ValueError:
                return True  # a status this client does not know, such as Temporal's own pause, is no end
        return described.status is WorkflowExecutionStatus.RUNNING

    async def events(self, after: int = 0) -> AsyncGenerator[Event]:
        """Yield what happens, in order, until the run has ended; workers may come and go meanwhile.

        Raises Unreachable when Temporal itself is away for a minute.
        """
        while True:
            is_open = await self._patiently(self.is_open)
            try:
                for event in (await self.timeline(after)).events:
                    after = event.n
                    yield event
            except Unreachable:
                if not is_open:
                    for event in await self._last_events(after):
                        yield event
                    return
            if not is_open:
                return
            await asyncio.sleep(PACE_S)

    async def result(self) -> Result:
        """Wait for the end and return how the run ended, also when it was cancelled.

        Raises TaskInvalid, RunOpen or InternalError when the run failed with that, Cancelled when it was terminated.
        """
        try:
            return Result.model_validate(await self._patiently(self._handle.result))
        except WorkflowFailureError as failure:
            match failure.cause:
                case CancelledError():
                    return await self._result_after_cancellation()
                case TerminatedError():
                    raise errors.Cancelled(
                        f"the run was terminated: {one_line(failure.cause.message, 300)}; its effects are kept, "
                        f"`backstay undo {self.id}` takes them back"
                    ) from None
                case cause:
                    raise said_by(cause) from None

    async def decide(self, approval: Approval | dict[str, Any], *, key: bytes | None = None) -> dict[str, Any]:
        """Decide a request; raises what the run refuses with, such as DecisionRefused or NotVerified."""
        admitted = approval if isinstance(approval, Approval) else admit(approval)
        return await self._updated("decide", json.loads(admitted.model_dump_json(exclude_defaults=True)), key)

    async def approve(self, request_id: str, *, by: str, key: bytes | None = None, **more: Any) -> dict[str, Any]:
        """Approve a request; `calls`, `comment`, `args_digest`, `event_id` are fields of an Approval."""
        return await self._decided(request_id, Verdict.APPROVE, by, key, more)

    async def reject(
        self, request_id: str, *, by: str, stop: bool = False, key: bytes | None = None, **more: Any
    ) -> dict[str, Any]:
        """Reject a request; with `stop` the run ends."""
        return await self._decided(request_id, Verdict.REJECT, by, key, {"stop": stop, **more})

    async def modify(
        self,
        request_id: str,
        arguments: dict[int, dict[str, Any]],
        *,
        by: str,
        key: bytes | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Approve a request with other arguments, by index of the call; keys that are not named stay."""
        changed = {index: CallVerdict(verdict="modify", arguments=given) for index, given in arguments.items()}
        return await self._decided(request_id, Verdict.MODIFY, by, key, {"calls": changed, **more})

    async def answer(
        self, request_id: str, answer: Any, *, by: str, key: bytes | None = None, **more: Any
    ) -> dict[str, Any]:
        """Answer a question with any JSON."""
        return await self._decided(request_id, Verdict.ANSWER, by, key, {"answer": answer, **more})

    async def settle(
        self,
        request_id: str,
        verdict: Literal["happened", "did_not_happen", "retry"],
        *,
        by: str,
        key: bytes | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Say what became of a call whose outcome nobody knows, or have a fault tried again."""
        return await self._decided(request_id, Verdict(verdict), by, key, more)

    async def top_up(self, *, by: str = "", key: bytes | None = None, **limits: Any) -> dict[str, Any]:
        """Raise limits, such as `max_steps=5`; return the new budget."""
        return await self._updated("top_up", {**limits, **_said(by)}, key)

    async def pause(self, reason: str = "", *, by: str = "", key: bytes | None = None) -> dict[str, Any]:
        """Hold the run before its next step or call."""
        return await self._updated("pause", {"reason": reason, **_said(by)}, key)

    async def resume(self, *, by: str = "", key: bytes | None = None) -> dict[str, Any]:
        """Let a paused run go on."""
        return await self._updated("resume", _said(by), key)

    async def cancel(self) -> None:
        """Cancel the run; what it did is taken back, unless the task says otherwise."""
        with ours(self.id):
            await self._handle.cancel(rpc_timeout=ANSWER_S)

    async def undo(self, to_step: int | None = None, *, by: str = "", key: bytes | None = None) -> "tuple[Undone, ...]":
        """Take effects back, those after step `to_step` or all; an open run goes on afterwards.

        After the end it starts `UndoRun` and waits for it; what could not be undone is in the list, as parked.
        """
        if not await self.is_open():
            undoing = await self.start_undo(to_step, by=by)
            return (await undoing.result()).undone
        answer = await self._updated("undo", {"to_step": to_step, **_said(by)}, key)
        return tuple(Undone.model_validate(one) for one in answer["undone"])

    async def start_undo(self, to_step: int | None = None, *, by: str = "") -> "Run":
        """Start taking back the effects of this run, which must have ended, and return the run that does it."""
        return await self._start_undo(self.id, to_step=to_step, by=by)

    async def _decided(
        self, request_id: str, verdict: Verdict, by: str, key: bytes | None, more: dict[str, Any]
    ) -> dict[str, Any]:
        calls = more.pop("calls", None)
        given = {"request_id": request_id, "verdict": verdict.value, "by": by, **more}
        if calls is not None:
            given["calls"] = {
                index: call.model_dump(exclude_none=True) if isinstance(call, CallVerdict) else call
                for index, call in calls.items()
            }
        return await self.decide(given, key=key)

    async def _updated(self, name: str, payload: dict[str, Any], key: bytes | None) -> dict[str, Any]:
        key = key or self._key
        if key is not None:
            expires = int(time.time()) + PROOF_S
            payload = {**payload, "proof": proof.sign(key, self.id, name, expires, payload)}
        with ours(self.id):
            update = await self._handle.start_update(
                name,
                payload,
                id=payload.get("event_id") or str(uuid.uuid4()),
                wait_for_stage=WorkflowUpdateStage.ACCEPTED,
                rpc_timeout=ACCEPTANCE_S,
            )
            return await update.result()

    async def _asked(self, query: str, *given: Any) -> Any:
        async with self._asking:
            with ours(self.id):
                return await self._handle.query(query, *given, rpc_timeout=ANSWER_S)

    async def _last_events(self, after: int) -> list[Event]:
        """Return what the Result itself tells when no worker answers queries any more."""
        try:
            return [event for event in (await self.result()).events if event.n > after]
        except BackstayError:
            return []

    async def _result_after_cancellation(self) -> Result:
        result = await self._patiently(lambda: self._asked("result"))
        if result is None:
            raise errors.Cancelled("the run was cancelled before it began")
        return Result.model_validate(result)

    async def _patiently(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask again while an outage may be passing; raises Unreachable when it lasts."""
        failing_since: float | None = None
        while True:
            began = time.monotonic()
            try:
                return await ask()
            except RPCError as error:
                failure = of_rpc(error, self.id)
                if error.status not in PASSING:
                    raise failure from None
            except Unreachable as error:
                failure = error
            # A wait that went well for long before it failed says that an earlier outage was over.
            if failing_since is None or time.monotonic() - began > PATIENCE_S:
                failing_since = time.monotonic()
            if time.monotonic() - failing_since > PATIENCE_S:
                raise failure
            await asyncio.sleep(PACE_S)


def _said(by: str) -> dict[str, Any]:
    return {"by": by} if by else {}
