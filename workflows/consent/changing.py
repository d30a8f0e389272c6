"""Change calls as people want them: check what they change, and keep what they said for the model."""

from collections.abc import Callable, Iterable

from backstay.approvals.approval import CallVerdict
from backstay.approvals.edits import edited, touched
from backstay.canonical import digest_of, pointer_to
from backstay.errors import DecisionRefused
from backstay.policies.ruling import Ruling
from backstay.shown import one_line, shown_arguments
from backstay.tools.tool import ByPerson, ToolCall
from workflows.context.run_context import RunContext
from workflows.state.work import RequestOutcome

TOLD_CHARACTERS = 4000
"""How much of what was sent with other arguments the model is told."""
MOST_COMMENTS = 20


async def checked_change(
    context: RunContext,
    call: ToolCall,
    index: int,
    verdict: CallVerdict,
    seen: dict[str, object],
    *,
    of_plan: bool,
    resolved: Callable[[dict[str, object]], bool],
    ruled: Callable[[ToolCall], Ruling],
) -> tuple[CallVerdict, Ruling]:
    """Return a change with all arguments as they would be sent, and the ruling on it.

    `seen` are the arguments as people saw them; `of_plan` says whether they are those of a plan's step. Raises
    DecisionRefused for what cannot be made.
    """
    where, name = f"calls.{index}.arguments", call.tool.name
    merged = edited(call.arguments, seen, verdict, f"calls.{index}")
    checked = await context.check_call(
        name,
        merged,
        resolved=resolved(merged),
        of_plan=of_plan,
        judge=call.tool.judged,
        summary=f"check changes to {name}",
        in_handler=True,
        before=call.arguments,
    )
    if checked.error is not None:
        raise DecisionRefused(f"{where}: {checked.error}")
    if not touched(call.arguments, checked.arguments):
        raise DecisionRefused(f"{where}: nothing differs from the call as it is; change something, or approve it")
    anew = ruled(changed(call, checked.arguments))
    if anew.verdict == "deny":
        raise DecisionRefused(f"{where}: the changed call is denied by {anew.rule}")
    return CallVerdict(verdict="modify", arguments=checked.arguments), anew


def changed(call: ToolCall, arguments: dict[str, object], by: str = "") -> ToolCall:
    """Return a call with the arguments that a person gave it; the changed values come from that person."""
    update: dict[str, object] = {"arguments": arguments, "resolved_key": ""}
    if call.sources is not None:
        update["sources"] = call.sources.given_by(edits_of(touched(call.arguments, arguments), by))
    return call.model_copy(update=update)


def edits_of(names: Iterable[str], by: str) -> dict[str, str]:
    """Return who gave some arguments their values, as the sources of a call keep it."""
    return {pointer_to("", name): one_line(by, 200) for name in names}


def said_of(call: ToolCall, first: ToolCall, comments: tuple[str, ...], decided: RequestOutcome) -> ToolCall:
    """Return a call that may be made with what people did to it; `first` is the call as the run wanted it."""
    said = (*comments, decided.comment) if decided.comment else comments
    before, after = first.arguments, call.arguments
    names = touched(before, after)
    if not said and not names:
        return call
    sent = {name: after[name] for name in names if name in after}
    by_person = ByPerson(
        by=one_line(decided.by, 200),
        comments=tuple(one_line(comment, 1000) for comment in said[-MOST_COMMENTS:]),
        sent=shown_arguments(sent, TOLD_CHARACTERS).arguments,
        without=tuple(one_line(name, 200) for name in names if name not in after),
        args_digest=digest_of(after) if names else "",
    )
    return call.model_copy(update={"by_person": by_person})


def commented(call: ToolCall, decided: RequestOutcome) -> ToolCall:
    """Return a call under way with what a person said who decided something about it, for the model."""
    if not decided.comment:
        return call
    known = call.by_person or ByPerson(by=one_line(decided.by, 200))
    comments = (*known.comments, one_line(decided.comment, 1000))[-MOST_COMMENTS:]
    return call.model_copy(update={"by_person": known.model_copy(update={"comments": comments})})
