"""Rehearse calls: make the reads, simulate the writes, and keep what that foretells."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from backstay import calls, errors
from backstay.approvals import approvers
from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.approvals.forecast import ForecastEntry, shown_forecast
from backstay.canonical import digest_of
from backstay.plans.rehearsal import Rehearsal, RehearsedCall
from backstay.policies.ruling import Ruling
from backstay.shown import one_line
from backstay.task.theirs import Theirs
from backstay.tools.stages import Purpose
from backstay.tools.tool import ToolCall, ToolResult
from workflows.asking.reminders import never
from workflows.calls.tool_calls import ToolCalls
from workflows.consent.asked_calls import SHOWN_CHARACTERS, RuledCall
from workflows.consent.consent import Answered, Consent, Consented, denied, refused
from workflows.context.run_context import RunContext
from workflows.state.state import write_key

MOST_REHEARSED = 100
"""How many calls of one plan or program are rehearsed; people see them in one request."""
USES_WORKSPACE = frozenset({"fs", "shell"})
"""The providers whose calls are rehearsed in a copy of the workspace."""


@dataclass(frozen=True)
class ProgramForecast:
    """Hold what people are told of a program that was rehearsed."""

    rehearsal: Rehearsal
    program: str
    """Its ref: an approval holds for this program only."""
    reason: str


async def rehearse_call(
    tool_calls: ToolCalls,
    rehearsal: Rehearsal,
    call: ToolCall,
    known: RehearsedCall,
    purpose: Purpose,
    *,
    refers: bool = False,
    deadline_s: float | None = None,
    usual: bool = False,
    most_s: float | None = None,
    unless: Callable[[], bool] = never,
) -> tuple[Rehearsal, ToolResult]:
    """Make one call of a rehearsal, for real with a purpose that reads; return what the rehearsal is after it.

    `refers`: whether its arguments may refer to the results of the rehearsal. When `unless` becomes true, questions to
    people are withdrawn, and it does not begin.
    """
    known = known.model_copy(update={"simulated": rehearsal.simulated})
    results = rehearsal.results if refers else None
    more: dict[str, Any] = {"deadline_s": deadline_s, "usual": usual, "most_s": most_s, "unless": unless}
    (made,) = await tool_calls.perform(purpose, [call], answered={0: call}, rehearsal=known, results=results, **more)
    result = made.result
    if result.simulated and purpose is not Purpose.SIMULATE:
        # It would have read by a simulated value, which no server knows.
        state = tool_calls.context.state
        state.usage = state.usage.uncalled(call.tool.name)
    arguments = call.arguments if result.resolved is None else result.resolved
    simulated = result.simulated or purpose is Purpose.SIMULATE
    entry = ForecastEntry(
        idx=known.idx,
        tool=call.tool.name,
        arguments=arguments,
        digest=digest_of(arguments),
        simulated=simulated,
        assumed=not call.effectful and (simulated or rehearsal.wrote),
    )
    fault = "" if result.success else one_line(f"{result.error_type}: {result.error}", 500)
    return rehearsal.with_call(entry, result.ref, fault), result


async def end_rehearsal(context: RunContext, rehearsal: Rehearsal) -> None:
    """Throw away the copies of the workspace, if the rehearsal has used one."""
    if any(entry.tool.partition(".")[0] in USES_WORKSPACE for entry in rehearsal.forecast):
        ask = calls.EndRehearsal()
        await context.activities.execute(calls.end_rehearsal, ask, summary="throw the copy of the workspace away")


async def ask_about_forecast(
    consent: Consent, calls_by_number: dict[int, ToolCall], foretold: ProgramForecast, unless: Callable[[], bool]
) -> Answered:
    """Ask about the calls that a rehearsal of a program foretells; each set of approvers gets a request.

    A call that the policy denies is not asked about. Raises what `obtain` raises.
    """
    ruled = [RuledCall(number, call, consent.ruling(call, Purpose.PROGRAM)) for number, call in calls_by_number.items()]
    asked: dict[tuple[Any, ...], list[RuledCall]] = {}
    for item in consent.with_repeats([item for item in ruled if item.ruling.verdict != "deny"]):
        asks = item.foretold
        asked.setdefault(approvers.constraint(asks.ruling), []).append(asks)
    await consent.afford([item.call for group in asked.values() for item in group])
    return await consent.ask_all(
        list(asked.values()), Purpose.PROGRAM, RequestKind.PROGRAM, unless, partial(_foretelling, foretold)
    )


async def as_foretold(
    consent: Consent,
    call: ToolCall,
    number: int,
    rehearsal: Rehearsal,
    answers: dict[int, str],
    *,
    approved: ToolCall | None = None,
    refers: bool = False,
    by_model: bool = False,
    theirs: Theirs | None = None,
    told: bool = True,
    unless: Callable[[], bool] = never,
) -> Consented:
    """Return a call that fits what a rehearsal foretold of it; ask about any other, and say what differs.

    `answers` are the stored real results, by number, to which a plan's step may also refer, `approved` is the call as
    people approved it, if it was another, and `told` whether they would know by now that it repeats a write. A read
    that the policy allows needs no forecast. When `unless` becomes true, the question is withdrawn, and none is asked.
    """
    ruling = consent.ruling(call, Purpose.PLAN_STEP)
    if ruling.verdict == "deny":
        return denied(ruling)
    if ruling.verdict == "allow" and not call.effectful:
        return call
    # A string that looks like a token of a call that was made is not a token: the one who answered that call wrote it.
    tokens = {idx: ref for idx, ref in answers.items() if idx in rehearsal.simulated}
    more: Any = {"results": answers if refers else None, "by_model": by_model, "theirs": theirs}
    checked = await consent.context.compare_call(call, rehearsal.entry(number), tokens, **more)
    if checked.error is not None:
        return refused(errors.ArgumentsInvalid(checked.error))
    known = {"sources": checked.sources} if call.sources is not None and checked.sources is not None else {}
    real = call.model_copy(update={"arguments": checked.arguments, **known})
    now, planned = consent.ruling(real, Purpose.PLAN_STEP), consent.ruling(approved or call, Purpose.PLAN_STEP)
    if now.verdict == "deny":
        return denied(now)
    asked = RuledCall(0, real, now)
    differs = checked.differs or _unforeseen(asked, planned, asked if told else consent.with_repeats([asked])[0])
    sent = call.model_copy(update={"resolved_key": write_key(real)}) if refers else call
    return sent if not differs else await _deviating(consent, sent, asked, differs, unless)


def _unforeseen(asked: RuledCall, planned: Ruling, repeated: RuledCall) -> str:
    """Return what people could not know of a call who approved the forecast; empty for nothing."""
    now = asked.ruling
    if now.verdict == "ask" and approvers.constraint(now) != approvers.constraint(planned):
        return "it falls under a rule of other people than those who approved the forecast"
    return repeated.repeats if repeated.ruling != now else ""


async def _deviating(
    consent: Consent, call: ToolCall, real: RuledCall, differs: str, unless: Callable[[], bool]
) -> Consented:
    """Ask about a call that is not as foretold, as it would be sent; people approve or reject it as it is."""
    if unless():
        return refused(errors.ProgramCancelled())
    now = real.ruling
    rule = one_line(f"rehearsal: not as foretold: {differs} ({now.rule})", 1000)
    asked = replace(real, ruling=now.model_copy(update={"verdict": "ask", "rule": rule}), whole=True)
    answer = (await consent.ask_all([[asked]], Purpose.PLAN_STEP, RequestKind.CALL, unless))[0]
    # What was resolved is only shown: a string in it that looks like a reference must not be resolved again.
    return call if isinstance(answer, ToolCall) else answer


def _foretelling(foretold: ProgramForecast, request: ApprovalRequest) -> ApprovalRequest:
    """Return a request about some calls of a program with all that its rehearsal foretells."""
    shown = shown_forecast(foretold.rehearsal.forecast, SHOWN_CHARACTERS // 4)
    update: dict[str, Any] = {
        "question": "May the run start this program, which was rehearsed, and make its calls as they are foretold?",
        "reason": one_line(foretold.reason, 500),
        "forecast": shown,
        "args_digest": foretold.rehearsal.digest_with(foretold.program),
    }
    return request.model_copy(update=update)
