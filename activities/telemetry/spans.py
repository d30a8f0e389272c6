"""Make one trace of a run: run, steps, and in each step the model, the tools and the programs.

Spans of activities are made where they run. A run and its steps may outlive every worker, so nobody keeps their spans
open: their ids follow from the run's own, and each is sent once it is over, by the worker that sees its end. Workflows
know nothing of this, and no command of theirs is another one. A program's process holds no key of a collector: the
spans of its rounds are made of when the workflow saw them begin and end.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from opentelemetry.trace import SpanContext, TraceFlags
from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadConverter
from temporalio.worker import (
    ActivityInboundInterceptor,
    ContinueAsNewInput,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from activities.telemetry.attributes import ERROR, STEP, call_began, run_ended, run_name
from activities.telemetry.calls import kind_of, place_spans, span_under
from backstay.calls import asked
from backstay.client.exporting import Exporting
from backstay.client.tracing import HEADER, WORKFLOW_ID, context_in, header_of
from backstay.requests import ActAndAsk, CallTogether

_CONTINUED = "backstay-trace"
"""The header in which an execution tells the next one when the run and its last step began."""
_OTHER = "backstay-step-{}"
"""The headers in which an activity that is a part of several steps is told those after the first."""
_UNTRACED = frozenset({"ReadRun"})
_IN_JAILS = frozenset({"resume_program", "verify_program"})


def _number(size: int, *parts: Any) -> int:
    """Return an id that follows from these parts; it is never zero."""
    digest = hashlib.sha256("\0".join(map(str, ("backstay", *parts))).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:size]) or 1


@dataclass
class _Step:
    """Hold what is known of one step of a run; times are nanoseconds since 1970."""

    context: SpanContext
    began: int
    ended: int
    under_way: int = 0
    """How many of its calls are not answered yet."""


class RunTrace:
    """Hold the trace of one run, as far as one workflow execution knows it; it is built again by every replay."""

    def __init__(self, exporting: Exporting, info: workflow.Info, headers: Mapping[str, Payload]) -> None:
        """Begin, or go on from the execution before."""
        self._exporting = exporting
        self._key = f"{info.workflow_id}/{info.first_execution_run_id}"
        self._about = {WORKFLOW_ID: info.workflow_id}
        self._parent = context_in(headers)
        if self._parent is None:
            self._trace_id = _number(16, self._key)
            self._flags = TraceFlags(int(exporting.is_sampled(self._trace_id, info.workflow_type)))
        else:
            self._trace_id, self._flags = self._parent.trace_id, self._parent.trace_flags
        self._run = self._context("run")
        self._steps: dict[int, _Step] = {}
        before = _read(headers.get(_CONTINUED))
        self._began = before.get("began") or _nanoseconds(info.start_time)
        if step := before.get("step"):
            began = before.get("step_began") or self._began
            self._steps[step] = _Step(self._context("step", step), began, began)

    def _context(self, *parts: Any) -> SpanContext:
        return SpanContext(self._trace_id, _number(8, self._key, *parts), is_remote=True, trace_flags=self._flags)

    def begin(self, step: int, at: int) -> _Step | None:
        """Count a call of a step, and return the step; of a step that is over nothing is known any more."""
        step = step or max(self._steps, default=0)
        if not step or step < min(self._steps, default=step):
            return None
        found = self._steps.setdefault(step, _Step(self._context("step", step), at, at))
        found.under_way += 1
        self._send_ended()
        return found

    def end(self, step: _Step | None, at: int) -> None:
        """Note that a call of a step was answered."""
        if step is not None:
            step.under_way, step.ended = step.under_way - 1, at
            self._send_ended()

    def place(self, step: _Step | None) -> SpanContext:
        """Return the span of which a call is a part: that of its step, or of the run."""
        return self._run if step is None else step.context

    def program(self, name: str, said: Mapping[str, Any], step: _Step | None, began: int, *, failed: bool) -> None:
        """Send the span of one round of a program."""
        spans = self._context(name, began), self.place(step)
        self._send(name, spans, (began, workflow.time_ns()), said, failed=failed)

    def close(self, name: str, said: Mapping[str, Any], *, failed: bool) -> None:
        """Send what is left when the run ends."""
        for number, step in sorted(self._steps.items()):
            self._send_step(number, step)
        self._steps.clear()
        spans, times = (self._run, self._parent), (self._began, workflow.time_ns())
        self._send(name, spans, times, said, failed=failed)

    def continued(self) -> dict[str, Payload]:
        """Return the headers with which the next execution goes on."""
        last = max(self._steps, default=0)
        told = {"began": self._began, "step": last, "step_began": self._steps[last].began if last else 0}
        headers = {_CONTINUED: PayloadConverter.default.to_payloads([json.dumps(told)])[0]}
        return headers | ({} if self._parent is None else {HEADER: header_of(self._parent)})

    def _send_ended(self) -> None:
        """Send the steps that are over: a later one has begun, and nothing of them is under way."""
        last = max(self._steps, default=0)
        for number in [number for number, step in self._steps.items() if number < last and not step.under_way]:
            self._send_step(number, self._steps.pop(number))

    def _send_step(self, number: int, step: _Step) -> None:
        self._send("step", (step.context, self._run), (step.began, step.ended), {STEP: number})

    def _send(
        self,
        name: str,
        spans: tuple[SpanContext, SpanContext | None],
        times: tuple[int, int],
        said: Mapping[str, Any],
        *,
        failed: bool = False,
    ) -> None:
        """Send a span, named with the one that it is a part of, and with its beginning and end."""
        # Spans of a replay were sent by the worker that saw them first.
        if not workflow.unsafe.is_replaying_history_events():
            self._exporting.send(name, spans, times, {**self._about, **said}, failed=failed)


class SpanInterceptor(Interceptor):
    """Let a worker make the spans of the runs that it serves."""

    def __init__(self, exporting: Exporting) -> None:
        """Send them here."""
        self._exporting = exporting

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - Temporal's
        """Return what stands between Temporal and an activity."""
        return _Activity(next)

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002 - Temporal's
        """Return what stands between Temporal and a workflow."""

        class Traced(_Workflow):
            exporting = self._exporting

        return Traced


class _Activity(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - Temporal's name
        parent, ask = context_in(input.headers), input.args[0] if input.args else None
        if parent is None:
            return await super().execute_activity(input)
        if isinstance(ask, CallTogether):
            # Its calls and its question are parts of their steps, as if each were made by itself.
            numbers = _steps_of(ask)
            others = {number: input.headers.get(_OTHER.format(number)) for number in numbers[1:]}
            placed = {number: context_in({HEADER: header}) for number, header in others.items() if header is not None}
            place_spans({number: placed.get(number) or parent for number in numbers})
        with span_under(parent, activity.info().activity_type, ask) as note:
            answer = await super().execute_activity(input)
            note(answer)
            return answer


class _Workflow(WorkflowInboundInterceptor):
    exporting: ClassVar[Exporting]
    _trace: RunTrace | None = None

    @property
    def trace(self) -> RunTrace:
        """Return the trace of the run; a handler may need it before the run itself begins."""
        if self._trace is None:
            info = workflow.info()
            self._trace = RunTrace(self.exporting, info, info.headers)
        return self._trace

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Calls(outbound, self))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002 - Temporal's name
        kind = workflow.info().workflow_type
        if kind in _UNTRACED:
            return await super().execute_workflow(input)
        name, said = run_name(kind, input.args[0] if input.args else None)
        traced = self.trace
        try:
            result = await super().execute_workflow(input)
        except BaseException as error:
            # Neither a worker that lets go of a run, nor a new execution, nor a bug ends it.
            if _ends(error):
                traced.close(name, said | {ERROR: kind_of(error)}, failed=True)
            raise
        traced.close(name, said | run_ended(result), failed=isinstance(result, dict) and result.get("success") is False)
        return result


class _Calls(WorkflowOutboundInterceptor):
    def __init__(self, next: WorkflowOutboundInterceptor, inbound: _Workflow) -> None:  # noqa: A002 - Temporal's name
        super().__init__(next)
        self._inbound = inbound

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:  # noqa: A002 - Temporal's
        if workflow.info().workflow_type in _UNTRACED:
            return super().start_activity(input)
        traced, began = self._inbound.trace, workflow.time_ns()
        ask = asked(input.args)
        numbers = _steps_of(ask)
        steps = [traced.begin(number, began) for number in numbers]
        step, headers = steps[0], {HEADER: header_of(traced.place(steps[0]))}
        others = zip(numbers[1:], steps[1:], strict=True)
        headers |= {_OTHER.format(number): header_of(traced.place(other)) for number, other in others}
        input.headers = {**input.headers, **headers}
        handle = super().start_activity(input)

        def answered(done: "asyncio.Task[Any]") -> None:
            if not workflow.in_workflow():
                return
            if input.activity in _IN_JAILS and not done.cancelled():
                name, said = call_began(input.activity, ask)
                traced.program(name, said, step, began, failed=done.exception() is not None)
            for part in steps:
                traced.end(part, workflow.time_ns())

        handle.add_done_callback(answered)
        return handle

    def continue_as_new(self, input: ContinueAsNewInput) -> Any:  # noqa: A002 - Temporal's name
        input.headers = {**input.headers, **self._inbound.trace.continued()}
        return super().continue_as_new(input)


def _steps_of(ask: Any) -> list[int]:
    """Return the steps that an activity is a part of; 0 stands for the step under way."""
    if isinstance(ask, CallTogether):
        asked_at = [ask.ask.step] if isinstance(ask, ActAndAsk) else []
        return list(dict.fromkeys([*(call.step for call in ask.calls), *asked_at]))
    return [int(getattr(ask, "step", 0) or 0)]


def _ends(error: BaseException) -> bool:
    """Return whether what came out of a workflow is its end."""
    if isinstance(error, asyncio.CancelledError):
        return workflow.in_workflow() and workflow.cancellation_reason() is not None
    return isinstance(error, Exception) and workflow.in_workflow() and workflow.is_failure_exception(error)


def _read(header: Payload | None) -> dict[str, int]:
    if header is None:
        return {}
    try:
        told = json.loads(PayloadConverter.default.from_payloads([header])[0])
        return {name: value for name, value in told.items() if isinstance(value, int)}
    except Exception:
        # Anybody can start a run, with any header.
        return {}


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1e9)
