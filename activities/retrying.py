"""Turn what a body raises into what Temporal acts on: the one mapping."""

import asyncio
import contextlib
import functools
import time
from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError

from backstay import errors
from backstay.errors import BackstayError, InternalError, StoreUnavailable
from backstay.redaction.redactor import Redactor

Outcome = TypeVar("Outcome")
PAUSE_S = 0.5


async def retry_while_unavailable(work: Callable[[], Awaitable[Outcome]], *, until: float) -> Outcome:
    """Return what the work returns; while the store cannot be reached do it again, until a unix time.

    Raises StoreUnavailable.
    """
    while True:
        try:
            return await work()
        except StoreUnavailable:
            if time.time() >= until:
                raise
            await asyncio.sleep(PAUSE_S)


Self = TypeVar("Self")
Ask = TypeVar("Ask")
Answer = TypeVar("Answer")
BEAT_S = 2.0
LONGEST_PAUSE_S = 10
"""What the menu's retry policy waits at most between two attempts."""
LONGEST_WAIT_S = 86_400

_told: ContextVar[list[str] | None] = ContextVar("told", default=None)

log = structlog.get_logger("backstay.activities")


def body(
    entry: Callable[[Any], Awaitable[Answer]],
) -> Callable[[Callable[[Any, Any], Awaitable[Answer]]], Callable[[Any, Any], Awaitable[Answer]]]:
    """Make a method the body of an entry of the menu: same Temporal name, heartbeats, mapped errors."""

    def wrap(method: Callable[[Any, Any], Awaitable[Answer]]) -> Callable[[Any, Any], Awaitable[Answer]]:
        @functools.wraps(method)
        async def run(self: Any, ask: Any) -> Answer:
            try:
                with _heartbeats():
                    return await method(self, ask)
            except BackstayError as error:
                fault = error
            except (asyncio.CancelledError, ApplicationError):
                raise
            except Exception as error:
                log.exception("internal error", activity=entry.__name__)
                fault = InternalError(f"{type(error).__name__} in {entry.__name__}")
            # Without a cause: that of an endpoint or a server quotes what was sent, and history keeps causes too.
            raise to_application_error(fault, self.transient_s, self.resources.redactor) from None

        return activity.defn(name=entry.__name__)(run)

    return wrap


def to_application_error(error: BackstayError, transient_s: float, redactor: Redactor) -> ApplicationError:
    """Return the failure that carries an error of ours, without secrets.

    A transient error becomes final for Temporal once it has lasted, or would have by the next attempt: the workflow
    asks a person then.
    """
    wait = retry_after(error.facts.get("retry_after"))
    pause = wait or min(2 ** min(activity.info().attempt - 1, 10), LONGEST_PAUSE_S)
    lasts = _age_s() + (0 if wait else pause) > transient_s
    return ApplicationError(
        redactor.text(str(error)),
        {**error.facts, "retry_after": wait} if "retry_after" in error.facts else error.facts,
        type=_name(error),
        non_retryable=error.final or lasts,
        next_retry_delay=timedelta(seconds=wait) if wait else None,
    )


def retry_after(value: Any) -> float | None:
    """Return how long to wait, at most a day, when somebody said so in a way that can be kept."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        return None
    return float(min(value, LONGEST_WAIT_S))


def _name(error: BackstayError) -> str:
    """Return the nearest name that workflows know; bodies have errors of their own."""
    return next(kind.__name__ for kind in type(error).__mro__ if vars(errors).get(kind.__name__) is kind)


def _age_s() -> float:
    return (datetime.now(UTC) - activity.info().scheduled_time).total_seconds()


@contextlib.contextmanager
def _heartbeats() -> Generator[None]:
    """Beat while the block runs; a body that ends before the first beat costs the server no request."""
    if activity.info().heartbeat_timeout is None:
        yield
        return
    loop = asyncio.get_running_loop()
    told: list[str] = []
    _told.set(told)

    def beat() -> None:
        nonlocal timer
        activity.heartbeat(*told)
        timer = loop.call_later(BEAT_S, beat)

    timer = loop.call_later(BEAT_S, beat)
    try:
        yield
    finally:
        timer.cancel()


def tell_progress(line: str) -> None:
    """Let operators see with the next heartbeat how far the activity is."""
    told = _told.get()
    if told is not None:
        told[:] = [line]


def ordered_at() -> str:
    """Return when the workflow ordered this activity: the same on every attempt, so that a repeat changes no event."""
    return activity.info().scheduled_time.isoformat(timespec="milliseconds")
