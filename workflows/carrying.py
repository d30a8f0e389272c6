"""Continue a long run as a new execution with a short history, and carry its state over."""

from typing import Any

from pydantic import Field, ValidationError
from temporalio import workflow

from backstay import calls
from backstay.canonical import longer_than
from backstay.errors import TaskInvalid
from backstay.frozen import Frozen
from workflows.run_context import RunContext
from workflows.state import RunState

CONTINUE = "continue-as-new"
"""Since this change long runs continue as new executions; a run that was long before that stays as it is."""
MOST_EVENTS = 10_000
"""The server ends a run at 51,200 events; replaying so many would outlast a workflow task."""
MOST_BYTES = 10_000_000
"""The server ends a run at 50 MB of history."""
MOST_CARRIED = 1_000_000
"""Characters of the carried state; the server refuses payloads of 2 MiB."""


class Carried(Frozen):
    """Name the state that an execution gives to the next one."""

    ref: str
    seal: str
    """What the store vouches with that this execution of this run wrote it."""
    late: dict[str, Any] = Field(default_factory=dict)
    """Fields that changed while it was written."""


def carried_by(more: tuple[Any, ...]) -> Carried | TaskInvalid | None:
    """Return what the execution before gave to this one, None for a first execution, or why it is refused."""
    info = workflow.info()
    given = next(iter(more), None)
    if not more:
        return None
    # Only the server says which execution this one continues; nobody can start a run with that.
    if len(more) > 1 or info.continued_run_id is None or info.run_id == info.first_execution_run_id:
        return TaskInvalid(f"Task: {1 + len(more)} arguments were given; give one JSON object")
    try:
        return Carried.admit(given)
    except (TaskInvalid, ValidationError) as error:
        return TaskInvalid(f"carried: {error}")


async def take_over(context: RunContext, carried: Carried) -> None:
    """Take over the state of the execution before; raises TaskInvalid when the store does not vouch for it."""
    info = workflow.info()
    ask = calls.LoadCarried(ref=carried.ref, seal=carried.seal, written_by=info.continued_run_id or "")
    ask = ask.model_copy(update={"workflow_run_id": info.run_id})
    loaded = await context.activities.execute(calls.load_carried, ask, summary="take over the state of the run")
    state = RunState.model_validate({**loaded.state, **carried.late})
    for name in RunState.model_fields:
        setattr(context.state, name, getattr(state, name))
    context.stopwatch.add(context.state.active_seconds)
    context.record("run.continued", f"continued as execution {info.run_id}")


async def continue_if_long(context: RunContext, task: Any) -> None:
    """Continue as a new execution when the history is long; returns when it is not, or when something is under way.

    To be called where no call is in flight. Raises ContinueAsNewError.
    """
    state, approvals = context.state, context.approvals
    if not _is_long() or approvals.pending or context.undoing or not workflow.patched(CONTINUE):
        return
    await workflow.wait_condition(workflow.all_handlers_finished)
    state.active_seconds = context.stopwatch.seconds
    kept = state.model_dump(mode="json")
    if longer_than(kept, MOST_CARRIED):
        return
    carry = calls.CarryOver(state=kept, written_by=workflow.info().run_id)
    written = await context.activities.execute(calls.carry_over, carry, summary="continue as a new execution")
    if approvals.pending or context.undoing or not workflow.all_handlers_finished():
        return
    now = state.model_dump(mode="json")
    late = {name: value for name, value in now.items() if value != kept[name]}
    workflow.continue_as_new(args=[task, Carried(ref=written.ref, seal=written.seal, late=late).plain()])


def _is_long() -> bool:
    info = workflow.info()
    length, size = info.get_current_history_length(), info.get_current_history_size()
    return length > MOST_EVENTS or size > MOST_BYTES or info.is_continue_as_new_suggested()
