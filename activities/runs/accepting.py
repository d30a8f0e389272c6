"""Which lines a run obeys that no file of the policy holds: remembered decisions, and jobs that are granted."""

from datetime import UTC, datetime

import structlog

from backstay.errors import PolicyInvalid, TaskInvalid
from backstay.policies.accepted import GRANTED_BY, AcceptedLine
from backstay.task.lane import job_tool
from backstay.task.task import Task
from store.store import Store
from toolbox.catalog.catalog import Catalog
from toolbox.toolbox import Toolbox

_log = structlog.get_logger("backstay.jobs")


async def obeyed_lines(store: Store, toolbox: Toolbox, catalog: Catalog, task: Task) -> tuple[AcceptedLine, ...]:
    """Return the lines that a run obeys; raises TaskInvalid for one that cannot be read and denies something."""
    return (*await _remembered(store, task), *await _granted(toolbox, catalog, task))


async def _remembered(store: Store, task: Task) -> tuple[AcceptedLine, ...]:
    try:
        lines = await store.accepted_lines.holding(task.user_id, task.session_id)
    except PolicyInvalid as error:
        raise TaskInvalid(str(error)) from None
    return tuple(line.bare for line in lines)


async def _granted(toolbox: Toolbox, catalog: Catalog, task: Task) -> tuple[AcceptedLine, ...]:
    """Return the line that lets a job run, where the operator has granted it and the plugin's files are still those.

    Like a decision that is remembered, it replaces the default of the policy and nothing else.
    """
    definition = catalog.definitions.get(job_tool(task))
    if definition is None:
        return ()
    if not await toolbox.runs_unasked(definition):
        _log.info("job.asks", tool=definition.name)
        return ()
    line = AcceptedLine(
        verdict="allow",
        scope="run",
        tool=definition.name,
        definition=definition.tool.definition,
        user_id=task.user_id,
        by=GRANTED_BY,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return (line.identified(),)
