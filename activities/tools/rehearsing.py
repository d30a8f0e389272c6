"""Rehearse calls: simulate the answers of writes, use a copy of the workspace, and compare real calls afterwards."""

from dataclasses import replace
from typing import Any

from activities.records import Records
from activities.resources import workspace_access_of
from activities.tools.arguments import Arguments
from backstay import calls
from backstay.plans.rehearsal import RehearsedCall, Token, differences, missing_value, simulated_answer, tokens_in
from backstay.provenance.source import pointer_to
from backstay.shown import one_line
from backstay.task.plan import Missing
from backstay.tools.tool import BUILTIN, ToolResult
from toolbox.catalog.definition import Definition
from toolbox.configuration.template import render
from toolbox.providers.provider import WorkspaceAccess

_SHOWN_VALUE = 120
_MOST_SHOWN = 5


class Rehearsing:
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
        return await self.arguments.referred(ask.run, whole, ask.results, missing)

    async def simulated(
        self, ask: calls.CallTool, rehearsal: RehearsedCall, definition: Definition, arguments: dict[str, Any]
    ) -> ToolResult:
        """Return the answer that a call is said to get; raises ArgumentsInvalid for a template that cannot be filled.

        Nothing is sent. What is made up holds no secrets but those that the arguments hold as handles.
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
        real = await self.arguments.referred(ask.run, whole, ask.results)
        folded = await self.arguments.fold_shown(ask.run, real)
        if ask.forecast is None or ask.forecast.tool != ask.tool:
            return folded, "no such call was foretold"
        foretold = await self.arguments.whole(ask.run, ask.forecast.arguments)
        wanted = {token.idx for token in tokens_in(foretold)}
        answers = {idx: await self.records.shown(ask.run, ref) for idx, ref in ask.answers.items() if idx in wanted}
        found = differences(foretold, real, answers, ask.forecast.idx)
        said = [f"{at.pointer or '/'}: foretold {_said(at.foretold)}, now {_said(at.real)}" for at in found]
        more = f"; and {len(said) - _MOST_SHOWN} more" if len(said) > _MOST_SHOWN else ""
        return folded, "; ".join(said[:_MOST_SHOWN]) + more


def place_of(ask: calls.CallTool, definition: Definition) -> WorkspaceAccess | None:
    """Return the copy of the workspace that a rehearsed call uses; None for one that uses no workspace."""
    place = workspace_access_of(ask, ask.limits)
    if place is None or ask.rehearsal is None or definition.provider not in BUILTIN:
        return None
    return replace(place, rehearsal=ask.rehearsal.name)


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


def _said(value: Any) -> str:
    return one_line(repr(value), _SHOWN_VALUE)
