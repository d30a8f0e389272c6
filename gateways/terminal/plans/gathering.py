"""Find the plans of a run, and the one that a command names."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from backstay.errors import TaskInvalid, Unreachable
from backstay.settings import Settings
from backstay.shown import one_line
from gateways.terminal.session import account_name, sources_of

_ALL = 1_000_000_000
"""More events than a run has; the states that its plans came to stand in them."""


class Stories(NamedTuple):
    """Hold what is known of the plans of one run."""

    workflow_id: str
    is_open: bool
    pruned: bool
    plans: Sequence[dict[str, Any]]
    """In the order in which they came to be."""


async def stories_of_run(settings: Settings, workflow: str) -> Stories:
    """Return the story of each plan of a run; raises RunNotFound, and TaskInvalid when it has none."""
    async with sources_of(workflow, settings) as (sources, found):
        from people.runs.looking import look
        from people.runs.plans import stories_of

        seen = await look(sources, found, account_name(), most_events=_ALL, whole=True)
    told, row = stories_of(seen), found.row
    if not told and seen.fault:
        raise Unreachable(seen.fault)
    if not told:
        raise TaskInvalid(f"workflow: {one_line(found.workflow_id, 200)} has no plan; see `backstay show`")
    return Stories(found.workflow_id, found.is_open, row is not None and row.pruned_at is not None, told)


def chosen(stories: Sequence[dict[str, Any]], plan_id: str) -> dict[str, Any]:
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
