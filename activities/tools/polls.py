"""Follow the tasks by which servers answer calls that take long: ask, answer, cancel, and record how they end."""

from typing import Any

from activities.resources import Resources
from activities.retrying import implements
from activities.tools.answers import Answers
from activities.tools.declared import DeclaredActivities
from activities.tools.effects import EffectIntents, working
from activities.tools.elicitations import Elicitations
from activities.tools.finding import ToolActivities
from activities.tools.server_tasks import ServerTasks
from backstay import calls
from backstay.effects.effect import EffectState
from backstay.errors import ArgumentsInvalid, CompensationFailed, OutcomeUnknown, ToolNotFound, ToolUnavailable
from backstay.tools.server_task import ServerTask
from backstay.tools.tool import ToolResult
from store.effects.types import EffectRow
from toolbox.providers.answer import Answer
from toolbox.providers.elicitation import InputRequired, InputResponse
from toolbox.providers.provider import NotSent
from toolbox.providers.server_tasks import TaskGone, TaskRequest, marks_of

_LEAST_WAIT_S, _MOST_WAIT_S = 2.0, 300.0
_TOO_LONG = "its server asks for more than a person can be shown"


class Polls(ToolActivities):
    """Implement `follow_task`."""

    def __init__(self, resources: Resources, effects: EffectIntents) -> None:
        """Settle effects as those are settled that are answered at once."""
        super().__init__(resources)
        self.effects = effects
        self.declared = DeclaredActivities(resources)
        self.answers = Answers(resources, self.declared)
        self.tasks = ServerTasks(self.records)
        self.elicitations = Elicitations(self.records)

    @implements(calls.follow_task)
    async def follow_task(self, ask: calls.FollowTask) -> ToolResult:
        """Ask about a task; its outcome is recorded as the answer. A recorded outcome is never asked about."""
        await self.begin(ask)
        ask = await self.as_made(ask)
        row = await self._row(ask)
        if row is not None and row.task_sealed is not None and not row.followed:
            return row.effect().recorded or await self._lost(None, "another outcome was recorded meanwhile")
        sealed = ask.sealed if row is None else row.task_sealed
        if ask.action == "forget" or not sealed:
            return await self._lost(row, ask.why or "no task is recorded for it")
        kept = await self.store.blobs.of(ask.run).unseal_json(sealed)
        provider = str(kept["tool"]).partition(".")[0]
        try:
            reply = await self.elicitations.reply(ask)
        except ArgumentsInvalid as error:
            question = await self.elicitations.again(ask, provider)
            update = {"error": str(error)[:500], "error_type": "AnswerInvalid", "question": question}
            return _working(ask).model_copy(update=update)
        try:
            request = _request(ask, str(kept["id"]), reply)
            answer = await self.toolbox.follow(provider, request, await self.caller(ask))
            if answer.task is None:
                return await self._ended(ask, row, kept, answer)
        except TaskGone as error:
            # Of anything else, the next look at it tells the same.
            said = await self.records.text(ask.run, str(error))
            return await self._lost(row, said[:500]) if ask.action == "get" else _working(ask)
        except (NotSent, OutcomeUnknown, ToolUnavailable) as error:
            return await self._unreachable(ask, error)
        new = frozenset[str]() if reply is None else marks_of(reply.required.requests)
        more = {"answered": tuple(sorted({*ask.answered, *new})), **await self.tasks.said(ask.run, answer.task)}
        return await self._asked(ask, provider, _working(ask, **more), answer.question)

    async def _asked(
        self, ask: calls.FollowTask, provider: str, told: ToolResult, question: InputRequired | None
    ) -> ToolResult:
        """Return what is known of a task, with what its server asks."""
        if question is None:
            return told
        try:
            return told.model_copy(update={"question": await self.elicitations.keep(ask.run, provider, question)})
        except ArgumentsInvalid:
            return _working(ask, refused=_TOO_LONG)

    async def _row(self, ask: calls.FollowTask) -> EffectRow | None:
        """Return the record of the effect that the task makes; None where it only reads."""
        if ask.effect is None or ask.purpose in {"verify", "verify_undo"}:
            return None
        return await self.declared.row(ask, undo=ask.purpose == "undo")

    async def _ended(
        self, ask: calls.FollowTask, row: EffectRow | None, kept: dict[str, Any], answer: Answer
    ) -> ToolResult:
        """Record what a task came to, as the answer of its call."""
        if ask.purpose in {"verify", "verify_undo"}:
            try:
                return await self.declared.verified(ask, answer)
            except (ToolNotFound, CompensationFailed, ArgumentsInvalid):
                return ToolResult(success=True)  # it says nothing
        try:
            found = await self.definition(ask, kept["tool"])
        except ToolNotFound:
            return await self._lost(row, "its tool is offered no more, so that what its task came to cannot be read")
        if row is None:
            return await self.answers.of_read(ask.run, found[1], kept["arguments"], answer)
        send = self.effects.again(row, ask.deadline_s)
        await self.answers.of_effect(send, ask.purpose, found, kept["arguments"], answer)
        return send.told

    async def _lost(self, row: EffectRow | None, why: str) -> ToolResult:
        """Record that nobody will know from its server what became of a call."""
        if row is not None:
            await self.store.effects.settle(row.effect_id, row.token, EffectState.UNKNOWN, outcome=why)
        return ToolResult(success=False, error=why, error_type="OutcomeUnknown")

    async def _unreachable(self, ask: calls.FollowTask, error: Exception) -> ToolResult:
        """Return that nothing was found out this time; an answer to the server is sent again, until it is taken."""
        why = (await self.records.text(ask.run, str(error)))[:300]
        if ask.action == "update":
            raise ToolUnavailable(why) from None
        wait = getattr(error, "retry_after_s", None) or 0.0
        return _working(ask, poll_s=min(max(wait, _LEAST_WAIT_S), _MOST_WAIT_S), unreachable=why)


def _request(ask: calls.FollowTask, name: str, reply: InputResponse | None) -> TaskRequest:
    answered = frozenset(ask.answered)
    action = "get" if ask.action == "forget" else ask.action
    return TaskRequest(action=action, id=name, deadline_s=ask.deadline_s, reply=reply, answered=answered)


def _working(ask: calls.FollowTask, **more: Any) -> ToolResult:
    """Return that the task goes on, with what was known of it before."""
    told: dict[str, Any] = {"sealed": ask.sealed, "answered": ask.answered, **more}
    return working(ServerTask(**told))
