"""The commands `run` and `attach`: start a run, or return to it, and follow it to its end."""

import asyncio
from collections.abc import Container
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from cyclopts import Parameter

from backstay.budgets.budget import Budget
from backstay.client import Backstay, Run
from backstay.errors import RunNotFound, TaskInvalid
from backstay.policies.sections import refuse_emptied
from backstay.settings import Settings
from backstay.shown import shell_words
from backstay.task.result import Result
from backstay.task.task import Task
from backstay.yaml_text import DatesAsText, as_json, read_yaml
from gateways.terminal.asking.prompt import Detached, Prompt
from gateways.terminal.definitions import task_of
from gateways.terminal.exit_codes import DETACHED, DONE, ENDED
from gateways.terminal.flags import By, Output, User, Workflow, Yes, json_object
from gateways.terminal.follow import RunFollower
from gateways.terminal.reading import readable
from gateways.terminal.render import ending_lines, event_line, result_text, style_of
from gateways.terminal.session import account_name, find, session, stored_run, undone_since
from gateways.terminal.terminal import Terminal

Limits = Annotated[Budget | None, Parameter(negative_none="no-")]
Text = Annotated[str, Parameter(help="The task, in a sentence.")]
PlanFile = Annotated[Path | None, Parameter(help="YAML or JSON file with a plan to carry out, instead of a sentence.")]
SchemaFile = Annotated[
    Path | None, Parameter(help="YAML or JSON file with the JSON Schema of the value that the run must return.")
]
Input = Annotated[str | None, Parameter(help="JSON object that the task and its plan may refer to.")]
WorkflowId = Annotated[str | None, Parameter(help="Workflow ID; if a run with this ID is open, follow that one.")]
ModelName = Annotated[str | None, Parameter(help="Model to use instead of BACKSTAY_MODEL.")]
ProfileName = Annotated[str | None, Parameter(help="Profile that sets what the task leaves out.")]
PolicyFile = Annotated[Path | None, Parameter(help="YAML file with rules that tighten the operator's policy.")]
OnFailure = Annotated[Literal["rollback", "keep"], Parameter(help="Undo what the run did when it fails, or keep it.")]
Workspace = Annotated[str | None, Parameter(help="Folder that the run works in, inside BACKSTAY_WORKSPACES.")]
Filesystem = Annotated[bool, Parameter(help="Let the run read and change the files of its workspace.")]
Detach = Annotated[bool, Parameter(negative="", help="Start the run, print its id, and do not follow it.")]
Continue = Annotated[
    str | None,
    Parameter(
        name="--continue",
        help="Continue an ended run: its workflow ID, the beginning of it, or `last` for the newest run but undos.",
    ),
]
Definition = Annotated[
    str | None,
    Parameter(help="Plan to carry out, by its ID in the folder BACKSTAY_DEFINITIONS, instead of a sentence."),
]
Mode = Annotated[
    Literal["act", "plan_first"], Parameter(help="plan_first: do nothing before people have approved a plan.")
]
Rehearse = Annotated[bool, Parameter(help="Show people what a plan or program would do before it does anything.")]
Attach = Annotated[
    list[Path] | None,
    Parameter(negative="", help="Picture or PDF that the task is about; repeat the flag for several files."),
]
Shell = Annotated[bool, Parameter(help="Let the run execute commands in its workspace.")]


async def run(
    text: Text = "",
    *,
    budget: Limits = None,
    plan: PlanFile = None,
    definition: Definition = None,
    output_schema: SchemaFile = None,
    input: Input = None,  # noqa: A002 - the field's name
    attach: Attach = None,
    user: User | None = None,
    following: Continue = None,
    id: WorkflowId = None,  # noqa: A002 - Temporal's word
    mode: Mode | None = None,
    rehearse: Rehearse = False,
    model: ModelName = None,
    profile: ProfileName = None,
    policy: PolicyFile = None,
    on_failure: OnFailure = "rollback",
    workspace: Workspace = None,
    filesystem: Filesystem = False,
    shell: Shell = False,
    detach: Detach = False,
    yes: Yes = False,
    by: By = None,
    output: Output = "text",
) -> int:
    """Start a run and follow it; Ctrl-C detaches, and the run continues."""
    given: dict[str, Any] = {"text": text, "on_failure": on_failure, "model": model, "profile": profile, "mode": mode}
    given |= {"user_id": user, "by": by, "workspace": workspace, "filesystem": filesystem or None}
    given |= {"shell": shell or None, "rehearse": rehearse or None, "input": input}
    given |= {"budget": None if budget is None else budget.model_dump(mode="json", exclude_unset=True)}
    given |= _files({"plan": plan, "output-schema": output_schema, "policy": policy})
    settings, terminal = Settings.load(), Terminal()
    Task.admit(task := await _task(settings, definition, given))
    async with session(settings) as backstay:
        started = await _started(settings, backstay, following, task, id=id, attach=attach or [])
        terminal.say(f"run {started.id}", "bold")
        if detach:
            return _left(terminal, started, output)
        return await follow(terminal, started, settings, yes=yes, by=by, output=output)


async def _started(
    settings: Settings, backstay: Backstay, following: str | None, task: dict[str, Any], **more: Any
) -> Run:
    if following is None:
        return await backstay.start(task, **more)
    try:
        return await (await find(backstay, following)).follow_up(**task, **more)
    except RunNotFound:
        async with stored_run(settings, following) as (_, row):
            if row is None:
                raise
    # Temporal has forgotten the run; a run follows it all the same.
    same = {"user_id": row.user_id} | ({} if row.session_id is None else {"session_id": row.session_id})
    return await backstay.follow_up(row.workflow_id, run_id=row.workflow_run_id, **(same | task), **more)


def _files(paths: dict[str, Path | None]) -> dict[str, Any]:
    return {name.replace("-", "_"): _read(path, name) for name, path in paths.items() if path is not None}


async def _task(settings: Settings, definition: str | None, given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the task that are set, with those of a definition if one is named."""
    # Where it can be signed: a person who has proved to have started a run may go on from it.
    given["by"] = None if settings.approver_key is None else given["by"] or account_name()
    given["input"] = None if given["input"] is None else json_object(given["input"], "--input", '{"days": 60}')
    if definition is not None:
        if "plan" in given:
            raise TaskInvalid("--definition: a definition is a plan; leave --plan out")
        fields = await task_of(settings, definition, given["input"], given["user_id"] or "singleton")
        given |= fields | ({"text": given["text"]} if given["text"] else {})
    return {name: value for name, value in given.items() if value is not None}


def _left(terminal: Terminal, run: Run, output: Output) -> int:
    terminal.say(f"follow it with: backstay attach {shell_words(run.id)}")
    terminal.results(output, {"workflow_id": run.id}, [run.id])
    return 0


async def attach(workflow: Workflow, *, yes: Yes = False, by: By = None, output: Output = "text") -> int:
    """Follow a run that has already started: show its events and decide its requests."""
    settings, terminal = Settings.load(), Terminal()
    async with session(settings) as backstay:
        known = await find(backstay, workflow)
        try:
            is_open = await known.is_open()
            back = () if is_open else await undone_since(settings, known.id)
        except RunNotFound:
            return await _remembered(terminal, settings, workflow, output)
        return await follow(terminal, known, settings, yes=yes, by=by, output=output, back=back, reads=is_open)


async def follow(
    terminal: Terminal,
    run: Run,
    settings: Settings,
    *,
    yes: bool = False,
    by: By = None,
    output: Output,
    back: Container[int] = (),
    reads: bool = True,
) -> int:
    """Follow a run to its end and print its Result; when the person detaches, print how to come back.

    `back` are the effects that were undone since its end. With `reads`, a worker is there to read answers.
    """
    editor = settings.environment.get("VISUAL") or settings.environment.get("EDITOR")
    prompt = Prompt(terminal, run, settings, by=by or account_name(), editor=editor)
    try:
        await RunFollower(terminal, run, prompt, yes="--yes was given" if yes else "", asks=output == "text").follow()
        result = await run.result()
        if output == "text" and reads:
            told = await readable(run, result.raw_outputs)
            result = result.model_copy(update={"raw_outputs": told})
    except (Detached, asyncio.CancelledError) as reason:
        terminal.say(f"the run continues; follow it with: backstay attach {shell_words(run.id)}", "yellow")
        terminal.say(f"or end it with: backstay cancel {shell_words(run.id)}", "yellow")
        if isinstance(reason, Detached):
            return DETACHED
        raise
    return shown(terminal, result, output, back)


def shown(terminal: Terminal, result: Result, output: Output, back: Container[int] = ()) -> int:
    """Print a Result and return the exit code it stands for; some of its effects may have been undone since."""
    for line, style in ending_lines(result, back):
        terminal.say(line, style)
    terminal.results(output, result.plain(), [result_text(result)])
    # An undo that has done what it was to do has rolled back, too.
    return DONE if result.success else ENDED[result.outcome]


async def _remembered(terminal: Terminal, settings: Settings, workflow: str, output: Output) -> int:
    """Show a run that Temporal no longer knows, from the store."""
    async with stored_run(settings, workflow) as (store, row):
        if row is None or row.result is None:
            raise RunNotFound(f"workflow: no run {workflow}, neither in Temporal nor in the store; see `backstay list`")
        events = await store.events.of_run(row.run)
    for event in events:
        terminal.say(event_line(event), style_of(event))
    return shown(terminal, Result.model_validate(row.result), output, await undone_since(settings, workflow))


def _read(path: Path, field: str) -> Any:
    try:
        data = read_yaml(path.read_text(encoding="utf-8"), DatesAsText)
    except (OSError, UnicodeDecodeError) as error:
        raise TaskInvalid(f"--{field}: {path} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise TaskInvalid(f"--{field}: {path} is not valid YAML or JSON: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict):
        raise TaskInvalid(f"--{field}: {path} is not a mapping of fields; see the examples folder")
    if field == "policy":
        refuse_emptied(data)
    try:
        return as_json(data)
    except ValueError as error:
        raise TaskInvalid(f"--{field}: {path} {error}") from None
