"""Call tools: the model's calls, plan steps, declared checks and compensations."""

import time
from typing import Any

from activities.records import Records
from activities.resources import Body, Resources, demand_valid, facts_of, workplace_of
from activities.retrying import body, ordered_at, tell_progress
from activities.tools.arguments import Arguments
from activities.tools.compensations import Compensations
from activities.tools.effects import Effects, Send
from activities.tools.questions import Questions
from backstay import calls
from backstay.canonical import digest_of
from backstay.effects.effect import EffectState
from backstay.errors import ArgumentsInvalid, OutcomeUnknown, ToolChanged, ToolNotFound, ToolUnavailable
from backstay.shown import one_line
from backstay.task.event import Event
from backstay.tools.tool import ToolResult
from store.effects.types import BoundUndo, EffectRow, Intent
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition
from toolbox.configuration.template import holds, render
from toolbox.mcp.outcome import NotSent
from toolbox.providers.elicitation import Reply


class Tools(Body):
    """The bodies of `check_call` and `call_tool`."""

    def __init__(self, resources: Resources, records: Records, effects: Effects) -> None:
        """Share the worker's records and effects."""
        super().__init__(resources)
        self.records = records
        self.effects = effects
        self.arguments = Arguments(records)
        self.questions = Questions(records)
        self.compensations = Compensations(records)

    @body(calls.check_call)
    async def check_call(self, ask: calls.CheckCall) -> calls.CheckedCall:
        """Resolve and validate one call before it is ruled on."""
        self.store.check(ask.store)
        await self.store.events.append(ask.run, ask.events)
        try:
            catalog, definition = await self._callable(ask, ask.tool)
            whole = await self.arguments.whole(ask.run, ask.arguments)
            folded = await self.arguments.fold(ask.run, definition.provider, whole)
        except (ToolNotFound, ArgumentsInvalid) as error:
            return calls.CheckedCall(error=str(error), error_type=type(error).__name__)
        fault = definition.validate(whole) if ask.resolved else None
        return calls.CheckedCall(
            tool=facts_of(catalog, definition),
            arguments=folded,
            error=None if fault is None else f"{ask.tool}: {fault}",
            error_type=None if fault is None else "ArgumentsInvalid",
        )

    @body(calls.call_tool)
    async def call_tool(self, ask: calls.CallTool) -> ToolResult:
        """Call one tool; an effect is recorded before it is sent and settled after."""
        self.store.check(ask.store)
        await self.store.events.append(ask.run, (*ask.events, *_called(ask)))
        try:
            match ask.purpose:
                case "call":
                    return await self._call(ask)
                case "verify":
                    return await self._verify(ask)
                case "undo":
                    return await self._undo(ask)
        except (ToolNotFound, ToolChanged, ArgumentsInvalid) as error:
            return ToolResult(success=False, error=str(error)[:500], error_type=type(error).__name__)

    async def _call(self, ask: calls.CallTool) -> ToolResult:
        catalog, definition = await self._callable(ask, ask.tool)
        if ask.definition and definition.tool.definition != ask.definition:
            raise ToolChanged(f"{ask.tool} is no longer the tool that was ruled on")
        arguments = await self.arguments.unfold(ask.run, ask.arguments, ask.results)
        demand_valid(definition, arguments)
        try:
            reply = await self.questions.reply(ask)
        except ArgumentsInvalid as error:
            question = await self.questions.again(ask, definition.provider)
            return ToolResult(success=False, error=str(error)[:500], error_type="AnswerInvalid", question=question)
        if ask.effect is None:
            return await self._read(ask, definition, arguments, reply)
        if digest_of(ask.arguments) != ask.args_digest:
            raise ArgumentsInvalid(f"{ask.tool}: the arguments are not the ones that were ruled on")
        effect_id = f"{ask.run}/{ask.effect}"
        sealed = await self.store.blobs.of(ask.run).seal_json(arguments)
        intent = Intent(
            effect_id=effect_id,
            run=ask.run,
            n=ask.effect,
            tool=ask.tool,
            args_digest=ask.args_digest,
            step=ask.step,
            send=ask.send,
            lease=time.time() + ask.deadline_s,
            user_id=ask.user_id,
            arguments_sealed=sealed,
        )

        async def bind(result: Any) -> BoundUndo | None:
            return await self.compensations.bound(
                ask.run, catalog, definition, _variables(effect_id, arguments, result)
            )

        return await self._send(ask, definition, arguments, intent, bind, reply=reply)

    async def _send(
        self,
        ask: calls.CallTool,
        definition: Definition,
        arguments: dict[str, Any],
        intent: Intent,
        bind: Any,
        *,
        reply: Reply | None = None,
    ) -> ToolResult:
        declared = definition.declaration
        ttl = None if not declared.idempotent else declared.idempotency_ttl or float("inf")
        send = Send(
            intent=intent,
            label=definition.name,
            provider=definition.provider,
            idempotency_ttl=ttl,
            call=lambda before_send: self.toolbox.call(
                definition,
                arguments,
                deadline_s=max(0.1, intent.lease - time.time()),
                effect_id=intent.effect_id,
                before_send=before_send,
                on_progress=self._tell,
                reply=reply,
                workplace=workplace_of(ask),
            ),
            bind=bind,
        )
        return await self.effects.send(send, epoch_differs=self.store.epoch_differs(ask.store))

    def _tell(self, progress: str) -> None:
        tell_progress(self.records.redactor.text(progress))

    async def _read(
        self, ask: calls.CallTool, definition: Definition, arguments: dict[str, Any], reply: Reply | None
    ) -> ToolResult:
        """Call a read-only tool; a lost connection is retried, a timeout is an answer."""
        run, deadline_s = ask.run, ask.deadline_s
        try:
            answer = await self.toolbox.call(
                definition,
                arguments,
                deadline_s=deadline_s,
                on_progress=self._tell,
                reply=reply,
                workplace=workplace_of(ask),
            )
        except NotSent as error:
            raise ToolUnavailable(str(error), retry_after=getattr(error, "retry_after_s", None)) from error
        except OutcomeUnknown as error:
            if error.facts.get("timed_out"):
                return ToolResult(success=False, error=f"no answer within {deadline_s:g} s", error_type="ToolError")
            raise ToolUnavailable(f"{definition.name}: {error}") from error
        if answer.question is not None:
            question = await self.questions.keep(run, definition.provider, answer.question)
            return ToolResult(success=answer.success, error="its server asks", question=question)
        if not answer.success:
            shown = await self.records.show(run, answer.error or "", definition.provider)
            return ToolResult(success=False, error=str(shown.payload)[:500], error_type="ToolError")
        ref = await self.records.keep(run, definition.name, answer.data, definition.provider, answer.files)
        return ToolResult(success=True, ref=ref)

    async def _verify(self, ask: calls.CallTool) -> ToolResult:
        """Run the declared check of an effect; a positive one records the effect as applied."""
        row = await self._row(ask)
        catalog, definition = await self._definition(ask, row.tool)
        declared, checker = definition.declaration.verify, catalog.verify_of(definition)
        if declared is None or checker is None:
            return ToolResult(success=False, error=f"{row.tool} declares no check", error_type="ToolNotFound")
        arguments = await self._sent_arguments(row)
        variables = _variables(row.effect_id, arguments, None)
        answer = await self._checked(ask, checker, render(declared.arguments, variables))
        if answer is None or not holds(declared.applied_if, variables | {"result": answer}):
            return ToolResult(success=True, verified=None if answer is None else False)
        data = answer if declared.result is None else render(declared.result, variables | {"result": answer})
        ref = await self.records.keep(ask.run, row.tool, data, definition.provider)
        bound = await self.compensations.bound(ask.run, catalog, definition, variables | {"result": data})
        settled = await self.store.effects.resolve(
            row.effect_id,
            state=EffectState.APPLIED,
            outcome="the declared check says it happened",
            result_ref=ref,
            undo=bound,
        )
        return ToolResult(success=True, ref=settled.result_ref or ref, verified=True, undo=settled.undo_shown)

    async def _checked(self, ask: calls.CallTool, checker: Definition, arguments: dict[str, Any]) -> Any | None:
        if checker.validate(arguments) is not None:
            return None
        try:
            answer = await self.toolbox.call(checker, arguments, deadline_s=ask.deadline_s, workplace=workplace_of(ask))
        except (NotSent, OutcomeUnknown, ToolUnavailable):
            return None
        return answer.data if answer.success else None

    async def _undo(self, ask: calls.CallTool) -> ToolResult:
        """Make the declared compensation of an effect; it is an effect of its own, under `<effect>/undo`."""
        row = await self._row(ask)
        catalog, definition = await self._definition(ask, row.tool)
        tool, sealed = row.undo_tool, row.undo_sealed
        if tool is not None and sealed is not None:
            arguments = await self.store.blobs.of(ask.run).unseal_json(sealed)
        else:
            declared, found = definition.declaration.undo_by_effect_id, catalog.undo_by_effect_id_of(definition)
            if declared is None or found is None:
                return ToolResult(
                    success=False, error="no compensation was recorded for it", error_type="CompensationFailed"
                )
            tool = found.name
            arguments = render(declared.arguments, _variables(row.effect_id, await self._sent_arguments(row), None))
        _, compensation = await self._definition(ask, tool)
        demand_valid(compensation, arguments)
        intent = Intent(
            effect_id=f"{row.effect_id}/undo",
            run=ask.run,
            n=row.n,
            undo=True,
            tool=tool,
            args_digest=digest_of(arguments),
            step=row.step,
            send=ask.send,
            lease=time.time() + ask.deadline_s,
            user_id=ask.user_id,
        )
        return await self._send(ask, compensation, arguments, intent, _nothing)

    async def _row(self, ask: calls.CallTool) -> EffectRow:
        row = await self.store.effects.get(f"{ask.run}/{ask.effect}")
        if row is None:
            raise ArgumentsInvalid(f"no effect {ask.effect} is recorded in this store")
        return row

    async def _sent_arguments(self, row: EffectRow) -> dict[str, Any]:
        return (
            {} if row.arguments_sealed is None else await self.store.blobs.of(row.run).unseal_json(row.arguments_sealed)
        )

    async def _callable(self, ask: calls.CheckCall | calls.CallTool, tool: str) -> tuple[Catalog, Definition]:
        catalog, definition = await self._definition(ask, tool)
        if definition.hidden:
            raise ToolNotFound(f"there is no tool {tool[:100]} that others than the engine may call")
        return catalog, definition

    async def _definition(self, ask: calls.CheckCall | calls.CallTool, tool: str) -> tuple[Catalog, Definition]:
        catalog = await self.catalog(ask, ask.user_id)
        definition = catalog.definitions.get(tool)
        if definition is not None:
            return catalog, definition
        provider = tool.partition(".")[0]
        if provider in catalog.unavailable:
            raise ToolUnavailable(f"{provider}: {catalog.unavailable[provider]}")
        close = ", ".join(hit.tool for hit in catalog.search(tool, limit=3)) or "none"
        raise ToolNotFound(f"there is no tool {tool[:100]}; the closest are: {close}")


def _called(ask: calls.CallTool) -> tuple[Event, ...]:
    if not ask.event:
        return ()
    data = {"tool": ask.tool, "effect": ask.effect}
    at = ordered_at()
    return (Event(n=ask.event, name="action.called", at=at, step=ask.step, text=one_line(ask.tool, 80)[0], data=data),)


async def _nothing(_result: Any) -> BoundUndo | None:
    """Bind no compensation to a compensation."""
    return None


def _variables(effect_id: str, arguments: dict[str, Any], result: Any) -> dict[str, Any]:
    return {"effect": {"id": effect_id}, "arguments": arguments, "result": result}
