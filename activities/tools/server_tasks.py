"""Keep the tasks by which servers answer later: their ids are sealed, and nobody is shown them."""

from typing import Any

from activities.records import Records
from activities.tools.effects import Send, working
from backstay.tools.server_task import ServerTask
from backstay.tools.tool import ToolResult
from toolbox.catalog.definition import Definition
from toolbox.providers.answer import TaskState


class ServerTasks:
    """Seal tasks, and say of them what a run may know."""

    def __init__(self, records: Records) -> None:
        """Keep everything in the store."""
        self.records = records

    async def hand_over(self, send: Send, definition: Definition, arguments: dict[str, Any], state: TaskState) -> None:
        """Record with an effect the task by which its server answers later."""
        run = send.intent.run
        await send.hand_over(lambda: self._sealed(run, definition, arguments, state), state)

    async def of_read(
        self, run: str, definition: Definition, arguments: dict[str, Any], state: TaskState
    ) -> ToolResult:
        """Return the task by which a server answers a read later."""
        sealed = await self._sealed(run, definition, arguments, state)
        return working(ServerTask(sealed=sealed, **await self.said(run, state)))

    async def said(self, run: str, state: TaskState) -> dict[str, Any]:
        """Return what a run may know of a task."""
        said = await self.records.text(run, state.said)
        return {"poll_s": state.poll_s, "ttl_s": state.ttl_s, "said": said, "refused": state.refused}

    async def _sealed(self, run: str, definition: Definition, arguments: dict[str, Any], state: TaskState) -> str:
        """Seal the id of a task, and all that is needed when it ends; from now on the id is a secret of the run."""
        await self.records.hide(run, definition.provider, "task", state.id)
        kept = {"tool": definition.name, "id": state.id, "arguments": arguments}
        return await self.records.store.blobs.of(run).seal_json(kept)
