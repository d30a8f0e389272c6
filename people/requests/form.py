"""The entries that a person can make about a request, and the one reading of them as the decision that is sent."""

import math
from typing import Any, NamedTuple

from backstay.approvals.admission import DecisionInvalid
from backstay.approvals.approval import ApprovalRequest, RequestedCall, RequestKind, Verdict
from backstay.approvals.fields import FormField, answer_of, fields_of
from backstay.approvals.proposal import Proposal
from backstay.approvals.proposal_words import NarrowedLimit, narrowed_limits, process_words
from backstay.budgets.budget import TopUp
from backstay.canonical import digest_of
from backstay.policies.learning.alike import Alike, alike
from backstay.tools.tool import Safety
from people.requests.entered import NOTHING, Edit, Entry, EntryRefused, FixedValue, FormEntry, Typed

_CHOICES: dict[str, dict[str, Any]] = {
    **{verdict.value: {"verdict": verdict.value} for verdict in Verdict},
    "dry_run": {"verdict": "approve", "option": "dry_run_only"},
    "reject_stop": {"verdict": "reject", "stop": True},
    "reject_never": {"verdict": "reject", "remember": "never"},
}
"""What a person can choose, and what the choice says by itself."""


class DecisionForm(NamedTuple):
    """Hold what a person can enter about a request; of one that nobody knows, the run says what became of it."""

    kind: RequestKind | None
    calls: tuple[RequestedCall, ...]
    proposal: Proposal | None
    choices: tuple[str, ...]
    """What can be chosen; `choose` opens what leaves calls out, or narrows a plan."""
    fields: tuple[FormField, ...]
    """What the answer consists of; nothing where it is free."""
    limits: tuple[NarrowedLimit, ...]
    """Of what the steps of a plan can be given less."""
    processes: str
    """Which steps of a plan start processes, where it can go without them."""

    @property
    def alike(self) -> Alike | str:
        """Return which calls are like the one that is asked about, as the person sees it; or why none are."""
        if len(self.calls) != 1 or self.kind is not RequestKind.CALL:
            return "several calls are asked about, or none"
        (call,) = self.calls
        if digest_of(call.arguments) != call.args_digest:
            return "its arguments are not shown as they are"
        if call.safety is Safety.READ_ONLY:
            return "it only reads and reaches out"
        return alike(call.arguments, call.sources)

    @classmethod
    def of(cls, request: ApprovalRequest | None) -> "DecisionForm":
        """Return the form of a request; None where it does not wait, or cannot be known."""
        if request is None:
            return cls(None, (), None, (), (), (), "")
        proposal = request.proposal
        return cls(
            kind=request.kind,
            calls=request.calls,
            proposal=proposal,
            choices=tuple(_choices(request)),
            fields=tuple(_fields(request)),
            limits=() if proposal is None else tuple(narrowed_limits(proposal)),
            processes="" if proposal is None else process_words(proposal),
        )

    def own_calls(self, by: str) -> tuple[RequestedCall, ...]:
        """Return the calls that a person decides: of a plan those that still wait, in parts of their own if any are."""
        if self.proposal is None:
            return self.calls
        waiting = [part for part in self.proposal.parts if not part.complete]
        own = [part for part in waiting if by in part.approvers or not part.approvers] or waiting
        steps = {index for part in own for index in part.steps}
        return tuple(call for call in self.calls if call.index in steps)


def decision_of(form: DecisionForm, entered: FormEntry) -> dict[str, Any]:
    """Return what a person entered as fields of an Approval, without who they are.

    Raises EntryRefused, which says of each entry what is wrong, or DecisionInvalid.
    """
    if not entered.choice:
        raise DecisionInvalid("verdict: none was chosen; press one of the buttons")
    said = dict(_CHOICES.get(entered.choice, {"verdict": entered.choice}))
    if comment := entered.comment.strip():
        said["comment"] = comment
    memory: dict[str, Any] = {"remember": entered.remember, "remember_arguments": entered.remember_arguments}
    if entered.remember_arguments == "alike":
        found = "only approvals are remembered so" if entered.remember == "never" else form.alike
        if isinstance(found, str):
            raise DecisionInvalid(f"remember_arguments: no calls are like this one: {found}; remember these")
        memory["remember_like"] = found.like
    said |= {name: value for name, value in memory.items() if value}
    match entered.choice:
        case "approve":
            return said | _approval(form, entered)
        case "answer":
            return said | {"answer": _answer(form, entered)}
        case "modify" if entered.edits:
            return said | _changes(form, entered)
        case _:
            return said


def _choices(request: ApprovalRequest) -> list[str]:
    options, proposal = request.options, request.proposal
    found = [option for option in options if option in _CHOICES]
    if "reject" in options and request.calls:
        found.append("reject_stop")
    if "approve" in options and (len(request.calls) > 1 or proposal is not None):
        found.append("choose")
    if "approve" in options and proposal is not None and "dry_run_only" in proposal.approve_options:
        found.append("dry_run")
    if "reject" in options and "never" in request.may_remember:
        found.append("reject_never")
    return found


def _fields(request: ApprovalRequest) -> list[FormField]:
    if request.kind is RequestKind.BUDGET:
        limits = {name: about for name, about in TopUp.model_json_schema()["properties"].items() if name != "quotas"}
        return fields_of({"type": "object", "properties": limits})
    return [] if request.answer_schema is None else fields_of(request.answer_schema)


def _approval(form: DecisionForm, entered: FormEntry) -> dict[str, Any]:
    """Return what belongs to an approval: which calls are left out, and how a plan goes."""
    faults: dict[Entry, str] = {}
    calls = {**entered.calls, **{index: {"verdict": "reject"} for index in entered.left_out}}
    # Of a plan the steps remain about which nobody is asked; where there are none, it ends, and the model is told so.
    calls_only = form.proposal is None and bool(form.calls)
    if calls_only and {call.index for call in form.calls} <= {*entered.left_out}:
        faults["calls"] = "nothing would be left; reject the request instead"
    toggles = _toggles(form, entered, faults)
    if faults:
        raise EntryRefused(faults)
    said: dict[str, Any] = {"calls": calls, "toggles": toggles, "option": entered.option, "plan_id": entered.plan_id}
    if any(isinstance(call, dict) and call.get("verdict") == "modify" for call in calls.values()):
        said["verdict"] = "modify"
    elif form.proposal is not None:
        said["option"] = entered.option or ("approve_per_step" if calls else "approve_all")
        said["plan_id"] = entered.plan_id or form.proposal.plan_id
    return {name: value for name, value in said.items() if value}


def _toggles(form: DecisionForm, entered: FormEntry, faults: dict[Entry, str]) -> dict[str, Any]:
    """Return what a plan may do less; the run says itself what cannot be narrowed so."""
    known = {limit.field: limit for limit in form.limits}
    limits: dict[str, float] = {}
    for field, typed in entered.limits.items():
        limit = known.get(field)
        whole = limit is not None and limit.whole
        try:
            limits[field] = int(_plain(typed)) if whole else _finite(_plain(typed))
        except (ValueError, OverflowError):
            most = "" if limit is None else f", at most {limit.most:g}"
            faults[f"toggles.limits.{field}"] = f"type a {'whole ' if whole else ''}number{most}"
    toggles: dict[str, Any] = {"external_processes": False} if entered.no_processes else {}
    return toggles | ({"limits": limits} if limits else {})


def _plain(typed: str | float) -> str | float:
    if isinstance(typed, str) and "_" in typed:
        # Python would leave it out, and read 1_5 as 15.
        raise ValueError("not plain")
    return typed


def _finite(typed: str | float) -> float:
    if math.isfinite(number := float(typed)):
        return number
    raise ValueError("not finite")


def _answer(form: DecisionForm, entered: FormEntry) -> Any:
    if not form.fields or (entered.answer is not NOTHING and not entered.fields):
        return _whole_answer(form, entered.answer)
    values: dict[tuple[str, ...], Any] = {}
    faults: dict[Entry, str] = {}
    for field in form.fields:
        try:
            given = _value(field, entered.fields.get(field.path, ""))
        except ValueError as error:
            faults[field.path] = str(error)
            continue
        if given is not NOTHING:
            values[field.path] = given
    if form.kind is RequestKind.BUDGET and not values and not faults:
        faults["answer"] = "nothing is added; say how much to add to at least one limit"
    if faults:
        raise EntryRefused(faults)
    return answer_of(values)


def _whole_answer(form: DecisionForm, answer: Any) -> Any:
    """Return an answer that was not entered in fields; a string is sent as it is where a schema says what fits."""
    if isinstance(answer, str) and not form.fields:
        answer = answer.strip() or NOTHING
    if answer is NOTHING or answer is None:
        raise EntryRefused({"answer": "it is empty; write something, or reject the question"})
    return answer


def _value(field: FormField, typed: Typed) -> Any:
    """Return the value of what was entered in a field, NOTHING where it is left out; raises ValueError."""
    if field.kind == "nothing":
        return None
    given = _chosen(field, typed) if isinstance(typed, tuple) else _read(field, typed)
    if given is NOTHING and field.required:
        raise ValueError("must be given")
    return given


def _chosen(field: FormField, positions: tuple[int, ...]) -> Any:
    chosen = [field.choices[at].value for at in positions if at in range(len(field.choices))]
    if field.kind == "choices":
        # A person who unticks all that was chosen beforehand wants none, and no default of the server.
        return chosen if chosen or field.required or field.preselected else NOTHING
    return next(iter(chosen), NOTHING)


def _read(field: FormField, typed: str | FixedValue) -> Any:
    if isinstance(typed, FixedValue):
        return typed.value
    if field.default is not None and typed.replace("\r\n", "\n") == field.default_text.replace("\r\n", "\n"):
        return field.default
    if field.kind == "text":
        # A field that is left empty is left out; two quotes stand for an empty text.
        return "" if typed == '""' else typed or NOTHING
    return field.parse(typed.strip()) if typed.strip() else NOTHING


def _changes(form: DecisionForm, entered: FormEntry) -> dict[str, Any]:
    """Return the changes of calls; the person who makes them is shown all calls again with them, before any is made.

    Calls that are left out are rejected at once, and are not shown again. A changed plan is proposed anew as a whole.
    """
    changes = {edit.call: _change(edit) for edit in entered.edits}
    if form.proposal is not None:
        return {"calls": changes}
    left_out = {index: {"verdict": "reject"} for index in entered.left_out if index not in changes}
    return {"calls": dict(sorted((left_out | changes).items())), "ask_again": True}


def _change(edit: Edit) -> dict[str, Any]:
    change: dict[str, Any] = {"verdict": "modify", "arguments": edit.arguments}
    return change | ({"without": list(edit.without)} if edit.without else {})
