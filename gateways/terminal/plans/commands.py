"""The commands `plan show`, `plan diff` and `plan export`."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter

from backstay.errors import TaskInvalid, Unreachable
from backstay.settings import Settings
from backstay.shown import one_line
from gateways.terminal.flags import Output, OutputFile, Workflow
from gateways.terminal.plans.telling import change_lines, markdown, story_lines
from gateways.terminal.reading import write_text
from gateways.terminal.session import account_name, sources_of
from gateways.terminal.terminal import Terminal

PlanId = Annotated[str, Parameter(help="ID of the plan, such as p1, the beginning of it, or `last`.")]
Format = Annotated[Literal["json", "markdown"], Parameter(help="json, or markdown for people who keep records.")]
_ALL_EVENTS = 1_000_000_000
"""More events than a run has; the states that its plans came to be in them."""


class _Stories(NamedTuple):
    """Hold what is known of the plans of one run."""

    workflow_id: str
    is_open: bool
    pruned: bool
    plans: Sequence[dict[str, Any]]
    """In the order in which they came to be."""


async def show(workflow: Workflow, plan_id: PlanId = "last", *, output: Output = "text") -> None:
    """Show a plan of a run: its steps and how far each came, what people were shown of it, and who decided what."""
    found = await _stories(Settings.load(), workflow)
    story = _chosen(found.plans, plan_id)
    terminal = Terminal()
    for line in _around(found, story):
        terminal.say(line, "dim")
    data = {"workflow_id": found.workflow_id, "open": found.is_open, **story}
    terminal.results(output, data, (part for line in story_lines(story) for part in terminal.wrapped(line)))


async def diff(workflow: Workflow, plan_id: PlanId = "last", *, output: Output = "text") -> None:
    """Show what a plan changes of the plan that it replaced, step by step; by default the newest that replaced one."""
    stories = (await _stories(Settings.load(), workflow)).plans
    amended = [story for story in stories if story["parent"]]
    story = amended[-1] if plan_id == "last" and amended else _chosen(stories, plan_id)
    if story["parent"] is None:
        raise TaskInvalid(f"plan: {one_line(story['plan_id'], 100)} replaced no other plan; see `backstay plan show`")
    if story["changes"] is None:
        raise TaskInvalid(f"plan: {one_line(story['parent'], 100)}, which it replaced, is not known any more")
    changes, terminal = story["changes"], Terminal()
    lines = [f"{changes['parent']} -> {changes['plan_id']}", *change_lines(changes)]
    terminal.results(output, changes, (part for line in lines for part in terminal.wrapped(line)))


async def export(workflow: Workflow, *, format: Format = "json", output_file: OutputFile = None) -> None:  # noqa: A002 - the flag's name
    """Write the whole story of all plans of a run: proposals, diffs, decisions, states, results, and what was undone.

    Results are named by their refs. Secrets are replaced as everywhere.
    """
    found, terminal = await _stories(Settings.load(), workflow), Terminal()
    undone = [
        {"effect": step["effect"], "tool": step["action"], "state": step["undone"]}
        for story in found.plans
        for step in story["steps"]
        if step["undone"]
    ]
    about: dict[str, Any] = {"workflow_id": found.workflow_id, "open": found.is_open, "pruned": found.pruned}
    if format == "markdown":
        text = markdown(found.workflow_id, found.plans, undone)
    else:
        text = json.dumps(about | {"plans": [*found.plans], "undone": undone}, indent=2)
    if output_file is None:
        terminal.result(text)
    else:
        write_text(output_file, f"{text}\n")
        terminal.say(f"written to {output_file}", "green")


def _around(found: _Stories, story: dict[str, Any]) -> list[str]:
    """Return what is to be said beside the plan: that the run was pruned, and which other plans it has."""
    lines = ["the run was pruned; this is what is kept of its plans"] if found.pruned else []
    others = [f"{other['plan_id']} ({other['state']})" for other in found.plans if other is not story]
    return [*lines, *([f"other plans of {found.workflow_id}: {', '.join(others)}"] if others else [])]


async def _stories(settings: Settings, workflow: str) -> _Stories:
    """Return the story of each plan of a run; raises RunNotFound, and TaskInvalid when it has none."""
    async with sources_of(workflow, settings) as (sources, found):
        from people.runs.looking import look
        from people.runs.plans import stories_of

        seen = await look(sources, found, account_name(), most_events=_ALL_EVENTS, whole=True)
    told, row = stories_of(seen), found.row
    if not told and seen.fault:
        raise Unreachable(seen.fault)
    if not told:
        raise TaskInvalid(f"workflow: {one_line(found.workflow_id, 200)} has no plan; see `backstay show`")
    return _Stories(found.workflow_id, found.is_open, row is not None and row.pruned_at is not None, told)


def _chosen(stories: Sequence[dict[str, Any]], plan_id: str) -> dict[str, Any]:
    """Return the story of the plan with this id, or the only one whose id begins so.

    `last` is the newest that was not left for another one.
    """
    if plan_id == "last":
        return next((story for story in reversed(stories) if story["reason"] != "not_chosen"), stories[-1])
    found = [story for story in stories if story["plan_id"] == plan_id]
    found = found or [story for story in stories if str(story["plan_id"]).startswith(plan_id)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(one_line(str(story["plan_id"]), 60) for story in found or stories)
    why = "several plans begin with" if found else "no plan"
    raise TaskInvalid(f"plan: {why} {one_line(plan_id, 60)}; the plans are: {known}")
