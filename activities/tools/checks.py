"""Check and preview calls before they are ruled on; nothing is called here."""

from typing import Any

from activities.payloads import apart, echo_of, vouches
from activities.resources import Resources, facts_of
from activities.retrying import implements
from activities.tools.arguments import Arguments, refuse_denied
from activities.tools.elicitations import Elicitations
from activities.tools.finding import ToolActivities
from activities.tools.previews import Previews, RehearsalActivities
from backstay import calls
from backstay.errors import ArgumentsInvalid, Denied, ToolNotFound
from backstay.provenance.composition import without_references
from backstay.provenance.index import MarkIndex, texts_in
from backstay.provenance.lookup import Lookup
from backstay.provenance.source import TASK_OF_OTHERS, ArgumentSources, Source, doubted, leaves
from backstay.python_tools.safety import Deny
from backstay.task.plan import has_references
from toolbox.argument_names import fault_in_names
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition


class Checks(ToolActivities):
    """The bodies of `check_call` and `preview_calls`."""

    def __init__(self, resources: Resources) -> None:
        """Share the worker's resources."""
        super().__init__(resources)
        records = self.records
        self.arguments = Arguments(records)
        self.elicitations = Elicitations(records)
        self.rehearsing = RehearsalActivities(records, self.arguments)
        self.previews = Previews(records, self.arguments, resources.toolbox, resources.owners)

    @implements(calls.check_call)
    async def check_call(self, ask: calls.CheckCall) -> calls.CheckedCall:
        """Resolve and validate one call before it is ruled on; a handle fits where its value does."""
        await self.begin(ask)
        try:
            if ask.question:
                await self.elicitations.reply(ask)
                return calls.CheckedCall()
            catalog, definition = await self.callable(ask, ask.tool)
            whole = await self.arguments.whole(ask.run, ask.arguments)
            if ask.of_plan and ask.before is None:
                # Handles in a model's plan were looked at when it was proposed; a task may give any text.
                whole = await self.arguments.of_task(ask.run, whole)
            if ask.forecast is not None:
                return await self._foretold(ask, whole, catalog)
            if ask.results:
                return await self._referred(ask, whole, catalog, definition)
            folded = await self.arguments.fold(ask.run, definition.provider, whole)
            sources = None if ask.theirs is None else await self._brought(ask, whole, catalog)
            if ask.resolved:
                # The check looks at what would be sent; history keeps what the plan says.
                whole = await self.arguments.referred(ask.run, whole, ask.references)
            real = await self.arguments.revealed(ask.run, whole) if ask.resolved else whole
            if ask.judge and ask.resolved:
                await self._require_allowed(ask, definition, whole)
        except (ToolNotFound, ArgumentsInvalid) as error:
            return calls.CheckedCall(error=str(error), error_type=type(error).__name__)
        except Denied as error:
            said = await self.records.text(ask.run, str(error))
            return calls.CheckedCall(error=said[:500], error_type="Denied")
        checked = calls.CheckedCall(tool=facts_of(catalog, definition), arguments=folded, sources=sources)
        if ask.before is not None and (fault := fault_in_names(definition.parameters, ask.before, folded)) is not None:
            return _unfit(checked, f"{ask.tool}: {fault}")
        if not ask.resolved:
            return checked
        fault, refusal = await definition.check(real), definition.refusal(whole)
        if fault is not None:
            return _unfit(checked, await self.records.text(ask.run, f"{ask.tool}: {fault}"))
        if refusal is not None:
            return checked.model_copy(update={"error": f"{ask.tool}: {refusal}", "error_type": "Denied"})
        return checked

    async def _foretold(self, ask: calls.CheckCall, whole: dict[str, Any], catalog: Catalog) -> calls.CheckedCall:
        """Return where a call that is about to be made is not as it was foretold."""
        real, differs = await self.rehearsing.differs(ask, whole)
        sources = await self._brought(ask, whole, catalog) if ask.results else None
        return calls.CheckedCall(arguments=real, differs=differs, sources=sources)

    async def _referred(
        self, ask: calls.CheckCall, whole: dict[str, Any], catalog: Catalog, definition: Definition
    ) -> calls.CheckedCall:
        """Return a call of a plan's step as it would be sent."""
        sources = await self._brought(ask, whole, catalog) if ask.where_from else None
        real = await self.arguments.referred(ask.run, whole, ask.references)
        refuse_denied(ask, real, sources)
        if ask.judge:
            await self._require_allowed(ask, definition, real)
        folded = await self.arguments.fold_shown(ask.run, real)
        return calls.CheckedCall(tool=facts_of(catalog, definition), arguments=folded, sources=sources)

    async def _require_allowed(self, ask: calls.CheckCall, definition: Definition, shown: dict[str, Any]) -> None:
        """Raise Denied when the operator's own checks deny a call; they are asked once more right before it is sent."""
        revealed = await self.arguments.revealed(ask.run, shown)
        said = await self.toolbox.judge(definition, revealed, await self.caller(ask))
        if isinstance(said, Deny):
            raise Denied(f"denied by a safety policy: {said.why}")

    async def _brought(self, ask: calls.CheckCall, whole: dict[str, Any], catalog: Catalog) -> ArgumentSources:
        """Return where the arguments of a plan's step come from once its references are resolved."""
        index = MarkIndex()
        if ask.theirs is None:
            index.add("model" if ask.by_model else "task", texts_in(whole))
        else:
            index.add("task", without_references(texts_in(ask.theirs.written)))
            index.add(TASK_OF_OTHERS, texts_in(ask.theirs.given))
        for ref in ask.results.values():
            record = await self.records.record(ask.run, ref)
            name = str(record["label"])
            found, echo = catalog.definitions.get(name), echo_of(record)
            content = "others" if found is None or not vouches(record) else found.tool.content
            code = Source(kind="tool", tool=name, ref=ref, content=content).code
            shown = await self.records.shown(ask.run, ref)
            await apart(shown, lambda code=code, shown=shown, echo=echo: index.add_answer(code, shown, echo))
            if echo is not None and ask.by_model:
                # The parts that it repeats came from the model, which may have read them anywhere.
                code = doubted(code)
                await apart(shown, lambda code=code, shown=shown: index.add_answer(code, shown))
        resolved = await self.arguments.referred(ask.run, whole, ask.references) if ask.resolved else whole
        known = catalog.definitions.get(ask.tool)
        egress = ask.theirs is not None and known is not None and known.tool.egress
        if ask.sources is None:
            return await apart(resolved, lambda: Lookup(index).sources_of(resolved, tool=ask.tool, egress=egress))
        # The model's other arguments were traced among all that it had been told, when it proposed the plan.
        refers = {pointer: has_references(value) for pointer, value in leaves(whole)}
        referring = [pointer for pointer, does in refers.items() if does]
        late = await apart(resolved, lambda: Lookup(index, only=referring).sources_of(resolved, tool=ask.tool))
        return ask.sources.once_known(late, referring, [pointer for pointer, does in refers.items() if not does])

    @implements(calls.preview_calls)
    async def preview_calls(self, ask: calls.PreviewCalls) -> calls.CallPreviews:
        """Look at each call by itself; one that cannot be looked at says why, and never fails the request."""
        await self.begin(ask)
        catalog = await self.catalog(ask, ask.user_id)
        return calls.CallPreviews(diffs=await self.previews.of(ask, catalog))


def _unfit(checked: calls.CheckedCall, why: str) -> calls.CheckedCall:
    return checked.model_copy(update={"error": why, "error_type": "ArgumentsInvalid"})
