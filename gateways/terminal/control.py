"""The commands that change a run itself: top up, undo, pause, resume, cancel."""

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backstay.budgets.budget import TopUp
from backstay.client import Run
from backstay.effects.effect import EffectState
from backstay.errors import BackstayError, DecisionRefused, RunNotFound, TaskInvalid
from backstay.settings import Settings
from backstay.shown import counted, shell_words
from backstay.task.result import KEPT, Outcome, Result
from gateways.terminal.flags import By, Output, Workflow, Yes
from gateways.terminal.render import preview_lines
from gateways.terminal.run import follow
from gateways.terminal.session import account_name, session_of, sources_of, stored_run
from gateways.terminal.terminal import Terminal
from people.runs.words import undone_line

if TYPE_CHECKING:
    from people.runs.undoing import UndoPreview

Reason = Annotated[str, Parameter(help="Why; operators see it.")]
_NEVER_HAPPENED = frozenset({EffectState.PLANNED, EffectState.NOT_SENT, EffectState.FAILED})
_NO_EFFECT = "the run has no effect that could be undone"


async def top_up(
    workflow: Workflow, *, limits: Annotated[TopUp | None, Parameter(name="*")] = None, by: By = None
) -> None:
    """Raise limits of an open run; a run that waits at a limit goes on from there."""
    more = {} if limits is None else limits.model_dump(exclude_unset=True)
    if not more:
        raise TaskInvalid("limits: none given; add at least one, such as --max-steps 5")
    async with session_of(workflow) as run:
        await _require_open(
            run,
            f"top-up: {run.id} has ended; go on from it with: backstay run --continue {shell_words(run.id)} TEXT. "
            "A run that is started with --budget.on-exhausted ask waits at its limits instead",
        )
        await run.top_up(by=by or account_name(), **more)
    Terminal().say(f"topped up: {', '.join(f'{name} +{amount}' for name, amount in more.items())}", "green")


async def undo(
    workflow: Workflow,
    *,
    to_step: int | None = None,
    preview: Annotated[bool, Parameter(negative="")] = False,
    done: int | None = None,
    comment: str = "",
    yes: Yes = False,
    by: By = None,
    output: Output = "text",
    last_seen: Annotated[int | None, Parameter(parse=False)] = None,
) -> int:
    """Undo what a run did, newest first; an open run continues afterwards, an ended one stays ended.

    Parameters
    ----------
    to_step
        Keep the effects of this step and all earlier ones.
    preview
        Only list what would be undone, and what cannot be.
    done
        Record that you have taken this parked effect back by hand; nothing is called.
    comment
        With `--done`: how you did it.
    """
    settings, terminal, name = Settings.load(), Terminal(), by or account_name()
    _refuse_misfits(done, comment, alone=not preview and to_step is None)
    if preview:
        return _shown(terminal, await _preview(settings, workflow, to_step), output)
    async with session_of(workflow, settings) as run:
        if await _is_open(run, settings):
            return await _undo_open(terminal, run, to_step, done, last_seen=last_seen, by=name)
        if done is None and await _did_nothing(run):
            nothing = Result(outcome=Outcome.COMPLETED, success=True, final_summary=_NO_EFFECT, workflow_id=run.id)
            terminal.results(output, nothing.plain(), [_NO_EFFECT])
            return 0
        undoing = await run.start_undo(to_step, last_seen=last_seen, done=done, comment=comment, by=name)
        terminal.say(f"run {undoing.id}", "bold")
        return await follow(terminal, undoing, settings, yes=yes, by=name, output=output)


def _refuse_misfits(done: int | None, comment: str, *, alone: bool) -> None:
    if done is not None and not alone:
        raise TaskInvalid("done: is about one effect; leave --preview and --to-step out")
    if done is None and comment:
        raise TaskInvalid("comment: only with --done; leave it out")


async def _undo_open(
    terminal: Terminal, run: Run, to_step: int | None, done: int | None, *, last_seen: int | None, by: str
) -> int:
    if done is not None:
        raise DecisionRefused(f"done: {run.id} is open; record it when it has ended")
    undone = await run.undo(to_step, last_seen=last_seen, by=by)
    for effect in undone:
        terminal.say(undone_line(effect), "magenta")
    terminal.say(f"{counted(len(undone), 'effect')} looked at; the run continues", "green")
    return 6 if any(effect.state == "parked" for effect in undone) else 0


async def pause(workflow: Workflow, *, reason: Reason = "", by: By = None) -> None:
    """Pause a run before its next step or call."""
    async with session_of(workflow) as run:
        await run.pause(reason, by=by or account_name())
    Terminal().say(f"paused; resume it with: backstay resume {shell_words(run.id)}", "green")


async def message(
    workflow: Workflow,
    text: Annotated[str, Parameter(help="The message, which the model reads.")],
    *,
    by: By = None,
    output: Output = "text",
) -> None:
    """Tell a run something while it works; its model reads it at its next step."""
    async with session_of(workflow) as run:
        if not await run.is_open():
            raise DecisionRefused(
                f"message: {run.id} has ended; go on from it with: backstay run --continue {shell_words(run.id)} TEXT"
            )
        await run.message(text, by=by or account_name())
    terminal = Terminal()
    terminal.say("received; the model reads it at its next step", "green")
    terminal.results(output, {"workflow_id": run.id, "received": True}, ())


async def resume(workflow: Workflow, *, reason: Reason = "", by: By = None) -> None:
    """Resume a paused run."""
    async with session_of(workflow) as run:
        await run.resume(reason, by=by or account_name())
    Terminal().say("resumed", "green")


async def cancel(workflow: Workflow) -> None:
    """Cancel a run: calls that were sent may finish, then what the run did is undone."""
    async with session_of(workflow) as run:
        undo = f"backstay undo {shell_words(run.id)}"
        await _require_open(run, f"cancel: {run.id} has ended; what it did is undone with: {undo}")
        await run.cancel()
    Terminal().say(f"cancellation requested; follow it with: backstay attach {shell_words(run.id)}", "green")


async def _require_open(run: Run, otherwise: str) -> None:
    """Raise DecisionRefused for a run that has ended; one that is not known is told by what is asked of it."""
    with suppress(RunNotFound):
        if not await run.is_open():
            raise DecisionRefused(otherwise)


async def _is_open(run: Run, settings: Settings) -> bool:
    """Return whether the run is open; a run that only the store knows is not."""
    try:
        return await run.is_open()
    except RunNotFound:
        async with stored_run(settings, run.id) as (_, row):
            if row is None:
                raise
        return False


async def _did_nothing(run: Run) -> bool:
    """Return whether an ended run is known to have had no effect at all, undone by now or not."""
    try:
        result = await run.result()
    except BackstayError:
        return False
    # Without the ref the store could not be asked when the run ended, and of many effects only the last ones are here.
    if result.effects_ref is None or len(result.effects) >= KEPT:
        return False
    return all(effect.state in _NEVER_HAPPENED for effect in result.effects)


async def previewed(workflow: str, *, silent: bool = False) -> "UndoPreview":
    """Show what an undo would do now, and return it."""
    found = await _preview(Settings.load(), workflow, None)
    if not silent:
        _shown(Terminal(), found, "text")
    return found


def _shown(terminal: Terminal, found: "UndoPreview", output: Output) -> int:
    rows = found.undo["effects"]
    terminal.results(output, rows, (line for row in rows for line in preview_lines(row)))
    if not rows:
        terminal.say("nothing to undo")
    return 0


async def _preview(settings: Settings, workflow: str, to_step: int | None) -> "UndoPreview":
    async with sources_of(workflow, settings) as (sources, found):
        from people.runs.undoing import preview

        return await preview(sources, found, to_step, most=None)
