"""The commands that change a run itself: top up, undo, pause, resume, cancel."""

from typing import Annotated

from cyclopts import Parameter

from backstay.budgets.budget import TopUp
from backstay.cli.flags import By, Output, Workflow, Yes
from backstay.cli.run import followed
from backstay.cli.session import books, has_books, myself, session
from backstay.cli.terminal import Terminal
from backstay.client import Backstay, Run
from backstay.errors import RunNotFound, TaskInvalid
from backstay.settings import Settings

STANDING = frozenset({"applied", "kept", "unknown", "dispatched"})


async def top_up(
    workflow: Workflow, *, limits: Annotated[TopUp | None, Parameter(name="*")] = None, by: By = None
) -> int:
    """Raise limits of a run; one that was stopped by a limit goes on where it stopped."""
    more = {} if limits is None else limits.model_dump(exclude_unset=True)
    if not more:
        raise TaskInvalid("limits: none given; add one, such as --max-steps 5")
    async with session() as backstay:
        await backstay.run(workflow).top_up(by=by or myself(), **more)
    Terminal().say(f"topped up: {', '.join(f'{name} +{amount}' for name, amount in more.items())}", "green")
    return 0


async def undo(
    workflow: Workflow,
    *,
    to_step: int | None = None,
    preview: Annotated[bool, Parameter(negative="")] = False,
    yes: Yes = False,
    by: By = None,
    output: Output = "text",
) -> int:
    """Take back what a run did, last first; an open run goes on afterwards, an ended one stays ended.

    Parameters
    ----------
    to_step
        Keep the effects up to and including this step.
    preview
        Only list what would be done, and what cannot be undone.
    """
    settings, terminal, name = Settings.load(), Terminal(), by or myself()
    async with session(settings) as backstay:
        if preview:
            return await _preview(terminal, settings, backstay, workflow)
        run = backstay.run(workflow)
        if await _open(run, settings):
            undone = await run.undo(to_step, by=name)
            for one in undone:
                terminal.say(f"{one.tool}: {one.state}{f' ({one.detail})' if one.detail else ''}", "magenta")
            terminal.say(f"{len(undone)} effects looked at; the run goes on", "green")
            return 6 if any(one.state == "parked" for one in undone) else 0
        undoing = await run.start_undo(to_step, by=name)
        terminal.say(f"run {undoing.id}", "bold")
        code = await followed(terminal, undoing, settings, yes=yes, by=name, output=output)
        return 0 if code == 5 else code  # taking back was the wish, so that it was done is success


async def pause(workflow: Workflow, *, reason: str = "", by: By = None) -> int:
    """Hold a run before its next step or call.

    Parameters
    ----------
    reason
        Why; operators read it.
    """
    async with session() as backstay:
        await backstay.run(workflow).pause(reason, by=by or myself())
    Terminal().say(f"paused; go on with: backstay resume {workflow}", "green")
    return 0


async def resume(workflow: Workflow, *, by: By = None) -> int:
    """Let a paused run go on."""
    async with session() as backstay:
        await backstay.run(workflow).resume(by=by or myself())
    Terminal().say("resumed", "green")
    return 0


async def cancel(workflow: Workflow) -> int:
    """Cancel a run; what is on its way is let finish, then what was done is taken back."""
    async with session() as backstay:
        await backstay.run(workflow).cancel()
    Terminal().say(f"asked to cancel; watch it with: backstay attach {workflow}", "green")
    return 0


async def _open(run: Run, settings: Settings) -> bool:
    """Say whether the run goes on; one that only the store remembers does not."""
    try:
        return await run.is_open()
    except RunNotFound:
        if has_books(settings):
            async with books(settings) as store:
                if await store.runs.get(run.id) is not None:
                    return False
        raise


async def _preview(terminal: Terminal, settings: Settings, backstay: Backstay, workflow: str) -> int:
    """List all of it from the store where there is one, else what the run itself still shows."""
    rows: list[tuple[int, str, str | None]] = []
    if has_books(settings):
        async with books(settings) as store:
            row = await store.runs.get(workflow)
            if row is not None:
                row.demand_kept()
            effects = [] if row is None else await store.effects.of_run(row.run)
        rows = [(e.n, e.tool, e.undo_shown) for e in effects if not e.undo and e.state.value in STANDING]
    if not rows:
        shown = (await backstay.run(workflow).preview()).get("effects", [])
        rows = [(slot["effect"], slot["tool"], slot.get("shown")) for slot in shown]
    for n, tool, how in sorted(rows, reverse=True):
        terminal.result(f"{n}. {tool}: {how or 'CANNOT BE UNDONE'}")
    if not rows:
        terminal.say("nothing to undo")
    return 0
