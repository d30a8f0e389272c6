"""Send one call, again where that is proven or wanted, and let people answer what its server asks."""

from backstay import calls, errors
from backstay.approvals.approval import ApprovalRequest, RequestKind, Verdict
from backstay.canonical import digest_of
from backstay.policies.policy import Policy, rule
from backstay.shown import one_line
from backstay.task.status import State
from backstay.tools.tool import Elicitation, ToolCall, ToolResult
from workflows.approvals import Decided
from workflows.consent import refused, rejected, shown_call
from workflows.reconcile import Reconcile
from workflows.run_context import RunContext

QUESTIONS = 10
"""How often in a row a server may ask; a server that never has enough gets no answer."""
USUAL_S = 30
BAD = "AnswerInvalid"
"""The type of a result that only says what is wrong with a person's answer; the question still stands."""


class Sending:
    """Carry one call to its provider; its effect, if it has one, keeps count of the deliberate sends."""

    def __init__(self, context: RunContext, call: ToolCall, deadline_s: float) -> None:
        """Prepare to send; nothing has been sent yet."""
        self.context = context
        self.call = call
        self.reconcile = Reconcile(context)
        self.deadline_s = (call.tool.deadline_s or deadline_s) if deadline_s == USUAL_S else deadline_s
        self.sends: dict[int | None, int] = {}

    async def first(self, effect: int | None) -> ToolResult:
        """Send for the first time."""
        self.sends[effect] = 1
        return await self._answered(effect, await self._ordered(effect))

    async def again(self, effect: int) -> ToolResult:
        """Send once more: the earlier send is settled as not sent, or another effect has taken its place."""
        self.sends[effect] = self.sends.get(effect, 0) + 1
        return await self._answered(effect, await self._ordered(effect))

    async def _answered(self, effect: int | None, result: ToolResult) -> ToolResult:
        for _ in range(QUESTIONS):
            question = result.question
            if question is None:
                return result
            decided = await self._ask(question, result)
            if decided.stop:
                raise rejected(decided)
            if decided.verdict is Verdict.ANSWER or (question.said is None and decided.verdict is not None):
                if question.said is not None and effect is not None:
                    # The person who answers says with it that the call is to be made again.
                    await self.reconcile.settle(effect, "did_not_happen", f"{decided.by} answered its question")
                    self.sends[effect] += 1
                answer = decided.answer if decided.verdict is Verdict.ANSWER else None
                result = await self._ordered(effect, question.sealed, answer)
            elif question.said is None:
                return refused(errors.Expired(f"nobody answered {self.call.tool.name} in time"))
            else:
                return await self._left(effect, result)
        return ToolResult(success=False, error="its server asks without end", error_type="ToolError")

    async def _left(self, effect: int | None, result: ToolResult) -> ToolResult:
        """Return what an older server did without an answer, as it stands."""
        if effect is not None:
            await self.reconcile.settle(
                effect, "happened" if result.success else "did_not_happen", "its server went on"
            )
        kind = None if result.success else "ToolError"
        return result.model_copy(update={"question": None, "error_type": kind})

    async def _ordered(self, effect: int | None, question: str = "", reply: object = None) -> ToolResult:
        state, call = self.context.state, self.call
        summary = summary_of(call)
        event = self.context.record("action.called", summary, written=True, tool=call.tool.name, effect=effect)
        ask = calls.CallTool(
            run=state.run,
            user_id=state.task.user_id,
            tool=call.tool.name,
            definition=call.tool.definition,
            arguments=call.arguments,
            event=event.n,
            step=state.usage.steps,
        )
        # What stays at its default does not reach history.
        more: dict[str, object] = {}
        if effect is not None:
            more |= {"effect": effect, "args_digest": digest_of(call.arguments)}
        if self.sends.get(effect, 1) != 1:
            more["send"] = self.sends[effect]
        if self.deadline_s != USUAL_S:
            more["deadline_s"] = self.deadline_s
        if state.step_results:
            more["results"] = state.step_results
        if question:
            more |= {"question": question, "reply": reply}
        return await self.context.activities.execute(
            calls.call_tool, ask.model_copy(update=more) if more else ask, summary=summary, deadline_s=self.deadline_s
        )

    async def _ask(self, question: Elicitation, result: ToolResult) -> Decided:
        call, opened = self.call, self.context.state.opened
        request = ApprovalRequest(
            id="",
            kind=RequestKind.ELICITATION,
            question=_words(call, question, result),
            calls=(shown_call(call),),
            schema=question.form,
            options=(Verdict.ANSWER.value, Verdict.REJECT.value),
            rule="engine: the tool's server asks",
        )
        ruling = rule(Policy() if opened is None else opened.policy, call.tool, call.arguments)
        # Whoever had to decide about the call answers for it, too; without such a rule the question never expires.
        asking = ruling.model_copy(update={"quorum": 1}) if ruling.verdict == "ask" else None
        with self.context.doing(State.WAITING):
            return await self.context.approvals.ask(request, asking)


def _words(call: ToolCall, question: Elicitation, result: ToolResult) -> str:
    name = one_line(call.tool.name, 200)
    fault = f"The last answer does not fit ({one_line(result.error or '', 300)}). " if result.error_type == BAD else ""
    visit = f" It wants you to visit {one_line(question.url, 500)}." if question.url else ""
    then = "Your answer lets the call go on; reject to decline."
    if question.said is not None:
        then = (
            f"It went on without an answer and said: {one_line(question.said, 300)}. "
            "Your answer makes the call again; reject to leave it at that."
        )
    return f"{fault}{name} asks: {question.message}{visit} {then}"


def summary_of(call: ToolCall) -> str:
    """Say in one line what is called, for operators: tool, the most telling argument, how it is undone."""
    argument = next((str(value) for value in call.arguments.values() if isinstance(value, str | int | float)), "")
    telling = f" -> {one_line(argument, 60)}" if argument else ""
    undoable = "" if not call.effectful else ", undoable" if call.tool.undo else ", cannot be undone"
    return f"{one_line(call.tool.name, 80)}{telling}{undoable}"
