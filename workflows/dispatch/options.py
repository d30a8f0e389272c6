"""The one table of timeouts, retry policies and queues."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

from backstay.tools.trying import LONGEST_PAUSE_S

PATIENT = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2,
    maximum_interval=timedelta(seconds=LONGEST_PAUSE_S),
    # An activity turns a lasting fault into a final one by itself; this bound ends what cannot even be decoded.
    maximum_attempts=100,
    non_retryable_error_types=["PayloadsTooLarge"],
)
ONCE = RetryPolicy(maximum_attempts=1)


@dataclass(frozen=True)
class Options:
    """Hold the options of one activity: timeouts, retries and heartbeat."""

    start_to_close: timedelta = timedelta(seconds=40)
    heartbeat: timedelta | None = None
    retry: RetryPolicy = field(default_factory=lambda: PATIENT)
    cancellation: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL
    schedule_to_start: timedelta | None = None
    queue: str = ""
    """Empty: the run's own queue."""
    writes_events: bool = True
    """Whether its body reaches the store, and so writes the events that wait."""
    urgent: bool = False
    """Whether a person waits for it, or has decided it, so that it goes before the steps of other runs."""
    last: bool = False
    """Whether it goes behind the steps of other runs, so that of many runs those that have begun end first."""

    def keywords(self) -> dict[str, Any]:
        """Return the keyword arguments of `workflow.execute_activity`."""
        keywords: dict[str, Any] = {
            "start_to_close_timeout": self.start_to_close,
            "heartbeat_timeout": self.heartbeat,
            "retry_policy": self.retry,
            "cancellation_type": self.cancellation,
        }
        if self.schedule_to_start is not None:
            keywords["schedule_to_start_timeout"] = self.schedule_to_start
        if self.queue:
            keywords["task_queue"] = self.queue
        return keywords


SANDBOX_QUEUE = "-sandbox"
"""How the common queue of the sandbox role ends."""
KEPT_PROGRAM = timedelta(seconds=2)
"""How long the worker that keeps a program may take to continue it; after that, replaying it elsewhere is cheaper."""
HEARTBEAT = timedelta(seconds=10)
WAIT = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED

TABLE: dict[str, Options] = {
    "open_run": Options(start_to_close=timedelta(seconds=60), heartbeat=HEARTBEAT, last=True),
    # One attempt: money is reserved anew for every try.
    "ask_model": Options(start_to_close=timedelta(seconds=300), heartbeat=HEARTBEAT, retry=ONCE),
    "search_tools": Options(heartbeat=HEARTBEAT),
    "read_result": Options(heartbeat=HEARTBEAT),
    "recall": Options(heartbeat=HEARTBEAT),
    "read_page": Options(heartbeat=HEARTBEAT, urgent=True),
    "check_call": Options(heartbeat=HEARTBEAT),
    "preview_calls": Options(start_to_close=timedelta(seconds=60), heartbeat=HEARTBEAT),
    "keep_plan": Options(heartbeat=HEARTBEAT),
    "call_tool": Options(heartbeat=HEARTBEAT, cancellation=WAIT),
    "follow_task": Options(heartbeat=HEARTBEAT),
    # As long as the slowest of its calls may take.
    "call_together": Options(heartbeat=HEARTBEAT, cancellation=WAIT),
    # For the model; the calls before it add their deadlines.
    "act_and_ask": Options(start_to_close=timedelta(seconds=300), heartbeat=HEARTBEAT, cancellation=WAIT),
    "end_rehearsal": Options(heartbeat=HEARTBEAT),
    "settle_effect": Options(heartbeat=HEARTBEAT),
    "load_effects": Options(heartbeat=HEARTBEAT, urgent=True),
    "begin_start": Options(heartbeat=HEARTBEAT),
    "end_start": Options(heartbeat=HEARTBEAT),
    "begin_subruns": Options(heartbeat=HEARTBEAT),
    "end_subruns": Options(start_to_close=timedelta(seconds=60), heartbeat=HEARTBEAT),
    "check_proof": Options(heartbeat=HEARTBEAT),
    "hide_secrets": Options(heartbeat=HEARTBEAT),
    "remember_lines": Options(heartbeat=HEARTBEAT, urgent=True),
    "resume_program": Options(
        start_to_close=timedelta(seconds=900),
        heartbeat=HEARTBEAT,
        schedule_to_start=timedelta(seconds=60),
        writes_events=False,
    ),
    # A check beside the run: where it cannot be made soon, the next sample is checked.
    "verify_program": Options(
        start_to_close=timedelta(seconds=300),
        heartbeat=HEARTBEAT,
        retry=ONCE,
        schedule_to_start=timedelta(seconds=10),
        writes_events=False,
    ),
    "forget_program": Options(heartbeat=HEARTBEAT, retry=ONCE, writes_events=False),
    "digest": Options(heartbeat=HEARTBEAT),
    # Each check bounds itself, and there may be 20 of ten minutes.
    "review": Options(start_to_close=timedelta(hours=4), heartbeat=HEARTBEAT),
    "carry_over": Options(heartbeat=HEARTBEAT),
    "load_carried": Options(heartbeat=HEARTBEAT),
    "announce": Options(heartbeat=HEARTBEAT, retry=RetryPolicy(maximum_attempts=3)),
    "close_run": Options(start_to_close=timedelta(seconds=60), heartbeat=HEARTBEAT),
}


def options_for(name: str, deadline_s: float | None = None, queue: str = "") -> Options:
    """Return the row of the table; a longer request deadline lengthens the activity with it.

    A worker's own queue is tried once and shortly: when that worker is gone, the common queue serves.
    """
    row = TABLE[name]
    if queue:
        row = replace(row, queue=queue)
        if not queue.endswith(SANDBOX_QUEUE):
            row = replace(row, schedule_to_start=KEPT_PROGRAM, retry=ONCE)
    if deadline_s is None or deadline_s + 10 <= row.start_to_close.total_seconds():
        return row
    return replace(row, start_to_close=timedelta(seconds=deadline_s + 10))
