"""The handle of one run: follow it, decide its requests, get its Result."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar, overload

from pydantic import TypeAdapter, ValidationError
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowUpdateStage
from temporalio.exceptions import CancelledError, TerminatedError
from temporalio.exceptions import TimeoutError as TimedOutError

from backstay import errors
from backstay.approvals import proof
from backstay.approvals.admission import NOT_OPEN, admit
from backstay.approvals.approval import Approval, ApprovalRequest
from backstay.client.decisions import Decisions
from backstay.client.executions import ANSWERED_WITHIN, Execution, described, first_of
from backstay.client.failures import error_from_failure, run_ended, translated_errors
from backstay.client.sending import POLL_S, PROOF_S, repeated_while_continuing, signed, through_outages, update_id
from backstay.client.stored import revealed, stored_output, stored_result
from backstay.client.workers import asking, minded
from backstay.effects.compensation import Undone
from backstay.errors import (
    BackstayError,
    DecisionRefused,
    NotVerified,
    QuorumPending,
    RunContinuing,
    RunNotFound,
    Transient,
)
from backstay.shown import one_line, shell_words
from backstay.task.event import Event, Timeline
from backstay.task.result import Result
from backstay.task.status import Status

_log = logging.getLogger("backstay.client")
Output = TypeVar("Output")
ACCEPTED_WITHIN = timedelta(seconds=20)
OPENING_S = 2.0
"""How long a decision is tried again while the run does not know its request."""


class Run(Decisions):
    """Follow one run, decide its requests, and get its Result; a lost connection is not a loss."""

    def __init__(
        self,
        client: Client,
        handle: WorkflowHandle[Any, Any],
        start_undo: Callable[..., Awaitable["Run"]],
        read_beside: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]],
        follow: Callable[..., Awaitable["Run"]],
        *,
        key: bytes | None = None,
    ) -> None:
        """Use `Backstay.start` or `Backstay.run` instead."""
        self.client, self._handle = client, handle
        self._start_undo = start_undo
        self._read_beside = read_beside
        self._follow = follow
        self._key = key
        # A run answers queries between its workflow tasks, so several at once would only delay it.
        self._querying = asyncio.Lock()
        super().__init__()

    @property
    def id(self) -> str:
        """Return the workflow id."""
        return self._handle.id

    async def status(self) -> Status:
        """Return what the run is doing and which requests wait for a person."""
        status = Status.model_validate(await self._query("status"))
        self.looked_at(status.pending)
        return status

    async def pending(self) -> list[ApprovalRequest]:
        """Return the requests that wait for a person, oldest first."""
        requests = [ApprovalRequest.model_validate(request) for request in await self._query("pending")]
        self.looked_at(requests)
        return requests

    async def budget(self) -> dict[str, Any]:
        """Return limits, what is used, and what is reserved."""
        return await self._query("budget")

    async def plan(self, plan_id: str | None = None) -> dict[str, Any] | None:
        """Return a plan with the states of its steps, the latest one by default; None when there is no such plan."""
        named = {} if plan_id is None else {"plan_id": plan_id}
        shown = part = await self._query("plan", *([named] if named else []))
        while part is not None and part.get("next") is not None:
            # What a long plan may be meanwhile does not matter: its steps come no other way.
            part = await self._query("plan", {"plan_id": shown["plan"]["id"], "offset": part["next"]})
            if part is not None:
                shown["plan"]["steps"] += part["plan"]["steps"]
                shown["steps"] += part["steps"]
        if shown is not None:
            shown.pop("next", None)
        return shown

    async def preview(self) -> dict[str, Any]:
        """Return what undo would do, newest first, and what cannot be undone."""
        return await self._query("undo_preview")

    async def timeline(self, after: int = 0) -> Timeline:
        """Return the events after number `after`; the last 100 are kept."""
        return Timeline.model_validate(await self._query("timeline", {"after": after}))

    async def read(self, ref: str, path: str = "") -> Any:
        """Return a stored result of this run, or what is at `path` in it, such as `invoices.3.total`.

        Raises ArgumentsInvalid when this run has stored nothing under `ref`, or has nothing at `path`.
        """
        parts: list[Any] = []
        offset: int | None = 0
        is_json = False
        while offset is not None:
            page = await self._page({"ref": ref, "path": path, "offset": offset})
            parts.append(page["value"])
            offset, is_json = page["next"], page.get("is_json", False)
        if is_json:
            return json.loads("".join(parts))
        if len(parts) == 1:
            return parts[0]
        if isinstance(parts[0], list):
            return [item for part in parts for item in part]
        return "".join(parts)

    async def messages(self) -> AsyncGenerator[dict[str, Any]]:
        """Yield what the model was told and what it said, as messages of Chat Completions, with every answer whole.

        Answers of the model have `model`, `at` and `usage`, and every message its `step`. Of a plan, the calls of its
        steps take the place of what a model says. Nothing of it gets into the history of an open run.
        """
        following: int | None = 0
        while following is not None:
            page = await self._read_beside({"messages": following})
            for message in page["messages"]:
                if (ref := message.pop("content_ref", None)) is not None:
                    message["content"] = await self._text(ref)
                yield message
            following = page["next"]

    async def _text(self, ref: str) -> str:
        parts: list[str] = []
        offset: int | None = 0
        while offset is not None:
            page = await self._read_beside({"ref": ref, "offset": offset, "as_text": True})
            parts.append(page["value"])
            offset = page["next"]
        return "".join(parts)

    async def stored_events(self, after: int = 0) -> AsyncGenerator[Event]:
        """Yield every event after number `after` that the store holds; `timeline` keeps the last 100 only."""
        following: int | None = after
        while following is not None:
            page = await self._page({"after": following})
            for event in page["events"]:
                yield Event.model_validate(event)
            following = page["next"]

    async def _page(self, reading: dict[str, Any]) -> dict[str, Any]:
        if await self.is_known_as_open():
            try:
                return await self._update("read", reading, key=None)
            except (DecisionRefused, RunContinuing):
                pass  # As many others read as the run answers at a time, or it does not go on soon enough.
            except BackstayError:
                if await self.is_known_as_open():
                    raise
        return await self._read_beside(reading)

    async def is_open(self, run_id: str = "") -> bool:
        """Return whether the run is open; needs only Temporal, no worker.

        `run_id`: the run id of its first execution; a later run may bear the same name.
        """
        with translated_errors(self.id):
            try:
                described = await (await self._newest()).describe(rpc_timeout=ANSWERED_WITHIN)
            except ValueError:
                return True  # a status this client does not know, such as Temporal's own pause, does not end a run
        first = described.raw_description.workflow_execution_info.first_run_id
        return described.close_time is None and (not run_id or first in {"", run_id})

    async def is_known_as_open(self) -> bool:
        """Return whether the run is open; one that Temporal has forgotten is not, though the store may know it."""
        with suppress(RunNotFound):
            return await self.is_open()
        return False

    async def _left_out(self, after: int, timeline: Timeline) -> list[Event]:
        """Return from the store what the run no longer keeps of its timeline."""
        after = max(after, timeline.first - 1)
        if timeline.first_kept <= after + 1:
            return []
        return [event async for event in self.stored_events(after) if event.n < timeline.first_kept]

    async def events(self, after: int = 0) -> AsyncGenerator[Event]:
        """Yield the events, in order, until the run has ended; workers may stop and start meanwhile.

        Raises Unreachable when Temporal does not answer for a minute; what the store cannot give now is waited for.
        """
        while True:
            is_open = await through_outages(self.id, self.is_open)
            try:
                timeline = await self.timeline(after)
                for event in (*await self._left_out(after, timeline), *timeline.events):
                    after = event.n
                    yield event
            except Transient:
                if not is_open:
                    for event in await self._last_events(after):
                        yield event
                    return
            if not is_open:
                return
            await asyncio.sleep(POLL_S)

    @overload
    async def result(self) -> Result: ...
    @overload
    async def result(self, output: type[Output]) -> Output: ...
    async def result(self, output: type[Output] | None = None) -> Result | Output:
        """Wait for the end and return the Result, also of a cancelled run; with a type, the output as a value of it.

        Raises TaskInvalid, RunOpen or InternalError when the run failed with that, RunTerminated when it was
        terminated, and RunTimedOut when a time limit of Temporal ended it.
        With a type also raises the error of a run that did not complete, and OutputInvalid when there is no output or
        it does not fit. An output that is too large for the Result is read from the store, as `reveal` does; so is the
        Result of a run that Temporal no longer keeps.
        """
        try:
            ended = await self._ended()
        except RunNotFound:
            # Temporal keeps an ended run for a time only, and the store has it all the same.
            if (stored := await stored_result(self.id, self._handle.run_id)) is None:
                raise
            ended = Result.model_validate(stored)
        return ended if output is None else await self._output(ended, output)

    async def _output(self, ended: Result, kind: type[Output]) -> Output:
        if not ended.success:
            raise ended.error.error() if ended.error else errors.Unfinished(ended.final_summary or None)
        value = ended.output
        if ended.output_ref is not None:
            value = await stored_output(self.id, self._handle.run_id, ended.output_ref)
        try:
            return TypeAdapter(kind).validate_json(json.dumps(value))
        except ValidationError as error:
            if value is None:
                raise errors.OutputInvalid("the run has no output; give its task an output_schema") from None
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, ("output", *first["loc"])))
            raise errors.OutputInvalid(f"{where}: {first['msg']}; the task has another output_schema") from None

    async def _ended(self) -> Result:
        while True:
            newest, first = await through_outages(self.id, self._chain)
            # Another run may begin under this name before this one is asked about again.
            named = newest.run_id if newest.first_run_id == first else self._handle.run_id
            handle: WorkflowHandle[Any, Any] = self.client.get_workflow_handle(self.id, run_id=named)
            try:
                async with minded(self.client, self.id, _log.warning):
                    return Result.model_validate(await through_outages(self.id, handle.result))
            except WorkflowFailureError as failure:
                cause = failure.cause
            if not isinstance(cause, TerminatedError) or not await self._goes_on(first):
                return await self._without_result(cause)

    async def _goes_on(self, first: str) -> bool:
        """Return whether the run goes on, or has ended, in another execution: a reset terminates the one before."""
        try:
            newest = await through_outages(self.id, lambda: described(self.client, self.id))
        except RunNotFound:
            return False
        return newest.first_run_id == first and newest.status != "terminated"

    async def _without_result(self, cause: BaseException) -> Result:
        match cause:
            case CancelledError():
                return await self._result_after_cancellation()
            case TerminatedError():
                said = one_line(cause.message, 300)
                raise errors.RunTerminated(f"the run was terminated: {said}; {self._kept}")
            case TimedOutError():
                raise errors.RunTimedOut(f"a time limit of Temporal ended the run; {self._kept}")
            case _:
                raise error_from_failure(cause)

    @property
    def signs(self) -> bool:
        """Return whether what this handle sends is signed."""
        return self._key is not None

    async def decide(self, approval: Approval | dict[str, Any], *, key: bytes | None = None) -> dict[str, Any]:
        """Decide a request; raises DecisionRefused or NotVerified when the run does not accept the decision."""
        admitted = approval if isinstance(approval, Approval) else admit(approval)
        payload = json.loads(admitted.model_dump_json(exclude_defaults=True))
        until, signs_again = time.monotonic() + OPENING_S, (key or self._key) is not None
        while True:
            try:
                return await self._update("decide", payload, key=key)
            except NotVerified:
                # The request may have opened after the proof was made, and then the proof does not name its digest.
                if not signs_again:
                    raise
                signs_again = False
            except DecisionRefused as error:
                # Temporal can answer a query with a request that a workflow task is only about to open.
                if not str(error).startswith(NOT_OPEN) or time.monotonic() > until:
                    raise
            await asyncio.sleep(POLL_S)

    async def top_up(self, *, by: str = "", key: bytes | None = None, **limits: Any) -> dict[str, Any]:
        """Raise limits, such as `max_steps=5`; return the new budget."""
        return await self._update("top_up", limits, by=by, key=key)

    async def pause(self, reason: str = "", *, by: str = "", key: bytes | None = None) -> dict[str, Any]:
        """Pause the run before its next step or call."""
        return await self._update("pause", {"reason": reason}, by=by, key=key)

    async def resume(self, reason: str = "", *, by: str = "", key: bytes | None = None) -> dict[str, Any]:
        """Resume a paused run."""
        return await self._update("resume", {"reason": reason} if reason else {}, by=by, key=key)

    async def message(
        self, text: str, *, by: str = "", event_id: str | None = None, key: bytes | None = None
    ) -> dict[str, Any]:
        """Tell the model of an open run something, which it reads at its next step; it decides nothing.

        Raises DecisionRefused when no model would read it, and DecisionInvalid for a string that is empty or too long.
        """
        said = {"text": text} | ({} if event_id is None else {"event_id": event_id})
        return await self._update("message", said, by=by, key=key)

    async def follow_up(self, text: str, id: str | None = None, **fields: Any) -> "Run":  # noqa: A002 - Temporal's word
        """Start a run that goes on from this one, which must have ended, for the same user and session.

        `fields` are those of a Task; with `by` the task is signed when the connection has the approver key. With
        `once=True` and an `id` it may be sent again, as `Backstay.start` may.
        Raises TaskInvalid naming field, value and fix before anything is sent. The new run fails with TaskInvalid when
        it may not follow this one.
        """
        return await self._follow(text, id=id, **fields)

    async def cancel(self) -> None:
        """Cancel the run; its effects are undone, unless the task says otherwise."""
        with translated_errors(self.id):
            await (await self._newest()).cancel(rpc_timeout=ANSWERED_WITHIN)

    async def undo(
        self,
        to_step: int | None = None,
        *,
        last_seen: int | None = None,
        by: str = "",
        key: bytes | None = None,
        taken: asyncio.Event | None = None,
    ) -> "tuple[Undone, ...]":
        """Undo effects, those after step `to_step` or all; an open run continues afterwards.

        `last_seen`: the newest effect that was shown before; raises DecisionRefused when there is a later one by then.
        `taken` is set once a worker has taken the wish; to undo may take longer.
        For an ended run it starts `UndoRun` and waits for it; an effect that could not be undone is in the list, as
        parked. Raises QuorumPending when several people must ask for it and too few have.
        """
        if not await self.is_known_as_open():
            undoing = await self.start_undo(to_step, last_seen=last_seen, by=by, key=key)
            if taken is not None:
                taken.set()
            return (await undoing.result()).undone
        ask = {"to_step": to_step} | ({} if last_seen is None else {"last_seen": last_seen})
        answer = await self._update("undo", ask, by=by, key=key, taken=taken)
        if "undone" not in answer:
            missing = answer["quorum"] - len(answer["by"])
            raise QuorumPending(f"{', '.join(answer['by'])} asked for this undo; {missing} more must ask for the same")
        return tuple(Undone.model_validate(undone) for undone in answer["undone"])

    async def start_undo(self, to_step: int | None = None, *, by: str = "", **more: Any) -> "Run":
        """Start to undo the effects of this run, which must have ended; see `Backstay.start_undo`."""
        return await self._start_undo(to_step=to_step, by=by, **more)

    async def reveal(self, handle: str, *, by: str, proof: str | None = None, key: bytes | None = None) -> str:
        """Return the secret behind a handle, to a person who may be shown it; that is recorded first.

        Reads the store itself, so that no history holds the secret: it needs the settings of the worker, and no worker.
        Raises NotVerified, DecisionRefused or QuorumPending for a person who may not be shown it now.
        """
        wish = {"handle": handle, "by": by} | ({} if proof is None else {"proof": proof})
        return await revealed(self.id, self._handle.run_id, self.client.namespace, wish, key or self._key)

    async def _update(
        self, name: str, payload: dict[str, Any], *, by: str = "", key: bytes | None, taken: asyncio.Event | None = None
    ) -> dict[str, Any]:
        payload = {**payload, "by": by} if by else payload
        key = key or self._key
        # Everyone who can reach the run may read it; a signature for what a person was shown stays so.
        if key is not None and name != "read" and "proof" not in payload:
            payload = await self.sign(name, payload, key=key)

        async def send() -> dict[str, Any]:
            try:
                async with asking(self.client, self.id):
                    newest = await self._newest()
                    update = await newest.start_update(
                        name,
                        payload,
                        id=await update_id(newest, name, payload),
                        wait_for_stage=WorkflowUpdateStage.ACCEPTED,
                        rpc_timeout=ACCEPTED_WITHIN,
                    )
                    if taken is not None:
                        taken.set()
                    return await update.result()
            except RunContinuing:
                # Temporal says the same of an execution that ended for good.
                if await self.is_open():
                    raise
                raise run_ended(self.id) from None

        return await repeated_while_continuing(send)

    async def sign(
        self,
        update: str,
        payload: dict[str, Any],
        *,
        key: bytes | None = None,
        life_s: float = PROOF_S,
        shown: proof.ShownRequest | None = None,
    ) -> dict[str, Any]:
        """Return a payload with a proof for an update of this run, bound to the request as it was `shown`, or is now.

        `life_s`: how long the proof is valid, at most a day. Raises SettingsInvalid without a key.
        """
        request_id = str(payload.get("request_id", ""))
        if shown is None:
            status = Status.model_validate(await self._query("status"))
            digest = next((request.digest for request in status.pending if request.id == request_id), "")
            shown = proof.ShownRequest(run_id=status.run_id, digest=digest)
        binding = proof.Binding(
            namespace=self.client.namespace,
            workflow_id=self.id,
            run_id=shown.run_id,
            update=update,
            request_id=request_id,
            digest=shown.digest,
        )
        return signed(key or self._key, binding, payload, life_s=life_s)

    async def _newest(self) -> WorkflowHandle[Any, Any]:
        """Return the handle of the newest execution of this run, which is what Temporal asks without a run id."""
        if self._handle.run_id is None:
            return self._handle
        newest, first = await self._chain()
        return self.client.get_workflow_handle(self.id) if newest.first_run_id == first else self._handle

    async def _chain(self) -> tuple[Execution, str]:
        """Return the newest execution of this name, and the run id of the first one of this run."""
        newest, named = await described(self.client, self.id), self._handle.run_id
        return newest, newest.first_run_id if named is None else await first_of(self.client, self.id, named)

    async def _query(self, name: str, *given: Any) -> Any:
        async with self._querying:

            async def send() -> Any:
                async with asking(self.client, self.id):
                    return await (await self._newest()).query(name, *given, rpc_timeout=ANSWERED_WITHIN)

            return await repeated_while_continuing(send)

    async def _last_events(self, after: int) -> list[Event]:
        """Return the events in the Result, for when no worker answers queries."""
        try:
            return [event for event in (await self.result()).events if event.n > after]
        except BackstayError:
            return []

    @property
    def _kept(self) -> str:
        return f"its effects are kept, `backstay undo {shell_words(self.id)}` undoes them"

    async def _result_after_cancellation(self) -> Result:
        result = await through_outages(self.id, lambda: self._query("result"))
        if result is None:
            raise errors.Cancelled("the run was cancelled before it began")
        return Result.model_validate(result)
