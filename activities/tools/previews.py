"""Show people what a call would change before they decide: a workspace's own diff, or what a declared read answers."""

import json

from activities.records import Records
from activities.resources import require_valid, workspace_access_of
from activities.tools.arguments import Arguments
from backstay import calls
from backstay.errors import BackstayError, ToolUnavailable
from backstay.requests import PreviewedCall
from backstay.shown import one_line
from backstay.task.plan import references_in
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition
from toolbox.configuration.template import render
from toolbox.providers.declaration import CallTemplate
from toolbox.providers.provider import Caller
from toolbox.toolbox import Toolbox

_PREVIEWED = 20_000
"""Characters of all diffs of one request; every query answer must stay under 128 KiB."""
_PREVIEWED_LINE = 400
_PREVIEW_S = 20


class Previews:
    """Look at calls that wait for a decision, each by itself."""

    def __init__(self, records: Records, arguments: Arguments, toolbox: Toolbox) -> None:
        """Show what is found as other answers are shown: without secrets."""
        self.records = records
        self.arguments = arguments
        self.toolbox = toolbox

    async def of(self, ask: calls.PreviewCalls, catalog: Catalog) -> tuple[str | None, ...]:
        """Return what each call would change; one that cannot be looked at says why."""
        most = max(500, _PREVIEWED // len(ask.calls))
        return tuple([await self._shown(ask, call, catalog, most) for call in ask.calls])

    async def _shown(self, ask: calls.PreviewCalls, call: PreviewedCall, catalog: Catalog, most: int) -> str | None:
        definition = catalog.definitions.get(call.tool)
        if definition is None:
            return None
        try:
            diff = await self._looked_at(ask, call, catalog, definition)
        except BackstayError as error:
            return f"(no diff: {one_line(await self.records.text(ask.run, str(error)), _PREVIEWED_LINE)})"[:most]
        if diff is None:
            return None
        plain = str((await self.records.show(ask.run, diff, definition.provider)).payload)
        # A server said it, or a jail computed it from files that anybody may have written.
        shown = "\n".join(one_line(line, _PREVIEWED_LINE) for line in plain.split("\n"))
        left = len(shown) - most
        return shown if left <= 0 else f"{shown[:most]}\n... {left} more characters"

    async def _looked_at(
        self, ask: calls.PreviewCalls, call: PreviewedCall, catalog: Catalog, definition: Definition
    ) -> str | None:
        declared, place = definition.declaration.preview, workspace_access_of(ask)
        if declared is not None:
            return await self._answer(ask, call, catalog, definition, declared)
        if place is None:
            return None
        arguments = await self.arguments.unfold(ask.run, call.arguments, ask.results)
        return await self.toolbox.preview(definition, arguments, deadline_s=_PREVIEW_S, workspace_access=place)

    async def _answer(  # called in one place, by what they are
        self,
        ask: calls.PreviewCalls,
        call: PreviewedCall,
        catalog: Catalog,
        definition: Definition,
        declared: CallTemplate,
    ) -> str | None:
        """Return what the declared call answers; it is made before people decide, so that it gets no secret."""
        previewer = catalog.preview_of(definition)
        arguments = await self.arguments.resolved(ask.run, call.arguments, ask.results)
        if previewer is None or any(path.startswith("steps.") for path in references_in(arguments)):
            return None
        given = render(declared.arguments, {"arguments": arguments})
        await require_valid(previewer, given)
        caller = Caller(user_id=ask.user_id, session_id=ask.session_id or "")
        answer = await self.toolbox.call(previewer, given, deadline_s=_PREVIEW_S, caller=caller)
        if answer.question is not None or not answer.success:
            raise ToolUnavailable(f"{previewer.name}: {answer.error or 'its server asks a question'}")
        return answer.data if isinstance(answer.data, str) else json.dumps(answer.data, indent=1, ensure_ascii=False)
