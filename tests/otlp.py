"""A collector of traces that keeps what it is sent, over OTLP and HTTP."""

import gzip
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.serving import served


@dataclass(frozen=True)
class Span:
    """One span as it arrived."""

    name: str
    trace: str
    id: str
    parent: str
    said: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    failed: bool
    service: str
    scope: str
    began: int
    ended: int


@dataclass
class Collector:
    """Everything that was sent."""

    address: str
    spans: list[Span] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def inside(self, span: Span) -> list[Span]:
        """Return the spans right below one."""
        return [other for other in self.spans if other.parent == span.id and other.trace == span.trace]


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return None if kind is None else getattr(value, kind)


def _spans(body: bytes) -> list[Span]:
    request = ExportTraceServiceRequest.FromString(body)
    return [
        Span(
            name=span.name,
            trace=span.trace_id.hex(),
            id=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            said={pair.key: _value(pair.value) for pair in span.attributes},
            events=[(event.name, {pair.key: _value(pair.value) for pair in event.attributes}) for event in span.events],
            failed=span.status.code == span.status.STATUS_CODE_ERROR,
            service=next(_value(p.value) for p in resource.resource.attributes if p.key == "service.name"),
            scope=scope.scope.name,
            began=span.start_time_unix_nano,
            ended=span.end_time_unix_nano,
        )
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


@asynccontextmanager
async def open_collector() -> AsyncGenerator[Collector]:
    """Serve at a free port of loopback."""
    collector = Collector("")

    async def receive(request: Request) -> Response:
        body = await request.body()
        body = gzip.decompress(body) if request.headers.get("content-encoding") == "gzip" else body
        collector.bodies.append(body)
        collector.headers.append(dict(request.headers))
        collector.spans += _spans(body)
        return Response(b"", media_type="application/x-protobuf")

    async with served(Starlette(routes=[Route("/v1/traces", receive, methods=["POST"])])) as collector.address:
        yield collector
