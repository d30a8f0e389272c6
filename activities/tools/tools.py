"""Check, preview and call tools: the model's calls, plan steps, declared checks and compensations."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from activities.payloads import apart, echo_of, vouches
from activities.resources import Activities, Resources, facts_of, require_valid, workspace_access_of
from activities.retrying import implements, tell_progress
from activities.tools.arguments import Arguments, refuse_brought_secrets, refuse_denied, require_same
from activities.tools.effects import Effects, harmless_again_s, intent_of, told_error, used_by
from activities.tools.elicitations import Elicitations
from activities.tools.previews import Previews, Rehearsing, made_up, place_of
from backstay import calls
from backstay.canonical import canonical, digest_of
from backstay.effects.effect import EffectState
from backstay.errors import (
    ArgumentsInvalid,
    CompensationFailed,
    Denied,
    OutcomeUnknown,
    StoreUnavailable,
    ToolChanged,
    ToolNotFound,
    ToolUnavailable,
)
from backstay.plans.rehearsal import RehearsedCall, tokens_in
from backstay.policies.policy import on_its_way
from backstay.provenance.index import Index, texts_in
from backstay.provenance.lookup import Lookup
from backstay.provenance.source import Source, Sources, doubted
from backstay.python_tools.safety import Deny
from backstay.shown import one_line
from backstay.task.event import as_drafts, shown_request
from backstay.tools.stages import Purpose, Stage, applies
from backstay.tools.tool import Elicitation, ToolResult
from store.effects.types import BoundUndo, EffectRow, Intent
from toolbox.argument_names import fault_in_names
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition
from toolbox.configuration.meaning import Meaning, judge, why_failed
from toolbox.configuration.template import holds, render
from toolbox.manifest.builder import masked
from toolbox.providers.answer import Answer
from toolbox.providers.elicitation import ElicitationRequest, InputRequired, InputResponse
from toolbox.providers.provider import Caller, NotSent

_SAFETY = "backstay:safety"
"""Marks the question of an operator's own check."""
_REFUSALS = (ToolNotFound, ToolChanged, ArgumentsInvalid, CompensationFailed, Denied)
"""What is wrong with a call before it is sent, which is an answer."""


class Tools(Activities):
    """The bodies of `check_call`, `preview_calls` and `call_tool`."""

    def __init__(self, resources: Resources) -> None:
        """Share the worker's resources."""
        super().__init__(resources)
        records = self.records
        self.effects = Effects(records)
        self.arguments = Arguments(records)
        self.elicitations = Elicitations(records)
        self.rehearsing = Rehearsing(records, self.arguments)
        self.previews = Previews(records, self.arguments, resources.toolbox)

    @implements(calls.check_call)
    async def check_call(self, ask: calls.CheckCall) -> calls.CheckedCall:
        """Resolve and validate one call before it is ruled on."""
        await self.begin(ask)
        try:
            if ask.question:
                await self.elicitations.reply(ask)
                return calls.CheckedCall()
            catalog, definition = await self._callable(ask, ask.tool)
            whole = await self.arguments.whole(ask.run, ask.arguments)
            if ask.of_plan and ask.before is None:
                # Handles in a model's plan were looked at when it was proposed; a task may give any text.
                whole = await self.arguments.of_task(ask.run, whole)
            if ask.forecast is not None:
                real, differs = await self.rehearsing.differs(ask, whole)
                sources = await self._brought(ask, whole, catalog) if ask.results else None
                return calls.CheckedCall(arguments=real, differs=differs, sources=sources)
            if ask.results:
                return await self._referred(ask, whole, catalog, definition)
            folded = await self.arguments.fold(ask.run, definition.provider, whole)
            if ask.resolved:
                # What is looked at is what would be sent; history keeps what the plan says.
                whole = await self.arguments.referred(ask.run, whole, ask.references)
            if ask.judge and ask.resolved:
                await self._require_allowed(ask, definition, whole)
        except (ToolNotFound, ArgumentsInvalid) as error:
            return calls.CheckedCall(error=str(error), error_type=type(error).__name__)
        except Denied as error:
            said = await self.records.text(ask.run, str(error))
            return calls.CheckedCall(error=said[:500], error_type="Denied")
        checked = calls.CheckedCall(tool=facts_of(catalog, definition), arguments=folded)
        if ask.before is not None and (fault := fault_in_names(definition.parameters, ask.before, folded)) is not None:
            return checked.model_copy(update={"error": f"{ask.tool}: {fault}", "error_type": "ArgumentsInvalid"})
        if not ask.resolved:
            return checked
        fault, refusal = await definition.check(whole), definition.refusal(whole)
        if fault is not None:
            return checked.model_copy(update={"error": f"{ask.tool}: {fault}", "error_type": "ArgumentsInvalid"})
        if refusal is not None:
            return checked.model_copy(update={"error": f"{ask.tool}: {refusal}", "error_type": "Denied"})
        return checked

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
        said = await self.toolbox.judge(definition, await self.arguments.revealed(ask.run, shown), _caller(ask))
        if isinstance(said, Deny):
            raise Denied(f"denied by a safety policy: {said.why}")

    async def _brought(self, ask: calls.CheckCall, whole: dict[str, Any], catalog: Catalog) -> Sources:
        """Return where the arguments of a plan's step come from once its references are resolved."""
        index = Index()
        index.add("model" if ask.by_model else "task", texts_in(whole))
        for ref in ask.results.values():
            record = await self.records.record(ask.run, ref)
            name = str(record["label"])
            found, echo = catalog.definitions.get(name), echo_of(record)
            content = "others" if found is None or not vouches(record) else found.tool.content
            code = Source(kind="tool", tool=name, ref=ref, content=content).code
            shown = await self.records.shown(ask.run, ref)
            await apart(shown, lambda code=code, shown=shown, echo=echo: index.add_answer(code, shown, echo))
            if echo is not None and ask.by_model:
                # What it repeats came from the model, which may have read it anywhere.
                code = doubted(code)
                await apart(shown, lambda code=code, shown=shown: index.add_answer(code, shown))
        resolved = await self.arguments.referred(ask.run, whole, ask.references)
        return await apart(resolved, lambda: Lookup(index).sources_of(resolved, tool=ask.tool))

    @implements(calls.preview_calls)
    async def preview_calls(self, ask: calls.PreviewCalls) -> calls.Previewed:
        """Look at each call by itself; one that cannot be looked at says why, and never fails the request."""
        await self.begin(ask)
        catalog = await self.catalog(ask, ask.user_id)
        return calls.Previewed(diffs=await self.previews.of(ask, catalog))

    @implements(calls.call_tool)
    async def call_tool(self, ask: calls.CallTool) -> ToolResult:
        """Call one tool; an effect is recorded before it is sent and settled after."""
        # What permits an effect is written with its intent.
        begun = ask if ask.effect is None else ask.model_copy(update={"decisions": ()})
        await self.begin(begun)
        result = await self.performed(ask)
        if result.question is not None:
            # It may have come before the intent, with which they are written otherwise.
            await self.admit(ask)
        if not ask.draft or result.question is not None or result.untold:
            return result
        try:
            untold = ask.model_copy(update={"events": (), "numbered": ()})
            await self.tell(untold, as_drafts(ask.happened(result), ask.draft))
        except StoreUnavailable:
            # What was sent counts more than its event, which the workflow tells itself.
            return result.model_copy(update={"untold": True})
        return result

    async def performed(self, ask: calls.CallTool) -> ToolResult:
        """Make one call; what is wrong with it before it is sent is an answer. Tells no event."""
        result = await self._performed(ask)
        if not ask.draft or result.question is not None:
            return result
        if result.resolved is not None:
            return result.model_copy(update={"request": shown_request(result.resolved)})
        if ask.of_plan:
            with suppress(ArgumentsInvalid):
                sent = await self.arguments.referred(ask.run, ask.arguments, ask.references)
                return result.model_copy(update={"request": shown_request(sent)})
        return result

    async def _performed(self, ask: calls.CallTool) -> ToolResult:
        try:
            match ask.purpose:
                case "call" | "simulate" if ask.rehearsal is not None:
                    return await self._rehearsed(ask, ask.rehearsal)
                case "call" | "simulate":
                    return await self._call(ask)
                case "verify" | "verify_undo":
                    return await self._verify(ask)
                case "undo":
                    return await self._undo(ask)
        except _REFUSALS as error:
            await self.store.decisions.append(ask.run, ask.decisions)
            said = await self.records.text(ask.run, str(error))
            return ToolResult(success=False, error=said[:500], error_type=type(error).__name__)

    async def _rehearsed(self, ask: calls.CallTool, rehearsal: RehearsedCall) -> ToolResult:
        """Make a call of a rehearsal: real where it only reads, in the copy of a workspace, or simulated."""
        _, definition = await self._callable(ask, ask.tool)
        require_same(ask, definition)
        shown = await self.rehearsing.resolved(ask, rehearsal)
        refuse_denied(ask, shown, ask.sources)
        refuse_brought_secrets(ask.tool, ask.arguments, shown)
        known, copied = not tokens_in(shown), place_of(ask, definition) is not None
        if known and not copied and ask.purpose == "call":
            result = await self._call(ask)
        else:
            arguments = await self.arguments.revealed(ask.run, shown)
            if known:
                await require_valid(definition, arguments)
            said = await self.toolbox.judge(definition, arguments, _caller(ask))
            if isinstance(said, Deny):
                raise Denied(f"denied by a safety policy: {said.why}")
            if copied:
                made = await self._read(ask, definition, arguments, None)
                result = made.model_copy(update={"simulated": True}) if ask.purpose == "simulate" else made
            else:
                result = await self.rehearsing.simulated(ask, rehearsal, definition, shown)
        return result.model_copy(update={"resolved": await self.arguments.fold_shown(ask.run, shown)})

    async def _call(self, ask: calls.CallTool) -> ToolResult:
        catalog, definition = await self._callable(ask, ask.tool)
        require_same(ask, definition)
        if ask.accepted:
            said = masked(definition.said, self.resources.redactor)
            await self.store.definitions.allow(ask.tool, definition.digest, said, by=ask.run)
        shown = await self.arguments.resolved(ask.run, ask.arguments, ask.references)
        refuse_denied(ask, shown, ask.sources)
        if ask.of_plan:
            refuse_brought_secrets(ask.tool, ask.arguments, shown)
        arguments = await self.arguments.revealed(ask.run, shown)
        await require_valid(definition, arguments)
        try:
            reply = await self.elicitations.reply(ask)
        except ArgumentsInvalid as error:
            question = await self.elicitations.again(ask, definition.provider)
            return ToolResult(success=False, error=str(error)[:500], error_type="AnswerInvalid", question=question)
        reply, asked = await self._judged(ask, definition, arguments, reply)
        if asked is not None:
            return ToolResult(success=False, error="a safety policy asks first", question=asked)
        if ask.effect is None:
            return await self._read(ask, definition, arguments, reply)
        if digest_of(ask.arguments) != ask.args_digest:
            raise ArgumentsInvalid(f"{ask.tool}: the arguments are not the ones that the policy was applied to")
        sealed = await self.store.blobs.of(ask.run).seal_json(arguments)
        intent = intent_of(ask, ask.effect, ask.tool, ask.args_digest, ask.step, sealed=sealed)
        return await self._send(ask, intent, catalog, definition, arguments, reply=reply)

    async def _judged(
        self, ask: calls.CallTool, definition: Definition, arguments: dict[str, Any], reply: InputResponse | None
    ) -> tuple[InputResponse | None, Elicitation | None]:
        """Return the reply that is for the tool, and what the operator's own checks ask. Raises Denied."""
        to_safety = reply is not None and reply.required.state == _SAFETY
        if reply is not None and to_safety and (reply.declined or reply.content is not True):
            raise Denied("a person did not allow what a safety policy asked about")
        to_tool = None if to_safety else reply
        said = await self.toolbox.judge(definition, arguments, _caller(ask))
        row = None if said is None or ask.effect is None else await self.store.effects.get(f"{ask.run}/{ask.effect}")
        if row is not None and row.state is not EffectState.NOT_SENT:
            # An earlier attempt has sent it, and only what is recorded says what came of that.
            return to_tool, None
        if isinstance(said, Deny):
            raise Denied(f"denied by a safety policy: {said.why}")
        # Whoever answers the tool's own question was asked about a call that had passed.
        if said is None or reply is not None:
            return to_tool, None
        request = ElicitationRequest(key="safety", message=f"a safety policy: {said.why}", form={"type": "boolean"})
        question = InputRequired(requests=(request,), state=_SAFETY)
        return None, await self.elicitations.keep(ask.run, definition.provider, question)

    async def _send(
        self,
        ask: calls.CallTool,
        intent: Intent,
        catalog: Catalog,
        definition: Definition,
        arguments: dict[str, Any],
        *,
        reply: InputResponse | None = None,
    ) -> ToolResult:
        """Make a call that changes something, between its intent and its outcome."""
        ttl = harmless_again_s(definition, arguments)
        differs = self.store.epoch_differs(ask.store)
        tell = await self._teller(ask.run)
        async with self.effects.intent(intent, idempotency_ttl=ttl, epoch_differs=differs, tried=ask.tried) as send:
            answer = await send.carry(
                self.toolbox.call(
                    definition,
                    arguments,
                    deadline_s=max(0.1, send.left_s),
                    effect_id=intent.effect_id,
                    before_send=send.begin,
                    on_progress=tell,
                    reply=reply,
                    workspace_access=workspace_access_of(ask, ask.limits),
                    caller=_caller(ask),
                    judged=ask.purpose != "undo",
                )
            )
            undo: BoundUndo | None = None
            variables = _variables(intent.effect_id, arguments)
            judged = judge(answer, definition.declaration, variables)
            if judged.meaning is Meaning.APPLIED and applies(Purpose(ask.purpose), Stage.BIND_UNDO):
                undo = await send.stored(lambda: self._bound(ask.run, catalog, definition, variables, answer))
            send.asked = vouching(definition, arguments)
            await send.settle(answer, judged, undo)
        return send.told

    async def _bound(
        self, run: str, catalog: Catalog, definition: Definition, variables: dict[str, Any], answer: Answer
    ) -> BoundUndo | None:
        """Render the compensation over the answer as read, else as meant; None where it cannot be undone."""
        declared, found = definition.declaration.undo, catalog.undo_of(definition)
        if declared is None or found is None:
            return None
        for result in (answer.data, answer.meant):
            with suppress(ArgumentsInvalid):
                arguments = render(declared.arguments, variables | {"result": result})
                await require_valid(found, arguments)
                break
        else:
            return None
        shown = await self.records.show(run, arguments, found.provider)
        line = f"{found.name}({', '.join(f'{key}={canonical(value)}' for key, value in shown.payload.items())})"
        sealed_ref = await self.store.blobs.of(run).seal_json(arguments)
        return BoundUndo(tool=found.name, sealed_ref=sealed_ref, shown=one_line(line, 300))

    async def _teller(self, run: str) -> Callable[[str], None]:
        """Return what shows operators the progress of a call, without secrets."""
        redactor = (await self.records.secrets.of(run)).redactor
        return lambda progress: tell_progress(redactor.text(progress))

    async def _read(
        self, ask: calls.CallTool, definition: Definition, arguments: dict[str, Any], reply: InputResponse | None
    ) -> ToolResult:
        """Call a read-only tool, or any in a copy; a lost connection is retried, a timeout is an answer."""
        run, copy = ask.run, place_of(ask, definition)
        effect_id = None if copy is None or ask.rehearsal is None else f"{run}/{copy.rehearsal}/{ask.rehearsal.idx}"
        try:
            answer = await self.toolbox.call(
                definition,
                arguments,
                deadline_s=ask.deadline_s,
                effect_id=effect_id,
                on_progress=await self._teller(run),
                reply=reply,
                workspace_access=copy or workspace_access_of(ask, ask.limits),
                caller=_caller(ask),
                judged=True,
            )
        except NotSent as error:
            raise ToolUnavailable(str(error), retry_after=error.retry_after_s) from error
        except OutcomeUnknown as error:
            if error.facts.get("timed_out"):
                return ToolResult(success=False, error=f"no answer within {ask.deadline_s:g} s", error_type="ToolError")
            raise ToolUnavailable(f"{definition.name}: {error}") from error
        if answer.question is not None:
            question = await self.elicitations.keep(run, definition.provider, answer.question)
            return ToolResult(success=answer.success, error="its server asks", question=question)
        more: Any = {"asked": vouching(definition, arguments), "simulated": made_up(ask, copy)}
        return used_by(answer, await self._told(run, definition, arguments, answer, more))

    async def _told(
        self, run: str, definition: Definition, arguments: dict[str, Any], answer: Answer, more: dict[str, Any]
    ) -> ToolResult:
        """Keep what a read answered, and return what the run is told of it."""
        if not answer.success:
            shown = await self.records.show(run, answer.reason or answer.error or "", definition.provider)
            return ToolResult(success=False, **told_error(str(shown.payload)), error_type="ToolError")
        kept = await self.records.keep(run, definition.name, answer.data, definition.provider, answer.files, **more)
        why = why_failed(answer, definition.declaration, {"arguments": arguments, "effect": {"id": ""}})
        if why is not None:
            shown = await self.records.show(run, why, definition.provider)
            return ToolResult(success=False, error=str(shown.payload)[:500], error_type="ToolError", ref=kept.ref)
        return ToolResult(success=True, cached=answer.cached, **kept.facts)

    async def _verify(self, ask: calls.CallTool) -> ToolResult:
        """Run the check that the tool of an effect, or of its compensation, declares.

        A positive check records the effect, or the compensation, as applied.
        """
        undo = ask.purpose == "verify_undo"
        row = await self._row(ask, undo=undo)
        catalog, definition = await self._definition(ask, row.tool)
        declared, checker = definition.declaration.verify, catalog.verify_of(definition)
        if declared is None or checker is None:
            raise ToolNotFound(f"{row.tool} declares no check")
        arguments = (await self._compensation(ask))[1] if undo else await self._sent_arguments(row)
        if undo and digest_of(arguments) != row.args_digest:
            # What takes the effect back was declared anew since it was sent, so nothing is known of that call.
            return ToolResult(success=True)
        variables = _variables(row.effect_id, arguments)
        answer = await self._checked(ask, checker, render(declared.arguments, variables))
        if answer is None:
            return ToolResult(success=True)
        seen = variables | {"result": answer.meant}
        if not holds(declared.applied_if, seen):
            return ToolResult(success=True, verified=False, verify_is_final=declared.verify_is_final)
        if declared.result is not None:
            answer = Answer(success=True, data=render(declared.result, seen))
        asked = vouching(definition, arguments)
        ref = (await self.records.keep(ask.run, row.tool, answer.data, definition.provider, asked=asked)).ref
        bound = None if undo else await self._bound(ask.run, catalog, definition, variables, answer)
        settled = await self.store.effects.resolve(
            row.effect_id,
            state=EffectState.APPLIED,
            outcome="the declared check says it happened",
            result_ref=ref,
            undo=bound,
        )
        return ToolResult(success=True, ref=settled.result_ref or ref, verified=True, undo=settled.undo_shown)

    async def _checked(self, ask: calls.CallTool, checker: Definition, arguments: dict[str, Any]) -> Answer | None:
        if await checker.check(arguments) is not None:
            return None
        try:
            answer = await self.toolbox.call(
                checker,
                arguments,
                deadline_s=ask.deadline_s,
                workspace_access=workspace_access_of(ask),
                caller=_caller(ask),
            )
        except (NotSent, OutcomeUnknown, ToolUnavailable):
            return None
        return answer if answer.success and answer.data is not None else None

    async def _undo(self, ask: calls.CallTool) -> ToolResult:
        """Make the declared compensation of an effect; it is an effect of its own, under `<effect>/undo`."""
        row = await self._row(ask)
        tool, arguments = await self._compensation(ask)
        catalog, definition = await self._definition(ask, tool)
        if (ruling := next(on_its_way(self.resources.policy, definition.tool, purpose="undo"), None)) is not None:
            # The workflow rules on the name of the compensation, which is all it knows of it.
            raise CompensationFailed(f"{ruling.rule}: only rules that name {tool} can ask about it")
        await require_valid(definition, arguments)
        intent = intent_of(ask, row.n, tool, digest_of(arguments), row.step)
        return await self._send(ask, intent, catalog, definition, arguments)

    async def _compensation(self, ask: calls.CallTool) -> tuple[str, dict[str, Any]]:
        """Return the tool that takes an effect back, and the arguments it is called with."""
        row = await self._row(ask)
        if row.undo_tool is not None and row.undo_sealed is not None:
            return row.undo_tool, await self.store.blobs.of(ask.run).unseal_json(row.undo_sealed)
        catalog, definition = await self._definition(ask, row.tool)
        declared, found = definition.declaration.undo_by_effect_id, catalog.undo_by_effect_id_of(definition)
        if declared is None or found is None:
            raise CompensationFailed("no compensation was recorded for it")
        variables = _variables(row.effect_id, await self._sent_arguments(row))
        return found.name, render(declared.arguments, variables)

    async def _row(self, ask: calls.CallTool, *, undo: bool = False) -> EffectRow:
        effect_id = f"{ask.run}/{ask.effect}{'/undo' if undo else ''}"
        row = await self.store.effects.get(effect_id)
        if row is None:
            raise ArgumentsInvalid(f"no effect {effect_id} is recorded in this store")
        return row

    async def _sent_arguments(self, row: EffectRow) -> dict[str, Any]:
        return (
            {} if row.arguments_sealed is None else await self.store.blobs.of(row.run).unseal_json(row.arguments_sealed)
        )

    async def _callable(self, ask: calls.CheckCall | calls.CallTool, tool: str) -> tuple[Catalog, Definition]:
        catalog, definition = await self._definition(ask, tool)
        if definition.hidden:
            raise ToolNotFound(f"there is no tool {tool[:100]} that may be called here; only the engine calls it")
        return catalog, definition

    async def _definition(self, ask: calls.CheckCall | calls.CallTool, tool: str) -> tuple[Catalog, Definition]:
        catalog = await self.catalog(ask, ask.user_id)
        definition = catalog.definitions.get(tool)
        if definition is not None:
            return catalog, definition
        provider = tool.partition(".")[0]
        if provider in catalog.unavailable:
            raise ToolUnavailable(f"{provider}: {catalog.unavailable[provider]}")
        if provider in catalog.withheld:
            raise ToolNotFound(f"{tool[:100]}: {provider} is not available: {catalog.withheld[provider]}")
        close = ", ".join(hit.tool for hit in catalog.search(tool, limit=3)) or "none"
        raise ToolNotFound(f"there is no tool {tool[:100]}; the closest are: {close}")


def vouching(definition: Definition, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of a call whose answer vouches for what it says, but for what it only repeats of them."""
    return arguments if definition.tool.content == "own" else None


def _caller(ask: calls.CheckCall | calls.CallTool) -> Caller:
    return Caller(user_id=ask.user_id, session_id=ask.session_id or "", patience_s=0)


def _variables(effect_id: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"effect": {"id": effect_id}, "arguments": arguments}
