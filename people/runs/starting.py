"""Start runs in the name of whoever starts them, and once under a name that they have chosen."""

from typing import Any

from backstay.authority import principal
from backstay.client import Backstay
from backstay.errors import DecisionRefused, RunNotFound, TaskInvalid
from store.store import Store


async def start_once(backstay: Backstay, store: Store, task: dict[str, Any], workflow_id: str) -> str:
    """Start a run, unless the same was started before; return its workflow ID.

    Raises DecisionRefused where another task was started under that name: it is not what the caller asks for. Once
    Temporal has forgotten a run, only its name counts.
    """
    try:
        await backstay.execution(workflow_id)
    except RunNotFound:
        # Temporal forgets a run some time after its end, and would then start it again.
        if await store.runs.get(workflow_id) is not None:
            return workflow_id
    try:
        return (await backstay.start(task, workflow_id, once=True)).id
    except DecisionRefused:
        raise DecisionRefused("once: you started another task under this name; use another one") from None


def in_own_name(task: dict[str, Any], by: str) -> dict[str, Any]:
    """Return a task as one of the person who starts it, who is its user too.

    Raises TaskInvalid where it names somebody else, or brings a proof.
    """
    for name in ("user_id", "by"):
        given = task.get(name)
        if given is not None and not (isinstance(given, str) and principal(given) == by):
            raise TaskInvalid(f"task.{name}: is {by}, who starts the run; leave it out")
    if task.get("proof") is not None:
        raise TaskInvalid("task.proof: is made here; leave it out")
    return {**task, "user_id": by, "by": by}
