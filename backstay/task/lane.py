"""Jobs of plugins as runs: how they are named, and the line in which those of one plugin wait for their turn."""

import hashlib
import string
from typing import Any

from pydantic import Field

from backstay.bounds import Id
from backstay.frozen import PublicInput
from backstay.task.task import Task

WORKFLOW = "JobLane"
ADD = "add"
"""The signal that brings a job."""
DROP = "drop"
"""The signal by which whoever brought a job withdraws it before its run has begun."""
ASIDE = "aside"
"""The signal by which a run says that it waits for people, so that the next job need not wait for them too."""
METADATA = "plugin_job"
"""Under which name a task says that it is a job: the digest of the payload that asked for it."""
_PREFIX = "plugin-lane"
_JOB = "plugin-job"
_PLAIN = frozenset(string.ascii_letters + string.digits + "._-")
_LONGEST = 100


class LaneJob(PublicInput):
    """Hold one job that waits in a lane."""

    workflow_id: Id
    task: dict[str, Any]
    summary: str = Field(default="", max_length=200)


def lane_id(queue: str, plugin: str) -> str:
    """Return the workflow id of the lane of a plugin, or of the one lane of all plugins, that a task queue serves."""
    return f"{_PREFIX}:{queue}:{plugin}"


def is_lane(workflow_id: str) -> bool:
    """Return whether a workflow is a lane, by its id."""
    return workflow_id.partition(":")[0] == _PREFIX


def plugin_of(lane: str) -> str:
    """Return whose jobs wait in a lane; empty for the one lane of all plugins."""
    return lane.rpartition(":")[2]


def is_job(workflow_id: str, queue: str) -> bool:
    """Return whether a run carries out a job on this task queue, by its id."""
    return workflow_id.startswith(f"{_JOB}-{queue}")


def job_id(queue: str, name: str | int) -> str:
    """Return the workflow id of the run that carries out a job on a task queue."""
    if isinstance(name, str) and len(name) <= _LONGEST and _PLAIN.issuperset(name):
        return f"{_JOB}-{queue}-{name}"
    return f"{_JOB}-{queue}:{hashlib.sha256(repr(name).encode('utf-8', 'surrogatepass')).hexdigest()}"


def job_tool(task: Task) -> str:
    """Return the one tool that a job calls; empty for a task that is not a job."""
    steps = task.plan.steps if task.plan is not None else ()
    return steps[0].tool if len(steps) == 1 and METADATA in task.metadata else ""
