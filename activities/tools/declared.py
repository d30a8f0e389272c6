"""Use what the toolbox declares for an effect that was sent: its check, and the call that undoes it."""

from contextlib import suppress
from typing import Any, NamedTuple

from activities.offloading import offload, refuse_unfit
from activities.resources import require_valid, workspace_access_of
from activities.tools.finding import ToolActivities, variables_of, vouching
from activities.tools.server_tasks import ServerTasks
from backstay import calls
from backstay.canonical import canonical, digest_of
from backstay.effects.effect import EffectState
from backstay.errors import ArgumentsInvalid, CompensationFailed, OutcomeUnknown, ToolNotFound, ToolUnavailable
from backstay.redaction.handles import escape_lookalikes
from backstay.shown import one_line
from backstay.tools.tool import ToolResult
from store.effects.types import BoundUndo, EffectRow
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition
from toolbox.configuration.template import holds, render, render_call
from toolbox.providers.answer import Answer, TaskState
from toolbox.providers.declaration import Check
from toolbox.providers.provider import NotSent

_Ask = calls.CallTool | calls.FollowTask
_OfEffect = _Ask | calls.SettleEffect


class ShownUndo(NamedTuple):
    """Hold the call that takes an effect back in shown form, with large parts stored apart."""

    tool: str
    arguments: dict[str, Any]
    digest: str
    """The digest of the arguments before that."""


class _Check(NamedTuple):
    """Hold what is needed for the check of an effect, or of its compensation."""

    row: EffectRow
    catalog: Catalog
    definition: Definition
    declared: Check
    checker: Definition
    arguments: dict[str, Any]
    """Those that were sent."""


class DeclaredActivities(ToolActivities):
    """Run declared checks, and fill in declared compensations."""

    async def bound(
        self, run: str, catalog: Catalog, definition: Definition, variables: dict[str, Any], answer: Answer
    ) -> BoundUndo | None:
        """Render the compensation over the answer as read, else as meant; None where it cannot be undone."""
        declared, found = definition.declaration.undo, catalog.undo_of(definition)
        if declared is None or found is None:
            return None
        for result in (answer.data, answer.meant):
            with suppress(ArgumentsInvalid):
                arguments = render_call(declared.arguments, variables | {"result": result})
                await require_valid(found, arguments)
                break
        else:
            return None
        shown = await self.records.show(run, arguments, found.provider)
        line = f"{found.name}({', '.join(f'{key}={canonical(value)}' for key, value in shown.payload.items())})"
        sealed_ref = await self.store.blobs.of(run).seal_json(arguments)
        return BoundUndo(tool=found.name, sealed_ref=sealed_ref, shown=one_line(line, 300))

    async def verify(self, ask: calls.CallTool) -> ToolResult:
        """Run the check that the tool of an effect, or of its compensation, declares.

        A positive check records the effect, or the compensation, as applied.
        """
        check = await self._check_of(ask)
        if check is None:
            return ToolResult(success=True)
        given = render_call(check.declared.arguments, variables_of(check.row.effect_id, check.arguments))
        answer = await self._checked(ask, check.checker, given)
        if isinstance(answer, TaskState):
            return await ServerTasks(self.records).of_read(ask.run, check.checker, given, answer)
        return ToolResult(success=True) if answer is None else await self._judged(ask, check, answer)

    async def verified(self, ask: calls.FollowTask, answer: Answer) -> ToolResult:
        """Return what the task says by which a check was answered."""
        check = await self._check_of(ask)
        told = answer.success and answer.data is not None
        return ToolResult(success=True) if check is None or not told else await self._judged(ask, check, answer)

    async def _check_of(self, ask: _Ask) -> _Check | None:
        """Return the check of what was sent; None where nothing is known of that any more. Raises ToolNotFound."""
        undo = ask.purpose == "verify_undo"
        row = await self.row(ask, undo=undo)
        catalog, definition = await self.definition(ask, row.tool)
        declared, checker = definition.declaration.verify, catalog.verify_of(definition)
        if declared is None or checker is None:
            raise ToolNotFound(f"{row.tool} declares no check")
        arguments = (await self.compensation(ask))[1] if undo else await self._sent_arguments(row)
        if undo and digest_of(arguments) != row.args_digest:
            # The tool that takes the effect back was declared anew since it was sent.
            return None
        return _Check(row, catalog, definition, declared, checker, arguments)

    async def _judged(self, ask: _Ask, check: _Check, answer: Answer) -> ToolResult:
        row, definition, declared, arguments = check.row, check.definition, check.declared, check.arguments
        variables = variables_of(row.effect_id, arguments)
        seen = variables | {"result": answer.meant}
        if not holds(declared.applied_if, seen):
            return ToolResult(success=True, verified=False, verify_is_final=declared.verify_is_final)
        if declared.result is not None:
            answer = Answer(success=True, data=render(declared.result, seen))
        asked = vouching(definition, arguments)
        ref = (await self.records.keep(ask.run, row.tool, answer.data, definition.provider, asked=asked)).ref
        bound = None if row.undo else await self.bound(ask.run, check.catalog, definition, variables, answer)
        settled = await self.store.effects.resolve(
            row.effect_id,
            state=EffectState.APPLIED,
            outcome="the declared check says it happened",
            result_ref=ref,
            undo=bound,
        )
        return ToolResult(success=True, ref=settled.result_ref or ref, verified=True, undo=settled.undo_shown)

    async def _checked(
        self, ask: calls.CallTool, checker: Definition, arguments: dict[str, Any]
    ) -> Answer | TaskState | None:
        if await checker.check(arguments) is not None:
            return None
        try:
            answer = await self.toolbox.call(
                checker,
                arguments,
                deadline_s=ask.deadline_s,
                workspace_access=workspace_access_of(ask),
                caller=await self.caller(ask),
                follows=True,
            )
        except (NotSent, OutcomeUnknown, ToolUnavailable):
            return None
        if answer.task is not None:
            return answer.task
        return answer if answer.success and answer.data is not None else None

    async def compensation(self, ask: _OfEffect) -> tuple[str, dict[str, Any]]:
        """Return the tool that takes an effect back, and the arguments it is called with."""
        row = await self.row(ask)
        if row.undo_tool is not None and row.undo_sealed is not None:
            return row.undo_tool, await self.store.blobs.of(ask.run).unseal_json(row.undo_sealed)
        catalog, definition = await self.definition(ask, row.tool)
        declared, found = definition.declaration.undo_by_effect_id, catalog.undo_by_effect_id_of(definition)
        if declared is None or found is None:
            raise CompensationFailed("no compensation was recorded for it")
        variables = variables_of(row.effect_id, await self._sent_arguments(row))
        return found.name, render_call(declared.arguments, variables)

    async def shown_compensation(self, ask: _OfEffect, kept_in: str) -> ShownUndo:
        """Return the call that takes an effect back as people of the run `kept_in` are to see it to decide about it."""
        tool, arguments = await self.compensation(ask)
        shown = await self._shown(ask.run, tool, arguments)
        return ShownUndo(tool, await offload(self.store.blobs.of(kept_in), shown), digest_of(shown))

    async def require_agreed(self, ask: calls.CallTool, tool: str, arguments: dict[str, Any]) -> None:
        """Raise CompensationFailed where a compensation is not the one that was ruled on and that people were shown."""
        if tool != ask.tool:
            why = f"it was decided that {ask.tool} may be called for it, and {tool} would be; undo the run again"
            raise CompensationFailed(why)
        if ask.args_digest and digest_of(await self._shown(ask.run, tool, arguments)) != ask.args_digest:
            raise CompensationFailed(f"{tool} would be called with other arguments than people saw; undo the run again")

    async def _shown(self, run: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        refuse_unfit(arguments)
        shown = (await self.records.show(run, arguments, tool.partition(".")[0])).payload
        return escape_lookalikes(shown, (await self.records.secrets.of(run)).handles)

    async def row(self, ask: _OfEffect, *, undo: bool = False) -> EffectRow:
        """Return what is recorded of the effect, or with `undo` of its compensation; raises ArgumentsInvalid."""
        effect_id = f"{ask.run}/{ask.effect}{'/undo' if undo else ''}"
        row = await self.store.effects.get(effect_id)
        if row is None:
            raise ArgumentsInvalid(f"no effect {effect_id} is recorded in this store")
        return row

    async def _sent_arguments(self, row: EffectRow) -> dict[str, Any]:
        return (
            {} if row.arguments_sealed is None else await self.store.blobs.of(row.run).unseal_json(row.arguments_sealed)
        )
