"""Say what calls would change, so that people see it before they decide."""

from activities.records import Records
from activities.resources import Activities, Resources, workspace_access_of
from activities.retrying import implements
from activities.tools.arguments import Arguments
from backstay import calls
from backstay.errors import BackstayError
from backstay.requests import PreviewedCall
from backstay.shown import one_line

_SHOWN = 20_000
"""Characters of all diffs of one request; every query answer must stay under 128 KiB."""
_LINE = 400
_PATIENCE_S = 20


class Previews(Activities):
    """Implement `preview_calls`."""

    def __init__(self, resources: Resources, records: Records) -> None:
        """Share the worker's records."""
        super().__init__(resources)
        self.records = records
        self.arguments = Arguments(records)

    @implements(calls.preview_calls)
    async def preview_calls(self, ask: calls.PreviewCalls) -> calls.Previewed:
        """Look at each call by itself; one that cannot be looked at says why, and never fails the request."""
        self.store.check(ask.store)
        await self.store.events.append(ask.run, ask.events)
        most = max(500, _SHOWN // len(ask.calls))
        return calls.Previewed(diffs=tuple([await self._diff(ask, one, most) for one in ask.calls]))

    async def _diff(self, ask: calls.PreviewCalls, one: PreviewedCall, most: int) -> str | None:
        place = workspace_access_of(ask)
        definition = (await self.catalog(ask, ask.user_id)).definitions.get(one.tool)
        if place is None or definition is None:
            return None
        try:
            arguments = await self.arguments.unfold(ask.run, one.arguments, ask.results)
            diff = await self.toolbox.preview(definition, arguments, deadline_s=_PATIENCE_S, workspace_access=place)
        except BackstayError as error:
            return f"(no diff: {error})"[:most]
        if diff is None:
            return None
        plain = str((await self.records.show(ask.run, diff, definition.provider)).payload)
        # A jail computed it from files that anybody may have written.
        shown = "\n".join(one_line(line, _LINE) for line in plain.split("\n"))
        left = len(shown) - most
        return shown if left <= 0 else f"{shown[:most]}\n... {left} more characters"
