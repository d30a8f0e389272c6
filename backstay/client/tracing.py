"""Tell a run of which trace it is a part.

Only OpenTelemetry's interface is used here: a program that sends traces has set it up, and otherwise nothing happens.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from temporalio.api.common.v1 import Payload
from temporalio.client import Interceptor, OutboundInterceptor, StartWorkflowInput, WorkflowHandle
from temporalio.converter import PayloadConverter

HEADER = "_tracer-data"
"""Under which name Temporal's SDKs of all languages pass a trace on."""
SCOPE = "backstay"
WORKFLOW_ID = "backstay.workflow_id"
_TRACED = frozenset({"RunTask", "UndoRun"})
_propagator = TraceContextTextMapPropagator()
_tracer = trace.get_tracer(SCOPE)


def quiet_span(
    name: str, *, kind: SpanKind, said: dict[str, Any], place: Context | None = None
) -> AbstractContextManager[Span]:
    """Begin a span that keeps no text of an error, which may quote what was sent."""
    return _tracer.start_as_current_span(name, place, kind, said, record_exception=False, set_status_on_exception=False)


def header_of(context: SpanContext) -> Payload:
    """Return the header that makes what it is sent to a part of a span."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier, trace.set_span_in_context(trace.NonRecordingSpan(context), Context()))
    return PayloadConverter.default.to_payloads([carrier])[0]


def context_in(headers: Mapping[str, Payload]) -> SpanContext | None:
    """Return the span that headers name, if they name one; context that cannot be read names none."""
    if (header := headers.get(HEADER)) is None:
        return None
    try:
        carrier: Any = PayloadConverter.default.from_payloads([header])[0]
        found = _propagator.extract(carrier, Context())
    except Exception:
        # Anybody can start a run, with any header.
        return None
    context = trace.get_current_span(found).get_span_context()
    return context if context.is_valid else None


class ClientTracing(Interceptor):
    """Make the runs that a client starts a part of the trace in which it does so."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002 - Temporal's name
        """Return what stands between a client and Temporal."""
        return _Starting(next)


class _Starting(OutboundInterceptor):
    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:  # noqa: A002 - Temporal's
        if input.workflow not in _TRACED:
            return await super().start_workflow(input)
        with quiet_span(f"start {input.workflow}", kind=SpanKind.CLIENT, said={WORKFLOW_ID: input.id}) as span:
            if span.get_span_context().is_valid:
                input.headers = {**input.headers, HEADER: header_of(span.get_span_context())}
            return await super().start_workflow(input)
