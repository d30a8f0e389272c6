"""Show all of what a request is about, also what it clips, keeps apart or has no room for."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from backstay.approvals.approval import ApprovalRequest, RequestedCall
from backstay.approvals.proposal import Proposal, ProposedStep
from backstay.approvals.proposal_words import more_words
from backstay.frozen import Frozen
from backstay.shown import CLIPPED, kept_bytes, shown_arguments, unseen_words
from backstay.tools.tool import Safety

_ALL = 10_000_000


class WholeCall(Frozen):
    """Hold a call of an open request with all of its arguments; secrets are handles."""

    index: int
    tool: str
    arguments: dict[str, Any]
    safety: Safety = Safety.RESTRICTED_WRITE
    undoable: bool = False
    undo_how: str | None = None


def unseen(request: ApprovalRequest, whole: Collection[int] = ()) -> str:
    """Return in words what a request does not show of what it asks about; empty where it shows everything.

    `whole` are the calls that it shows whole by now, whatever characters are in them.
    """
    proposal, calls = request.proposal, [call for call in request.shown if call.index not in whole]
    said = unseen_words(
        sum(call.left_out for call in calls),
        sum(call.count for call in calls),
        sum(call.clipped for call in calls),
        sum(kept_bytes(call.arguments) for call in calls),
    )
    if proposal is None:
        return said
    # A call that people are asked about counts itself what it hides; of other steps only the characters can tell.
    known = {*whole, *(call.index for call in request.shown)}
    cut = [step for step in proposal.steps if step.idx not in known and _hides(step.arguments)]
    steps = "" if said or not cut else f"arguments of {len(cut)} steps are cut"
    return ", ".join(part for part in (said, steps, more_words(proposal)) if part)


def hidden_calls(request: ApprovalRequest) -> frozenset[int]:
    """Return of which calls that a request shows something is not shown."""
    hidden = {call.index for call in request.shown if call.clipped or call.left_out or _hides(call.arguments)}
    steps = () if request.proposal is None else request.proposal.steps
    return frozenset(hidden | {step.idx for step in steps if _hides(step.arguments)})


def shown_calls(request: ApprovalRequest) -> frozenset[int]:
    """Return the calls of which a request shows anything."""
    steps = () if request.proposal is None else request.proposal.steps
    return frozenset({*(call.index for call in request.shown), *(step.idx for step in steps)})


def with_all(request: ApprovalRequest, whole: Mapping[int, WholeCall]) -> ApprovalRequest:
    """Return a request as people read it who want to see everything; decisions bind to the request as it is."""
    calls = tuple(_call(call, whole[call.index]) if call.index in whole else call for call in request.calls)
    update: dict[str, Any] = {"calls": calls}
    if request.program is not None and request.program.index in whole:
        update["program"] = _call(request.program, whole[request.program.index])
    if request.proposal is not None:
        update["proposal"] = _proposal(request.proposal, whole)
    return request.model_copy(update=update)


def all_shown(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with every character of them shown; a value nested too deep for lines is shown as JSON."""
    shown = shown_arguments(arguments, _ALL)
    if not shown.clipped:
        return shown.arguments
    as_text = {
        name: json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
        for name, value in arguments.items()
    }
    return shown_arguments(as_text, _ALL).arguments


def _hides(arguments: dict[str, Any]) -> bool:
    """Return whether what is shown is cut or kept apart; a string may also end with that character itself."""
    return bool(kept_bytes(arguments)) or CLIPPED in json.dumps(arguments, ensure_ascii=False)


def _call(call: RequestedCall, whole: WholeCall) -> RequestedCall:
    return call.model_copy(update={"arguments": _ordered(call.arguments, whole), "clipped": 0, "left_out": 0})


def _ordered(shown: dict[str, Any], whole: WholeCall) -> dict[str, Any]:
    """Return all arguments, those that were shown already in the order in which they were."""
    arguments = all_shown(whole.arguments)
    return {name: arguments[name] for name in shown if name in arguments} | arguments


def _proposal(proposal: Proposal, whole: Mapping[int, WholeCall]) -> Proposal:
    parts = {index: part.part for part in proposal.parts for index in part.steps}
    steps = {step.idx: step for step in proposal.steps}
    for index, call in whole.items():
        if index in steps:
            steps[index] = steps[index].model_copy(update={"arguments": _ordered(steps[index].arguments, call)})
            continue
        steps[index] = ProposedStep(
            idx=index,
            action=call.tool,
            arguments=all_shown(call.arguments),
            safety=call.safety,
            undoable=call.undoable,
            undo_how=call.undo_how,
            needs_approval=index in parts,
            part=parts.get(index),
        )
    left = max(0, proposal.more - (len(steps) - len(proposal.steps)))
    return proposal.model_copy(update={"steps": tuple(steps[index] for index in sorted(steps)), "more": left})
