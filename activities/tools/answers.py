"""Record what servers answered, at once or by a task, and return what the run is told of it."""

from typing import Any

from activities.resources import Resources
from activities.tools.declared import DeclaredActivities
from activities.tools.effects import Send, told_error, used_by
from activities.tools.finding import ToolActivities, variables_of, vouching
from backstay.tools.stages import Purpose, Stage, applies
from backstay.tools.tool import ToolResult
from store.effects.types import BoundUndo
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition
from toolbox.configuration.meaning import Meaning, judge, why_failed
from toolbox.providers.answer import Answer


class Answers(ToolActivities):
    """Record the answers of calls, whenever they come."""

    def __init__(self, resources: Resources, declared: DeclaredActivities) -> None:
        """Take effects back as the toolbox has `declared`."""
        super().__init__(resources)
        self.declared = declared

    async def of_effect(
        self, send: Send, purpose: str, found: tuple[Catalog, Definition], arguments: dict[str, Any], answer: Answer
    ) -> None:
        """Record what a call came to that changes something, and what undoes it."""
        catalog, definition = found
        undo: BoundUndo | None = None
        run, variables = send.intent.run, variables_of(send.intent.effect_id, arguments)
        judged = judge(answer, definition.declaration, variables)
        if judged.meaning is Meaning.APPLIED and applies(Purpose(purpose), Stage.BIND_UNDO):
            undo = await send.stored(lambda: self.declared.bound(run, catalog, definition, variables, answer))
        send.asked = vouching(definition, arguments)
        await send.settle(answer, judged, undo)

    async def of_read(
        self, run: str, definition: Definition, arguments: dict[str, Any], answer: Answer, **more: Any
    ) -> ToolResult:
        """Keep what a read answered, and return what the run is told of it."""
        return used_by(answer, await self._told(run, definition, arguments, answer, more))

    async def _told(
        self, run: str, definition: Definition, arguments: dict[str, Any], answer: Answer, more: dict[str, Any]
    ) -> ToolResult:
        if not answer.success:
            shown = await self.records.show(run, answer.reason or answer.error or "", definition.provider)
            return ToolResult(success=False, **told_error(str(shown.payload)), error_type="ToolError")
        more = {"asked": vouching(definition, arguments), "said_of": answer.label, **more}
        kept = await self.records.keep(run, definition.name, answer.data, definition.provider, answer.files, **more)
        why = why_failed(answer, definition.declaration, {"arguments": arguments, "effect": {"id": ""}})
        if why is not None:
            shown = await self.records.show(run, why, definition.provider)
            return ToolResult(success=False, error=str(shown.payload)[:500], error_type="ToolError", ref=kept.ref)
        return ToolResult(success=True, cached=answer.cached, **kept.facts)
