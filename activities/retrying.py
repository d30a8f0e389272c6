"""Decide what is retried: turn what an activity raises into a failure that Temporal retries, or does not."""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, TypeVar

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError

from backstay import errors
from backstay.errors import BackstayError, InternalError, StoreUnavailable
from backstay.redaction.redactor import Redactor
from system.clock import uptime

Answer = TypeVar("Answer")
PAUSE_S = 0.5


async def retry_while_unavailable(work: Callable[[], Awaitable[Answer]], *, for_s: float) -> Answer:
    """Do the work again while the store cannot be reached, for so many seconds; raises StoreUnavailable after that."""
    ends = uptime() + for_s
    while True:
        try:
            return await work()
        except StoreUnavailable:
            if uptime() >= ends:
                raise
            await asyncio.sleep(PAUSE_S)


BEAT_S = 2.0
LONGEST_PAUSE_S = 10
"""The longest pause between two attempts in the retry policy of every activity."""
LONGEST_WAIT_S = 86_400

_progress: ContextVar[list[str] | None] = ContextVar("progress", default=None)

log = structlog.get_logger("backstay.activities")


def implements(
    entry: Callable[[Any], Awaitable[Answer]],
) -> Callable[[Callable[[Any, Any], Awaitable[Answer]]], Callable[[Any, Any], Awaitable[Answer]]]:
    """Make a method the activity that `backstay.calls` declares: same Temporal name, heartbeats, mapped errors."""

    def wrap(method: Callable[[Any, Any], Awaitable[Answer]]) -> Callable[[Any, Any], Awaitable[Answer]]:
        @functools.wraps(method)
        async def run(self: Any, ask: Any) -> Answer:
            began = uptime()
            try:
                with _heartbeats():
                    return await method(self, ask)
            except BackstayError as error:
                fault, final = error, error.final
            except (asyncio.CancelledError, ApplicationError):
                raise
            except Exception as error:
                log.exception("internal error", activity=entry.__name__)
                # A version without the bug may follow; a failure that is recorded would never heal.
                fault, final = InternalError(f"{type(error).__name__} in {entry.__name__}"), False
            # Without a cause: that of an endpoint or a server quotes what was sent, and history keeps causes too.
            age_s = waited_s() + uptime() - began
            left_s = self.transient_s - age_s
            raise to_application_error(fault, left_s, self.resources.redactor, final=final) from None

        return activity.defn(name=entry.__name__)(run)

    return wrap


def to_application_error(error: BackstayError, left_s: float, redactor: Redactor, *, final: bool) -> ApplicationError:
    """Return the failure that Temporal keeps of an error, without secrets.

    An error that is not final is retried unless the next attempt would come after `left_s`; then the workflow asks
    a person.
    """
    wait = retry_after(error.facts.get("retry_after"))
    pause = 0 if wait else min(2 ** min(activity.info().attempt - 1, 10), LONGEST_PAUSE_S)
    return ApplicationError(
        redactor.text(str(error)),
        {**error.facts, "retry_after": wait} if "retry_after" in error.facts else error.facts,
        # The nearest name that workflows know; activities have errors of their own.
        type=next(kind.__name__ for kind in type(error).__mro__ if vars(errors).get(kind.__name__) is kind),
        non_retryable=final or pause > left_s,
        next_retry_delay=timedelta(seconds=wait) if wait else None,
    )


def waited_s() -> float:
    """Return how long ago the workflow asked for this activity when this attempt began, by Temporal's clock alone."""
    info = activity.info()
    return (info.started_time - info.scheduled_time).total_seconds()


def retry_after(value: Any) -> float | None:
    """Return the seconds to wait, at most a day, or None when the value is no such number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        return None
    return float(min(value, LONGEST_WAIT_S))


@contextlib.contextmanager
def _heartbeats() -> Generator[None]:
    """Send heartbeats while the block runs; a short activity sends none."""
    if activity.info().heartbeat_timeout is None:
        yield
        return
    loop = asyncio.get_running_loop()
    progress: list[str] = []
    _progress.set(progress)

    def beat() -> None:
        nonlocal timer
        activity.heartbeat(*progress)
        timer = loop.call_later(BEAT_S, beat)

    timer = loop.call_later(BEAT_S, beat)
    try:
        yield
    finally:
        timer.cancel()


def tell_progress(line: str) -> None:
    """Show operators how far the activity is, with the next heartbeat."""
    progress = _progress.get()
    if progress is not None:
        progress[:] = [line]


def scheduled_at() -> str:
    """Return when the workflow scheduled this activity: the same on every attempt, so that a retry changes no event."""
    return activity.info().scheduled_time.isoformat(timespec="milliseconds")
