"""Decide what is retried: turn what an activity raises into a failure that Temporal retries, or does not."""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Any, TypeVar

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError

from backstay import errors
from backstay.errors import BackstayError, InternalError, StoreUnavailable, ToolBusy
from backstay.redaction.redactor import Redactor
from backstay.responses import ActivityFault
from backstay.tools.trying import pause_after, retry_after
from system.clock import uptime

Answer = TypeVar("Answer")
PAUSE_S = 0.5


async def retry_while_unavailable(work: Callable[[], Awaitable[Answer]], *, for_s: float) -> Answer:
    """Do the work again while the store cannot be reached, for some seconds; raises StoreUnavailable after that."""
    ends = uptime() + for_s
    while True:
        try:
            return await work()
        except StoreUnavailable:
            if uptime() >= ends:
                raise
            await asyncio.sleep(PAUSE_S)


BEAT_S = 1.5
"""With a heartbeat a cancellation arrives, and an answer of a model is interrupted within two seconds."""
FIRST_TURN_S = 0.1
LONGEST_TURN_S = 5.0
MOST_TURNS = 90
"""How often one activity waits for its turn; it does so between its attempts, and keeps no worker busy meanwhile."""

FIRST_ATTEMPT = "first_attempt"
"""The key in the heartbeat details under which the start of the first attempt travels to the later ones."""

_progress: ContextVar[list[str] | None] = ContextVar("progress", default=None)
_begun: ContextVar[float | None] = ContextVar("begun", default=None)

log = structlog.get_logger("backstay.activities")


def implements(
    entry: Callable[[Any], Awaitable[Answer]],
) -> Callable[[Callable[[Any, Any], Awaitable[Answer]]], Callable[[Any, Any], Awaitable[Answer]]]:
    """Make a method the activity that `backstay.calls` declares: same Temporal name, heartbeats, mapped errors."""

    def wrap(method: Callable[[Any, Any], Awaitable[Answer]]) -> Callable[[Any, Any], Awaitable[Answer]]:
        @functools.wraps(method)
        async def run(self: Any, ask: Any) -> Answer:
            _begun.set(uptime())
            try:
                with _heartbeats():
                    async with self.together():
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
            redactor = await self.resources.redactor_of(ask.run)
            raise to_application_error(fault, self.transient_s, redactor, final=final) from None

        return activity.defn(name=entry.__name__)(run)

    return wrap


def to_application_error(
    error: BackstayError, transient_s: float, redactor: Redactor, *, final: bool
) -> ApplicationError:
    """Return the failure that Temporal keeps of an error, without secrets.

    An error that is not final is retried until the next attempt would come after `transient_s`; then the workflow asks
    a person.
    """
    wait, busy = retry_after(error.facts.get("retry_after")), isinstance(error, ToolBusy)
    if busy:
        wait = min(FIRST_TURN_S * 2 ** min(activity.info().attempt - 1, 10), LONGEST_TURN_S)
    pause = 0 if wait else pause_after(activity.info().attempt)
    # One that waits for its turn is never a lasting fault; the workflow orders it anew before the attempts run out.
    gives_up = activity.info().attempt >= MOST_TURNS if busy else final or tried_for() + pause > transient_s
    if not gives_up:
        # The details sent with a failure reach the next attempt, wherever it is made.
        activity.heartbeat(*_details())
    told = told_of(error, redactor)
    return ApplicationError(
        told.message,
        told.facts,
        type=told.type,
        non_retryable=gives_up,
        next_retry_delay=timedelta(seconds=wait) if wait else None,
    )


def told_of(error: BackstayError, redactor: Redactor) -> ActivityFault:
    """Return what the workflow is told of an error, without secrets."""
    facts = {name: _without_secrets(fact, redactor) for name, fact in error.facts.items()}
    if "retry_after" in facts:
        facts["retry_after"] = retry_after(error.facts["retry_after"])
    # The nearest name that workflows know; activities have errors of their own.
    kind = next(kind.__name__ for kind in type(error).__mro__ if vars(errors).get(kind.__name__) is kind)
    return ActivityFault(type=kind, message=redactor.clipped_text(str(error)), facts=facts)


def _without_secrets(fact: Any, redactor: Redactor) -> Any:
    """Return what a program reads of an error; a number is none, whatever its name is."""
    match fact:
        case str():
            return redactor.clipped_text(fact)
        case int() | float() | None:
            return fact
        case _:
            return redactor.redact(fact)


def tried_for() -> float:
    """Return the seconds since the first attempt began; how long it waited for a worker before does not count.

    Both times are Temporal's, and the rest is this process's own, so that no clock of a host matters.
    """
    begun = _begun.get()
    here = 0.0 if begun is None else uptime() - begun
    return (activity.info().started_time - _first_attempt()).total_seconds() + here


def is_retry() -> bool:
    """Return whether an earlier attempt may have done something.

    Where an operator resets an activity, Temporal counts its attempts anew, and may forget what heartbeats told.
    """
    info = activity.info()
    is_again = info.current_attempt_scheduled_time != info.scheduled_time
    return is_again or info.attempt > 1 or bool(info.heartbeat_details)


def _first_attempt() -> datetime:
    info = activity.info()
    for detail in info.heartbeat_details:
        if isinstance(detail, dict) and FIRST_ATTEMPT in detail:
            return datetime.fromisoformat(str(detail[FIRST_ATTEMPT]))
    return info.started_time


def _details() -> list[Any]:
    """Return what a heartbeat carries: how far the work is, for people, and when it was first tried."""
    return [*(_progress.get() or ()), {FIRST_ATTEMPT: _first_attempt().isoformat()}]


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
        activity.heartbeat(*_details())
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
