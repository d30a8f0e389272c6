"""Call tools: the model's calls, plan steps, declared checks and compensations."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from activities.resources import Resources, require_valid, workspace_access_of
from activities.retrying import implements, tell_progress
from activities.tools.answers import Answers
from activities.tools.arguments import Arguments, refuse_brought_secrets, refuse_denied, require_same
from activities.tools.declared import DeclaredActivities
from activities.tools.effects import EffectIntents, harmless_again_s, intent_of
from activities.tools.elicitations import Elicitations
from activities.tools.finding import ToolActivities
from activities.tools.previews import RehearsalActivities, made_up, place_of
from activities.tools.server_tasks import ServerTasks
from backstay import calls
from backstay.canonical import digest_of
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
from backstay.policies.accepted import is_by_grant
from backstay.policies.policy import on_its_way
from backstay.python_tools.safety import Deny
from backstay.shown import brief_arguments
from backstay.task.event import as_drafts
from backstay.tools.tool import Elicitation, ToolResult
from store.effects.types import Intent
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition
from toolbox.manifest.builder import masked
from toolbox.providers.answer import Answer
from toolbox.providers.elicitation import ElicitationRequest, InputRequired, InputResponse
from toolbox.providers.provider import NotSent

_SAFETY = "backstay:safety"
"""Marks the question of an operator's own check."""
_REFUSALS = (ToolNotFound, ToolChanged, ArgumentsInvalid, CompensationFailed, Denied)
"""What is wrong with a call before it is sent, which is an answer."""


class Tools(ToolActivities):
    """The body of `call_tool`."""

    def __init__(self, resources: Resources) -> None:
        """Share the worker's resources."""
        super().__init__(resources)
        records = self.records
        self.effects = EffectIntents(records)
        self.arguments = Arguments(records)
        self.elicitations = Elicitations(records)
        self.rehearsing = RehearsalActivities(records, self.arguments)
        self.declared = DeclaredActivities(resources)
        self.answers = Answers(resources, self.declared)
        self.tasks = ServerTasks(records)

    @implements(calls.call_tool)
    async def call_tool(self, ask: calls.CallTool) -> ToolResult:
        """Call one tool; an effect is recorded before it is sent and settled after."""
        made = ask if ask.purpose in {"call", "simulate"} else await self.as_made(ask)
        # The permission for an effect is written with its intent, but where a run undoes what a sub-run has made.
        begun = ask if ask.effect is None or made is not ask else ask.model_copy(update={"decisions": ()})
        await self.begin(begun)
        result = await self.performed(made)
        if result.question is not None:
            # It may have come before the intent, with which they are written otherwise.
            await self.admit(ask)
        if not ask.draft or result.question is not None or result.task is not None or result.untold:
            return result
        try:
            untold = ask.model_copy(update={"events": (), "numbered": ()})
            await self.tell(untold, as_drafts(ask.happened(result), ask.draft))
        except StoreUnavailable:
            # The call that was sent counts more than its event, which the workflow tells itself.
            return result.model_copy(update={"untold": True})
        return result

    async def performed(self, ask: calls.CallTool) -> ToolResult:
        """Make one call; a fault in it before it is sent is an answer. Tells no event."""
        result = await self._performed(ask)
        if not ask.draft or result.question is not None:
            return result
        if result.resolved is not None:
            return result.model_copy(update={"sent": brief_arguments(result.resolved)})
        if ask.of_plan:
            with suppress(ArgumentsInvalid):
                sent = await self.arguments.referred(ask.run, ask.arguments, ask.references)
                return result.model_copy(update={"sent": brief_arguments(sent)})
        return result

    async def _performed(self, ask: calls.CallTool) -> ToolResult:
        try:
            match ask.purpose:
                case "call" | "simulate" if ask.rehearsal is not None:
                    return await self._rehearsed(ask, ask.rehearsal)
                case "call" | "simulate":
                    return await self._call(ask)
                case "verify" | "verify_undo":
                    return await self.declared.verify(ask)
                case "undo":
                    return await self._undo(ask)
        except _REFUSALS as error:
            await self.store.decisions.append(ask.run, ask.decisions)
            said = await self.records.text(ask.run, str(error))
            return ToolResult(success=False, error=said[:500], error_type=type(error).__name__)

    async def _rehearsed(self, ask: calls.CallTool, rehearsal: RehearsedCall) -> ToolResult:
        """Make a call of a rehearsal: real where it only reads, in the copy of a workspace, or simulated."""
        _, definition = await self.callable(ask, ask.tool)
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
            said = await self.toolbox.judge(definition, arguments, await self.caller(ask))
            if isinstance(said, Deny):
                raise Denied(f"denied by a safety policy: {said.why}")
            if copied:
                made = await self._read(ask, definition, arguments, None)
                result = made.model_copy(update={"simulated": True}) if ask.purpose == "simulate" else made
            else:
                result = await self.rehearsing.simulated(ask, rehearsal, definition, shown)
        return result.model_copy(update={"resolved": await self.arguments.fold_shown(ask.run, shown)})

    async def _call(self, ask: calls.CallTool) -> ToolResult:
        catalog, definition = await self.callable(ask, ask.tool)
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
        said = await self.toolbox.judge(definition, arguments, await self.caller(ask))
        row = None if said is None or ask.effect is None else await self.store.effects.get(f"{ask.run}/{ask.effect}")
        if row is not None and row.state is not EffectState.NOT_SENT:
            # An earlier attempt has sent it, and only what is recorded says what came of that.
            return to_tool, None
        if isinstance(said, Deny):
            raise Denied(f"denied by a safety policy: {said.why}")
        # The person who answers the tool's own question was asked about a call that had passed.
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
        # A restored Temporal calls the first attempt that it knows of the first one.
        tried = ask.tried or self.store.attempts_forgotten(ask.store)
        tell = await self._teller(ask.run)
        async with self.effects.intent(intent, idempotency_ttl=ttl, epoch_differs=differs, tried=tried) as send:
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
                    caller=await self.caller(ask),
                    judged=ask.purpose != "undo",
                    follows=True,
                    by_grant=not ask.asked_again and is_by_grant(ask.ruling, ask.tool),
                )
            )
            if answer.task is not None:
                await self.tasks.hand_over(send, definition, arguments, answer.task)
            else:
                await self.answers.of_effect(send, ask.purpose, (catalog, definition), arguments, answer)
        return send.told

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
                caller=await self.caller(ask),
                judged=True,
                follows=True,
                by_grant=not ask.asked_again and is_by_grant(ask.ruling, ask.tool),
            )
        except NotSent as error:
            raise ToolUnavailable(str(error), retry_after=error.retry_after_s) from error
        except OutcomeUnknown as error:
            if error.facts.get("timed_out"):
                said = f"no answer within {ask.deadline_s:g} s"
                return ToolResult(success=False, error=said, error_type="ToolError", timed_out=True)
            raise ToolUnavailable(f"{definition.name}: {error}") from error
        if answer.question is not None:
            return await self._asked_by_read(run, definition.provider, answer, answer.question)
        if answer.task is not None:
            return await self.tasks.of_read(run, definition, arguments, answer.task)
        return await self.answers.of_read(run, definition, arguments, answer, simulated=made_up(ask, copy))

    async def _asked_by_read(self, run: str, provider: str, answer: Answer, question: InputRequired) -> ToolResult:
        """Return what the server of a read asks, or that nobody can be shown it."""
        try:
            shown = await self.elicitations.keep(run, provider, question)
        except ArgumentsInvalid as error:
            # Nothing is wrong with the arguments of the call.
            return ToolResult(success=False, error=str(error), error_type="ToolError")
        return ToolResult(success=answer.success, error="its server asks", question=shown)

    async def _undo(self, ask: calls.CallTool) -> ToolResult:
        """Make the declared compensation of an effect; it is an effect of its own, under `<effect>/undo`."""
        row = await self.declared.row(ask)
        tool, arguments = await self.declared.compensation(ask)
        await self.declared.require_agreed(ask, tool, arguments)
        catalog, definition = await self.definition(ask, tool)
        if (ruling := next(on_its_way(self.resources.policy, definition.tool, purpose="undo"), None)) is not None:
            # The workflow rules on the name of the compensation, which is all it knows of it.
            raise CompensationFailed(f"{ruling.rule}: only rules that name {tool} can ask about it")
        await require_valid(definition, arguments)
        intent = intent_of(ask, row.n, tool, digest_of(arguments), row.step)
        return await self._send(ask, intent, catalog, definition, arguments)
