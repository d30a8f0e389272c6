"""Repeat a step whose program or arguments failed, as often as the profile of the run says."""

from collections.abc import Sequence

from backstay.errors import LifelinesExhausted
from backstay.shown import one_line
from backstay.task.decision import Decision
from backstay.task.status import StepProgress
from workflows.context.run_context import RunContext

_PROGRESS = 400


def count_failure(context: RunContext, decision: Decision) -> None:
    """Let the next decision repeat the step when nothing of this one succeeded; raises LifelinesExhausted.

    A step fails when its calls were refused, or its program: before it ran, or while it did.
    """
    work = context.state.work
    cause = work.fault or decision.fault
    if not cause or work.succeeded:
        work.next_step()
        return
    most = context.state.opened.profile.lifelines
    if work.repeats >= most:
        tried = f"so did its {most} repeats" if most else "it has no lifeline"
        raise LifelinesExhausted(f"{one_line(cause, 500)}; the step failed, and {tried}")
    work.repeats += 1
    usage = context.state.usage
    context.state.usage = usage.model_copy(update={"lifelines": usage.lifelines + 1})
    left, said = most - work.repeats, one_line(cause, 300)
    context.record(
        "lifeline.used", f"the step failed and is repeated (lifelines left: {left}): {said}", left=left, cause=said
    )


def progress_line(progress: Sequence[StepProgress]) -> str:
    """Return what the last steps called and how that ended, oldest first, in one short line."""
    line = ""
    for done in reversed(progress):
        longer = f"{done.step} {done.tool} {done.status}" + (f"; {line}" if line else "")
        if len(longer) > _PROGRESS:
            break
        line = longer
    return line
