"""Turn what a body raises into what Temporal acts on: the one mapping."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError

from backstay.errors import BackstayError, InternalError

Self = TypeVar("Self")
Ask = TypeVar("Ask")
Answer = TypeVar("Answer")
BEAT_S = 3.0

log = structlog.get_logger("backstay.activities")


def body(
    entry: Callable[[Any], Awaitable[Answer]],
) -> Callable[[Callable[[Any, Any], Awaitable[Answer]]], Callable[[Any, Any], Awaitable[Answer]]]:
    """Make a method the body of an entry of the menu: same Temporal name, heartbeats, mapped errors."""

    def wrap(method: Callable[[Any, Any], Awaitable[Answer]]) -> Callable[[Any, Any], Awaitable[Answer]]:
        @functools.wraps(method)
        async def run(self: Any, ask: Any) -> Answer:
            try:
                async with _heartbeats():
                    return await method(self, ask)
            except BackstayError as error:
                raise to_application_error(error, self.transient_s) from error
            except (asyncio.CancelledError, ApplicationError):
                raise
            except Exception as error:
                log.exception("internal error", activity=entry.__name__)
                raise to_application_error(InternalError(f"{type(error).__name__} in {entry.__name__}"), 0) from error

        return activity.defn(name=entry.__name__)(run)

    return wrap


def to_application_error(error: BackstayError, transient_s: float) -> ApplicationError:
    """Return the failure that carries an error of ours.

    A transient error becomes final for Temporal once it has lasted: the workflow asks a person then.
    """
    wait = error.facts.get("retry_after")
    return ApplicationError(
        str(error),
        error.facts,
        type=type(error).__name__,
        non_retryable=error.final or _age_s() > transient_s,
        next_retry_delay=timedelta(seconds=wait) if isinstance(wait, int | float) and wait > 0 else None,
    )


def _age_s() -> float:
    return (datetime.now(UTC) - activity.info().scheduled_time).total_seconds()


@contextlib.asynccontextmanager
async def _heartbeats() -> AsyncGenerator[None]:
    if activity.info().heartbeat_timeout is None:
        yield
        return
    beating = asyncio.create_task(_beat())
    try:
        yield
    finally:
        beating.cancel()


async def _beat() -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(BEAT_S)
