"""Shorter waits for the worker of a crash test: until a dead worker is missed, and until its work is tried again.

What is waited for stays the same, and so does its order; an operator has no such setting. Temporal's own Worker sends
no more heartbeats than it must, so it is told to hold back less: what is left of the shorter time for a busy machine is
more than what it leaves of the longer one.
"""

import functools
from dataclasses import replace
from datetime import timedelta
from typing import Any

import worker
from activities import retrying
from store.notices import outbox
from workflows.dispatch import options

TASK = timedelta(seconds=4)
"""How long a workflow task may take: a worker that died with one is missed after it."""
_HEARTBEAT = timedelta(seconds=5)
_BEAT_S = 0.5
_STICKY = timedelta(seconds=2)
"""How long a task waits for the worker that knows the run before another may take it."""
_RETRY = timedelta(seconds=0.3)
_LEASE_OF_A_NOTICE_S = 15.0


def shorten() -> None:
    """Shorten the waits of this process."""
    retrying.BEAT_S = _BEAT_S
    outbox.LEASE_S = _LEASE_OF_A_NOTICE_S
    soon = replace(options.PATIENT, initial_interval=_RETRY)
    for name, row in options.TABLE.items():
        retry = soon if row.retry is options.PATIENT else row.retry
        options.TABLE[name] = replace(row, heartbeat=_HEARTBEAT, retry=retry)
    eager: dict[str, Any] = {
        "sticky_queue_schedule_to_start_timeout": _STICKY,
        "max_heartbeat_throttle_interval": timedelta(seconds=1),
        "default_heartbeat_throttle_interval": timedelta(seconds=1),
    }
    setattr(worker, "Worker", functools.partial(worker.Worker, **eager))  # noqa: B010 - a class to the type checker
