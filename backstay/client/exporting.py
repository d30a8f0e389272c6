"""Send traces to where OpenTelemetry's own variables say, without secrets."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from backstay.client.tracing import SCOPE
from backstay.redaction.redactor import Redactor
from backstay.settings import Settings

_CLOSING_S = 2.0
_UNNAMED = "unknown_service"
_EXCEPTION = "exception"
_KEPT_OF_EXCEPTIONS = "exception.type"

Redact = Callable[[dict[str, Any]], Mapping[str, Any]]


class _CleaningExporter(SpanExporter):
    """Pass spans on without secrets: libraries put the words of strangers into theirs."""

    def __init__(self, exporter: SpanExporter, redact: Redact) -> None:
        self.exporter = exporter
        self.redact = redact
        self._is_shut = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self.exporter.export([self._cleaned(span) for span in spans])

    def shutdown(self) -> None:
        # OpenTelemetry complains of a second time.
        if not self._is_shut:
            self._is_shut = True
            self.exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self.exporter.force_flush(timeout_millis)

    def _cleaned(self, span: ReadableSpan) -> ReadableSpan:
        """Return a span as it may leave: the text of an error is in none, and every value was looked at."""
        told = self._redacted({"": span.name, **(span.attributes or {})})
        return ReadableSpan(
            name=told.pop(""),
            context=span.get_span_context(),
            parent=span.parent,
            resource=span.resource,
            attributes=told,
            events=[self._cleaned_event(event) for event in span.events],
            links=span.links,
            kind=span.kind,
            status=Status(span.status.status_code),
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )

    def _cleaned_event(self, event: Event) -> Event:
        told = dict(event.attributes or {})
        if event.name == _EXCEPTION:
            told = {name: value for name, value in told.items() if name == _KEPT_OF_EXCEPTIONS}
        return Event(event.name, self._redacted(told), event.timestamp)

    def _redacted(self, values: dict[str, Any]) -> dict[str, Any]:
        # Numbers are not secrets, and the names of some, such as a count of tokens, look like those of secrets.
        texts = {name: value for name, value in values.items() if not isinstance(value, bool | int | float)}
        return values | dict(self.redact(texts))


class Exporting:
    """Send spans: those that libraries make, and those that are made of what is known afterwards."""

    def __init__(self, redact: Redact) -> None:
        """Read OpenTelemetry's own variables."""
        named = Resource.create()
        if str(named.attributes.get(SERVICE_NAME, _UNNAMED)).startswith(_UNNAMED):
            named = named.merge(Resource({SERVICE_NAME: SCOPE}))
        self.provider = TracerProvider(resource=named)
        self._cleaned = _CleaningExporter(OTLPSpanExporter(), redact)
        self._processor = BatchSpanProcessor(self._cleaned)
        self.provider.add_span_processor(self._processor)

    def redact_with(self, redact: Redact) -> None:
        """Take out what else is known to be secret by now."""
        self._cleaned.redact = redact

    def close(self) -> None:
        """Send what is left; what a collector has not taken after two seconds is lost, and nobody waits for it."""
        # OpenTelemetry itself tries for as long as one request may take.
        closing = Thread(target=self.provider.shutdown, daemon=True)
        closing.start()
        closing.join(_CLOSING_S)
        if closing.is_alive():
            self._cleaned.shutdown()

    def is_sampled(self, trace_id: int, name: str) -> bool:
        """Return whether a trace that begins here is to be sent."""
        return self.provider.sampler.should_sample(None, trace_id, name).decision.is_sampled()

    def send(
        self,
        name: str,
        spans: tuple[SpanContext, SpanContext | None],
        times: tuple[int, int],
        attributes: Mapping[str, Any],
        *,
        failed: bool = False,
    ) -> None:
        """Send a span that is over.

        `spans`: the span, and the one that it is a part of. `times`: its beginning and end, in nanoseconds since 1970.
        """
        context, parent = spans
        if not context.trace_flags & TraceFlags.SAMPLED:
            return
        self._processor.on_end(
            ReadableSpan(
                name=name,
                context=context,
                parent=parent,
                resource=self.provider.resource,
                attributes=dict(attributes),
                kind=SpanKind.INTERNAL,
                status=Status(StatusCode.ERROR if failed else StatusCode.UNSET),
                start_time=times[0],
                end_time=max(times),
                instrumentation_scope=InstrumentationScope(SCOPE),
            )
        )


@contextmanager
def open_exporting(settings: Settings) -> Generator[Exporting]:
    """Send what this process traces, and at the end what is left."""
    settings.share("OTEL_")
    exporting = Exporting(Redactor(settings.secrets()).redact)
    trace.set_tracer_provider(exporting.provider)
    try:
        yield exporting
    finally:
        exporting.close()
