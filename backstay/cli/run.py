"""The commands that start runs and come back to them."""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from cyclopts import Parameter

from backstay.budgets.budget import Budget
from backstay.cli.codes import DETACHED, ENDED
from backstay.cli.flags import By, Output, User, Workflow, Yes
from backstay.cli.follow import Detached, Follower
from backstay.cli.prompt import Prompt
from backstay.cli.render import ending_lines, event_line, result_text, style_of
from backstay.cli.session import books, has_books, myself, session
from backstay.cli.terminal import Terminal
from backstay.client import Run
from backstay.errors import RunNotFound, TaskInvalid
from backstay.settings import Settings
from backstay.task.result import Result
from backstay.task.task import Task

Limits = Annotated[Budget | None, Parameter(negative_none="no-")]
PlanFile = Annotated[Path | None, Parameter(help="A plan to carry out instead, as YAML or JSON.")]
PolicyFile = Annotated[Path | None, Parameter(help="YAML that makes the operator's policy tighter for this run.")]
Input = Annotated[str | None, Parameter(help="JSON object that the task and its plan may refer to.")]
WorkflowId = Annotated[str | None, Parameter(help="Workflow id; the id of an open run attaches to it.")]
OnFailure = Annotated[
    Literal["rollback", "keep"], Parameter(help="Whether what was done is taken back when the run fails.")
]
Workspace = Annotated[str | None, Parameter(help="The folder that the run works in, beneath BACKSTAY_WORKSPACES.")]
Filesystem = Annotated[bool, Parameter(help="Let the run read and change the files of its workspace.")]
Shell = Annotated[bool, Parameter(help="Let the run run commands in its workspace.")]


async def run(
    text: str = "",
    *,
    budget: Limits = None,
    plan: PlanFile = None,
    input: Input = None,  # noqa: A002 - the field's name
    user: User = "singleton",
    id: WorkflowId = None,  # noqa: A002 - Temporal's word
    model: str | None = None,
    policy: PolicyFile = None,
    on_failure: OnFailure = "rollback",
    workspace: Workspace = None,
    filesystem: Filesystem = False,
    shell: Shell = False,
    yes: Yes = False,
    by: By = None,
    output: Output = "text",
) -> int:
    """Start a run and follow it; Ctrl-C lets go of it, and it goes on.

    Parameters
    ----------
    text
        What is wanted, in a sentence.
    """
    given = {
        "budget": None if budget is None else budget.model_dump(mode="json", exclude_unset=True),
        "plan": None if plan is None else _read(plan, "plan"),
        "policy": None if policy is None else _read(policy, "policy"),
        "input": None if input is None else _json(input, "input"),
        "model": model,
    } | {"workspace": workspace, "filesystem": filesystem or None, "shell": shell or None}
    task: dict[str, Any] = {"text": text, "user_id": user, "on_failure": on_failure}
    task |= {name: value for name, value in given.items() if value is not None}
    admitted, settings, terminal = Task.admit(task), Settings.load(), Terminal()
    async with session(settings) as backstay:
        started = await backstay.start(admitted, id=id)
        terminal.say(f"run {started.id}", "bold")
        return await followed(terminal, started, settings, yes=yes, by=by, output=output)


async def attach(
    workflow: Workflow,
    *,
    yes: Yes = False,
    by: By = None,
    output: Output = "text",
) -> int:
    """Come back to a run: show what happened, follow it, decide what it asks."""
    settings = Settings.load()
    terminal = Terminal()
    async with session(settings) as backstay:
        known = backstay.run(workflow)
        try:
            await known.is_open()
        except RunNotFound:
            return await _remembered(terminal, settings, workflow, output)
        return await followed(terminal, known, settings, yes=yes, by=by, output=output)


async def followed(
    terminal: Terminal, run: Run, settings: Settings, *, yes: bool = False, by: By = None, output: Output
) -> int:
    """Follow a run to its end and print its Result; letting go prints how to come back."""
    editor = settings.environment.get("VISUAL") or settings.environment.get("EDITOR")
    prompt = Prompt(terminal, run, by=by or myself(), editor=editor)
    try:
        await Follower(terminal, run, prompt, yes="--yes was given" if yes else "", asks=output == "text").follow()
        result = await run.result()
    except (Detached, asyncio.CancelledError) as let_go:
        terminal.say(f"the run goes on; come back with: backstay attach {run.id}", "yellow")
        terminal.say(f"or end it with: backstay cancel {run.id}", "yellow")
        if isinstance(let_go, Detached):
            return DETACHED
        raise
    return shown(terminal, result, output)


def shown(terminal: Terminal, result: Result, output: Output) -> int:
    """Print a Result and return the exit code it stands for."""
    for line, style in ending_lines(result):
        terminal.say(line, style)
    if output == "json":
        terminal.result_json(result.plain())
    else:
        terminal.result(result_text(result))
    return ENDED[result.outcome]


async def _remembered(terminal: Terminal, settings: Settings, workflow: str, output: Output) -> int:
    """Show a run that Temporal has forgotten, from the store."""
    missing = RunNotFound(f"workflow: no run {workflow}, neither in Temporal nor in the store; see `backstay list`")
    if not has_books(settings):
        raise missing
    async with books(settings) as store:
        row = await store.runs.get(workflow)
        if row is None or row.result is None:
            raise missing
        events = await store.events.of_run(row.run)
    for event in events:
        terminal.say(event_line(event), style_of(event))
    return shown(terminal, Result.model_validate(row.result), output)


def _read(path: Path, field: str) -> Any:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise TaskInvalid(f"--{field}: {path} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise TaskInvalid(f"--{field}: {path} is no YAML or JSON: {error}") from None
    if not isinstance(data, dict):
        raise TaskInvalid(f"--{field}: {path} holds no mapping; see the examples folder")
    return json.loads(json.dumps(data, default=str))


def _json(text: str, field: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise TaskInvalid(f"--{field}: no JSON ({error}); give an object such as '{{\"days\": 60}}'") from None
