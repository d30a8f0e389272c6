"""Make the spans of activities, and of the calls and the question that one activity makes together."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode
from temporalio import activity
from temporalio.exceptions import ActivityError, ApplicationError

from activities.telemetry.attributes import ATTEMPT, ERROR, call_began, call_ended
from backstay.client.tracing import WORKFLOW_ID, quiet_span

Note = Callable[[Any], None]
"""Adds what an answer says to the span of its call."""

_places: ContextVar[Mapping[int, SpanContext]] = ContextVar("places")


def place_spans(places: Mapping[int, SpanContext]) -> None:
    """Say under which spans the calls of this activity stand, by the steps that they belong to."""
    _places.set(places)


@contextmanager
def call_span(ask: Any) -> Generator[Note]:
    """Make the span of one call of an activity that makes several; none where the run is not traced."""
    place = _places.get({}).get(ask.step)
    if place is None:
        yield _noted_nowhere
        return
    with span_under(place, "", ask) as note:
        yield note


@contextmanager
def span_under(place: SpanContext, name: str, ask: Any) -> Generator[Note]:
    """Make the span of what is asked under another one."""
    info = activity.info()
    called, said = call_began(name, ask)
    said |= {WORKFLOW_ID: info.workflow_id or "", ATTEMPT: info.attempt}
    under = trace.set_span_in_context(trace.NonRecordingSpan(place), Context())
    kind = SpanKind.CLIENT if called.startswith("chat ") else SpanKind.INTERNAL
    with quiet_span(called, place=under, kind=kind, said=said) as span:

        def note(answer: Any) -> None:
            ended = call_ended(answer)
            span.set_attributes(ended)
            if ERROR in ended:
                span.set_status(Status(StatusCode.ERROR))

        try:
            yield note
        except BaseException as error:
            span.set_attribute(ERROR, kind_of(error))
            span.set_status(Status(StatusCode.ERROR))
            raise


def kind_of(error: BaseException) -> str:
    """Return the type of an error as users know it."""
    cause = error.cause if isinstance(error, ActivityError) and error.cause is not None else error
    return (cause.type if isinstance(cause, ApplicationError) else None) or type(cause).__name__


def _noted_nowhere(_answer: Any) -> None:
    """Note nothing."""
