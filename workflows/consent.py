"""Find out which calls may go: by rule, and where a rule asks, by a person."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from temporalio.exceptions import ApplicationError

from backstay import calls, errors
from backstay.approvals import deciding
from backstay.approvals.approval import ApprovalRequest, CallVerdict, RequestedCall, RequestKind, Verdict
from backstay.budgets.budget import calls_refused
from backstay.canonical import digest_of
from backstay.errors import DecisionRefused
from backstay.policies.policy import Policy, Purpose, rule
from backstay.policies.ruling import Ruling, stricter
from backstay.requests import PreviewedCall
from backstay.shown import one_line, shown_arguments
from backstay.task.plan import references_in
from backstay.task.status import State
from backstay.tools.tool import ToolCall, ToolResult
from workflows.activity_calls import failure_of
from workflows.approvals import Decided
from workflows.run_context import RunContext

DECISIONS = (Verdict.APPROVE.value, Verdict.MODIFY.value, Verdict.REJECT.value)
WHOLE_DECISIONS = (Verdict.APPROVE.value, Verdict.REJECT.value)
"""A compensation was bound when its effect was recorded, a program is one text: nobody changes them in part."""
SHOWN_CHARACTERS = 30_000
"""Of the arguments of one request; every query answer must stay under 128 KiB, whatever characters they hold."""
Answered = dict[int, ToolCall | ToolResult]
"""By index: the call that may go, perhaps modified, or the result that says why it may not."""


def never() -> bool:
    """Say that what is asked about is always needed."""
    return False


@dataclass(frozen=True)
class Ruled:
    """Hold one call of a batch with its ruling."""

    index: int
    call: ToolCall
    ruling: Ruling


class Consent:
    """Rule on calls and ask people about those that a rule asks about."""

    def __init__(self, context: RunContext) -> None:
        """Work at the run's context."""
        self.context = context
        self.withdrawn: Callable[[], bool] = never
        """Whether what is asked about is no longer needed."""

    @property
    def policy(self) -> Policy:
        """Return the policy that the run was opened with."""
        opened = self.context.state.opened
        return Policy() if opened is None else opened.policy

    async def obtain(
        self, batch: Sequence[ToolCall], *, kind: RequestKind | None = None, purpose: Purpose = "call"
    ) -> Answered:
        """Return for each call whether it may go; what is asked is asked in one request per set of approvers.

        Raises Rejected when a person rejects and stops the run, Expired when a rule says that expiry fails it.
        """
        ruled = [
            Ruled(i, call, rule(self.policy, call.tool, call.arguments, purpose=purpose))
            for i, call in enumerate(batch)
        ]
        answered: Answered = {}
        asked: dict[tuple[Any, ...], list[Ruled]] = {}
        for one in ruled:
            match one.ruling.verdict:
                case "allow":
                    answered[one.index] = one.call
                case "ask":
                    asked.setdefault(deciding.constraint(one.ruling), []).append(one)
                case _:
                    self.context.record("action.denied", f"{one.call.tool.name}: {one.ruling.rule}")
                    answered[one.index] = refused(errors.Denied(f"denied by the policy: {one.ruling.rule}"))
        if purpose == "call" and kind is not RequestKind.PROGRAM:
            # Nobody is asked about calls that the budget would refuse anyway.
            names = [one.call.tool.name for one in ruled if one.ruling.verdict != "deny"]
            await self.context.afford(lambda: calls_refused(self.context.state.budget, self.context.state.usage, names))
        return answered | await self._ask_all(list(asked.values()), kind, purpose)

    async def again(self, call: ToolCall, why: str) -> ToolCall | ToolResult:
        """Ask about one call whose ground has changed, whatever the policy says."""
        ruling = rule(self.policy, call.tool, call.arguments)
        if ruling.verdict == "deny":
            return refused(errors.Denied(f"denied by the policy: {ruling.rule}"))
        ruling = ruling.model_copy(update={"verdict": "ask", "rule": f"{why} ({ruling.rule})"})
        return (await self._ask_all([[Ruled(0, call, ruling)]], None, "call"))[0]

    async def _ask_all(self, groups: list[list[Ruled]], kind: RequestKind | None, purpose: Purpose) -> Answered:
        """Ask all groups at once: nobody waits for what others have to decide."""
        if not groups:
            return {}
        asking = [
            asyncio.ensure_future(
                self._ask(group, kind or (RequestKind.CALL if len(group) == 1 else RequestKind.BATCH), purpose)
            )
            for group in groups
        ]
        try:
            with self.context.doing(State.WAITING):
                answers = await asyncio.gather(*asking)
        finally:
            # Where one ends the run, the others are withdrawn.
            for one in asking:
                one.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        return {index: answer for group in answers for index, answer in group.items()}

    async def _ask(self, group: list[Ruled], kind: RequestKind, purpose: Purpose = "call") -> Answered:
        most = max(200, min(2000, SHOWN_CHARACTERS // len(group)))
        diffs = await self._diffs(group) if purpose == "call" else {}
        shown = tuple(shown_call(one.call, one.index, most, diffs.get(one.index)) for one in group)
        by_index = {one.index: one for one in group}
        request = ApprovalRequest(
            id="",
            kind=kind,
            question=_question(group, kind, purpose),
            calls=shown,
            options=DECISIONS if purpose == "call" and kind is not RequestKind.PROGRAM else WHOLE_DECISIONS,
            reason="; ".join(dict.fromkeys(one.call.reason for one in group if one.call.reason)),
            args_digest=digest_of(
                group[0].call.arguments if len(group) == 1 else [one.call.arguments for one in group]
            ),
        )
        ruling = reduce(stricter, (one.ruling for one in group))

        async def check_changes(named: dict[int, CallVerdict]) -> dict[int, CallVerdict]:
            return {
                index: verdict if verdict.arguments is None else await self._changed(by_index[index], verdict, shown)
                for index, verdict in named.items()
            }

        decided = await self.context.approvals.ask(request, ruling, check_changes, self.withdrawn)
        if decided.verdict is None and decided.on_expiry == "fail":
            raise errors.Expired(f"nobody decided about {request.question} in time")
        if decided.stop:
            raise rejected(decided)
        return {one.index: _outcome(one, decided) for one in group}

    async def _diffs(self, group: list[Ruled]) -> dict[int, str | None]:
        """Return by index what calls would change, for those whose provider can tell."""
        told = [one for one in group if one.call.tool.previewed]
        if not told:
            return {}
        state = self.context.state
        ask = calls.PreviewCalls(
            run=state.run,
            user_id=state.task.user_id,
            calls=tuple(PreviewedCall(tool=one.call.tool.name, arguments=one.call.arguments) for one in told),
        )
        if state.step_results:
            ask = ask.model_copy(update={"results": state.step_results})
        previewed = await self.context.activities.execute(calls.preview_calls, ask, summary="see what would change")
        return {one.index: diff for one, diff in zip(told, previewed.diffs, strict=True)}

    async def _changed(self, one: Ruled, verdict: CallVerdict, shown: tuple[RequestedCall, ...]) -> CallVerdict:
        seen = next(call for call in shown if call.index == one.index).arguments
        changes = {
            key: value for key, value in (verdict.arguments or {}).items() if key not in seen or seen[key] != value
        }
        ask = calls.CheckCall(
            run=self.context.state.run,
            user_id=self.context.state.task.user_id,
            tool=one.call.tool.name,
            arguments=(merged := deciding.merged(one.call.arguments, changes)),
            # A plan's references stand for results that do not exist yet.
            resolved=self.context.state.task.plan is None or not references_in(merged),
        )
        try:
            checked = await self.context.activities.execute_once(
                calls.check_call, ask, summary=f"check changes to {one.call.tool.name}"
            )
        except ApplicationError as error:
            raise failure_of(error) from None
        if checked.error is not None:
            raise DecisionRefused(f"calls.{one.index}.arguments: {checked.error}")
        anew = rule(self.policy, one.call.tool, checked.arguments)
        if anew.verdict == "deny":
            raise DecisionRefused(f"calls.{one.index}.arguments: the changed call is denied by {anew.rule}")
        if anew.verdict == "ask" and deciding.constraint(anew) != deciding.constraint(one.ruling):
            raise DecisionRefused(
                f"calls.{one.index}.arguments: the changed call falls under another rule: {anew.rule}"
            )
        return CallVerdict(verdict="modify", arguments=checked.arguments)


def rejected(decided: Decided) -> errors.Rejected:
    """Return what a person's rejection means: an answer for the model or, with `stop`, the end of the run."""
    said = f": {one_line(decided.comment, 500)}" if decided.comment else ""
    return errors.Rejected(f"rejected by {decided.by}{said}")


def refused(error: errors.BackstayError) -> ToolResult:
    """Return the result that tells the model why a call was not made."""
    return ToolResult(success=False, error=str(error), error_type=type(error).__name__)


def _outcome(one: Ruled, decided: Decided) -> ToolCall | ToolResult:
    if decided.verdict is None:
        return refused(errors.Expired(f"nobody decided about {one.call.tool.name} in time"))
    named = decided.calls.get(one.index)
    verdict = named.verdict if named is not None else decided.verdict.value
    if verdict == "reject":
        return refused(rejected(decided))
    if named is not None and named.arguments is not None:
        return one.call.model_copy(update={"arguments": named.arguments})
    return one.call


def _question(group: list[Ruled], kind: RequestKind, purpose: Purpose) -> str:
    if purpose == "undo":
        return f"May the run undo an effect: {one_line(str(group[0].call.arguments['undo']), 300)}?"
    if kind is RequestKind.PROGRAM:
        return "May the run start this program? Each call it makes is ruled on when it is made."
    names = list(dict.fromkeys(one.call.tool.name for one in group))
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    what = "the plan's calls" if kind is RequestKind.PLAN else f"{len(group)} calls" if len(group) > 1 else "one call"
    return f"May the run make {what} of {one_line(listed, 300)}?"


def shown_call(call: ToolCall, index: int = 0, most: int = 2000, diff: str | None = None) -> RequestedCall:
    """Return a call as people see it before they decide."""
    arguments, clipped = shown_arguments(call.arguments, most)
    tool = call.tool
    return RequestedCall(
        index=index,
        tool=one_line(tool.name, 200),
        arguments=arguments,
        safety=tool.safety,
        undoable=tool.undo is not None,
        undo_how=None if tool.undo is None else one_line(tool.undo, 300),
        diff=diff,
        clipped=clipped,
        args_digest=digest_of(call.arguments),
    )
