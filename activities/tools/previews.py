"""Show people what a call would change before they decide: a workspace's own diff, or what a declared read answers.

Rehearsals answer with what a call would return.
"""

import json
from dataclasses import replace
from typing import Any

from activities.owners import Owners
from activities.records import Records
from activities.resources import require_valid, workspace_access_of
from activities.tools.arguments import Arguments
from backstay import calls
from backstay.canonical import pointer_to
from backstay.errors import BackstayError, ToolUnavailable
from backstay.plans.rehearsal import RehearsedCall, Token, differences, missing_value, simulated_answer, tokens_in
from backstay.shown import one_line
from backstay.task.plan import Missing, has_references
from backstay.tools.tool import BUILTIN, PreviewedCall, ToolResult
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition
from toolbox.configuration.template import render, render_call
from toolbox.providers.declaration import CallTemplate
from toolbox.providers.provider import Caller, WorkspaceAccess
from toolbox.toolbox import Toolbox

_PREVIEWED = 20_000
"""Characters of all diffs of one request; every query answer must stay under 128 KiB."""
_PREVIEWED_LINE = 400
_PREVIEW_S = 20
_MOST_SHOWN = 5


class RehearsalActivities:
    """Answer calls of rehearsals, and tell real calls from what was foretold."""

    def __init__(self, records: Records, arguments: Arguments) -> None:
        """Keep simulated answers as other results are kept."""
        self.records = records
        self.arguments = arguments

    async def resolved(self, ask: calls.CallTool, rehearsal: RehearsedCall) -> dict[str, Any]:
        """Return the arguments of a call; a reference into a simulated answer always brings something."""
        simulated = {
            idx: await self.records.shown(ask.run, ask.results[idx])
            for idx in rehearsal.simulated
            if idx in ask.results
        }
        missing: Missing = lambda path: missing_value(path, simulated)  # noqa: E731  # a name for the type
        whole = await self.arguments.whole(ask.run, ask.arguments)
        return await self.arguments.referred(ask.run, whole, ask.references, missing)

    async def simulated(
        self, ask: calls.CallTool, rehearsal: RehearsedCall, definition: Definition, arguments: dict[str, Any]
    ) -> ToolResult:
        """Return the answer that a call would get; raises ArgumentsInvalid for a template that cannot be filled.

        Nothing is sent. Values that are made up hold no secrets but those that the arguments hold as handles.
        """
        template = definition.declaration.simulate
        if template is None:
            answer = simulated_answer(definition.output_schema, rehearsal.idx)
        else:
            answer = _filled(template, rehearsal.idx, arguments, "")
        kept = await self.records.write(ask.run, definition.name, answer)
        return ToolResult(success=True, simulated=True, **kept.facts)

    async def differs(self, ask: calls.CheckCall, whole: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Return the arguments of a real call with what references bring, and where they are not as foretold."""
        real = await self.arguments.referred(ask.run, whole, ask.references)
        folded = await self.arguments.fold_shown(ask.run, real)
        if ask.forecast is None or ask.forecast.tool != ask.tool:
            return folded, "no such call was foretold"
        foretold = await self.arguments.whole(ask.run, ask.forecast.arguments)
        wanted = {token.idx for token in tokens_in(foretold)}
        answers = {idx: await self.records.shown(ask.run, ref) for idx, ref in ask.answers.items() if idx in wanted}
        found = differences(foretold, real, answers, ask.forecast.idx)
        said = [f"{at.pointer or '/'}: {at.words}" for at in found]
        more = f"; and {len(said) - _MOST_SHOWN} more" if len(said) > _MOST_SHOWN else ""
        return folded, "; ".join(said[:_MOST_SHOWN]) + more


def place_of(ask: calls.CallTool, definition: Definition) -> WorkspaceAccess | None:
    """Return the copy of the workspace that a rehearsed call uses; None for one that uses no workspace."""
    place = workspace_access_of(ask, ask.limits)
    if place is None or ask.rehearsal is None or definition.provider not in BUILTIN:
        return None
    return replace(place, rehearsal=ask.rehearsal.name)


def made_up(ask: calls.CallTool, copy: WorkspaceAccess | None) -> tuple[int, ...]:
    """Return the rehearsed calls whose simulated values may be in what is read from a copy of the workspace."""
    return () if copy is None or ask.rehearsal is None else ask.rehearsal.simulated


def _filled(template: Any, idx: int, arguments: dict[str, Any], pointer: str) -> Any:
    match template:
        case str():
            return render(template, {"arguments": arguments, "token": Token(idx, pointer).text})
        case dict():
            return {key: _filled(item, idx, arguments, pointer_to(pointer, key)) for key, item in template.items()}
        case list():
            return [_filled(item, idx, arguments, pointer_to(pointer, at)) for at, item in enumerate(template)]
        case _:
            return template


class Previews:
    """Look at calls that wait for a decision, each by itself."""

    def __init__(self, records: Records, arguments: Arguments, toolbox: Toolbox, owners: Owners) -> None:
        """Show what is found as other answers are shown: without secrets."""
        self.owners = owners
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
        whole = await self._referred(ask, call)
        arguments = await self.arguments.revealed(ask.run, whole)
        return await self.toolbox.preview(definition, arguments, deadline_s=_PREVIEW_S, workspace_access=place)

    async def _referred(self, ask: calls.PreviewCalls, call: PreviewedCall) -> dict[str, Any]:
        """Return arguments with what references bring; before the plan is made, they bring nothing, and stay."""
        whole = await self.arguments.whole(ask.run, call.arguments)
        missing: Missing = lambda path: None if ask.results else f"${{{path}}}"  # noqa: E731  # a name for the type
        return await self.arguments.referred(ask.run, whole, ask.references, missing)

    async def _refers(self, ask: calls.PreviewCalls, call: PreviewedCall) -> bool:
        return has_references(await self.arguments.whole(ask.run, call.arguments))

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
        arguments = await self._referred(ask, call)
        if previewer is None or (ask.of_plan and not ask.results and await self._refers(ask, call)):
            return None
        given = render_call(declared.arguments, {"arguments": arguments})
        await require_valid(previewer, given)
        owner = await self.owners.of(ask.run)
        caller = Caller(user_id=ask.user_id, session_id=ask.session_id or "", owner=owner)
        answer = await self.toolbox.call(previewer, given, deadline_s=_PREVIEW_S, caller=caller)
        if answer.question is not None or not answer.success:
            raise ToolUnavailable(f"{previewer.name}: {answer.error or 'its server asks a question'}")
        return answer.data if isinstance(answer.data, str) else json.dumps(answer.data, indent=1, ensure_ascii=False)
