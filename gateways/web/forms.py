"""Read the forms in which people decide, as the decision that the run is sent."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.approvals.deciding import DecisionInvalid
from backstay.approvals.fields import FormField, answer_of, fields_of
from backstay.approvals.proposal import Proposal
from backstay.approvals.proposal_words import narrowed_limits
from backstay.budgets.budget import TopUp
from backstay.shown import one_line
from gateways.web.sent import Sent

LIMITS = tuple(name for name in TopUp.model_fields if name != "quotas")
"""What people can add to a budget, each a field of the form."""
_WHOLE = frozenset(LIMITS) - {"max_llm_cost_usd", "max_wall_seconds"}
_LINES = 3
"""From so many lines on, a text is given a larger field."""


class EditedField(NamedTuple):
    """Hold the field in which one argument is changed."""

    name: str
    """The field's own name; that of the argument may hold anything."""
    argument: str
    text: str
    as_json: bool
    rows: int
    drop: str
    """The name of the box that leaves the argument out."""


def decision_of(sent: Sent, request: ApprovalRequest) -> dict[str, Any]:
    """Return what a form says, as fields of an Approval; raises DecisionInvalid naming the field and the fix."""
    verdict = sent.get("verdict")
    said: dict[str, Any] = {"comment": sent.get("comment").strip()}
    match verdict:
        case "reject_stop":
            said |= {"verdict": "reject", "stop": True}
        case "reject_never":
            said |= {"verdict": "reject", "remember": "never", "remember_arguments": _remembered(sent)}
        case "answer":
            said |= {"verdict": "answer", "answer": _answer(sent, request)}
        case "dry_run":
            said |= {"verdict": "approve", "option": "dry_run_only"}
        case "approve":
            said |= {"verdict": "approve", **_approval(sent, request)}
        case "":
            raise DecisionInvalid("verdict: none was chosen; press one of the buttons")
        case _:
            said["verdict"] = verdict
    return {name: value for name, value in said.items() if value != ""}


def _remembered(sent: Sent) -> str:
    return sent.get("remember_arguments") or "these"


def _approval(sent: Sent, request: ApprovalRequest) -> dict[str, Any]:
    """Return what belongs to an approval: which calls are left out, how a plan goes, and what is remembered."""
    said: dict[str, Any] = {}
    if remember := sent.get("remember"):
        said |= {"remember": remember, "remember_arguments": _remembered(sent)}
    left_out = {
        call.index: {"verdict": "reject"} for call in request.calls if sent.get(f"call.{call.index}") == "reject"
    }
    if left_out and len(left_out) == len(request.calls):
        raise DecisionInvalid("calls: all of them are left out; reject the request instead")
    if request.proposal is None:
        return said | ({"calls": left_out} if left_out else {})
    option = sent.get("option") or ("approve_per_step" if left_out else "approve_all")
    toggles = _toggles(sent, request.proposal)
    return said | {
        "option": option,
        "plan_id": request.proposal.plan_id,
        **({"calls": left_out} if left_out else {}),
        **({"toggles": toggles} if toggles else {}),
    }


def _toggles(sent: Sent, proposal: Proposal) -> dict[str, Any]:
    toggles: dict[str, Any] = {"external_processes": False} if sent.get("no_processes") else {}
    limits = {
        limit.field: _number(typed, limit.name, whole=limit.whole)
        for limit in narrowed_limits(proposal)
        if (typed := sent.get(limit.name).strip())
    }
    return toggles | ({"limits": limits} if limits else {})


def _number(text: str, name: str, *, whole: bool = False) -> float:
    try:
        return int(text) if whole else float(text)
    except ValueError:
        raise DecisionInvalid(
            f"{name}: {one_line(text, 40)} is no {'whole ' if whole else ''}number; write 5"
        ) from None


def _answer(sent: Sent, request: ApprovalRequest) -> Any:
    if request.kind is RequestKind.BUDGET:
        added = {name: _number(text, name, whole=name in _WHOLE) for name in LIMITS if (text := sent.get(name).strip())}
        if not added:
            raise DecisionInvalid("answer: nothing is added; write a number beside at least one limit")
        return added
    if request.answer_schema is None:
        answer = sent.get("answer").strip()
        if not answer:
            raise DecisionInvalid("answer: it is empty; write something, or reject the question")
        return answer
    values: dict[tuple[str, ...], Any] = {}
    for at, field in enumerate(fields_of(request.answer_schema)):
        if field.kind == "nothing":
            values[field.path] = None
        elif (given := _given(sent, at, field)) is not None:
            values[field.path] = given
    return answer_of(values)


def _given(sent: Sent, at: int, field: FormField) -> Any:
    """Return the value of one field of a form that a tool's server has written; None where it is left out."""
    chosen = sent.all(f"x.{at}")
    if field.kind in {"choice", "choices"}:
        known = {str(number): choice.value for number, choice in enumerate(field.choices)}
        values = [known[number] for number in chosen if number in known]
        given = values if field.kind == "choices" else next(iter(values), None)
    else:
        typed = sent.get(f"x.{at}")
        # What a person leaves empty is left out; two quotes are how an empty text is said.
        given = None if not typed else _parsed(field, typed)
    if given is None and field.required:
        raise DecisionInvalid(f"{one_line(field.name, 80)}: must be given")
    return None if given == [] and not field.required else given


def _parsed(field: FormField, typed: str) -> Any:
    if field.kind == "text" and typed != '""':
        return typed
    try:
        return field.parse(typed.strip())
    except ValueError as error:
        raise DecisionInvalid(f"{one_line(field.name, 80)}: {one_line(str(error), 300)}") from None


def edited_fields(index: int, arguments: dict[str, Any]) -> Iterator[EditedField]:
    """Yield a field for each argument of a call that is changed, which are given whole."""
    for at, (name, value) in enumerate(arguments.items()):
        plain = _is_plain(value)
        text = value if plain else json.dumps(value, indent=2, ensure_ascii=not _is_visible(value))
        yield EditedField(
            name=f"v.{index}.{at}",
            argument=one_line(name, 200),
            text=text,
            as_json=not plain,
            rows=min(max(text.count("\n") + 1, 1), 20),
            drop=f"drop.{index}.{at}",
        )


def edits_of(sent: Sent, index: int, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments of a call that a form changes, and those that it leaves out.

    Raises DecisionInvalid for what cannot be read.
    """
    changed: dict[str, Any] = {}
    gone: list[str] = []
    for field, (name, value) in zip(edited_fields(index, arguments), arguments.items(), strict=True):
        if sent.get(field.drop):
            gone.append(name)
            continue
        if not sent.all(field.name):
            continue
        typed = sent.get(field.name)
        if typed == field.text.replace("\r\n", "\n"):
            # A browser makes all line breaks the same, so only this tells a text that nobody touched.
            continue
        if field.as_json:
            given = _json(typed, field.argument)
        else:
            # A browser writes every line break as two signs; what came with two goes back so.
            given = typed.replace("\n", "\r\n") if "\r\n" in str(value) else typed
        if given != value or type(given) is not type(value):
            changed[name] = given
    if added := sent.get(f"more.{index}").strip():
        more = _json(added, "further arguments")
        if not isinstance(more, dict):
            raise DecisionInvalid('further arguments: expected an object, such as {"name": "value"}')
        changed |= more
    if not changed and not gone:
        raise DecisionInvalid("arguments: nothing was changed; approve the call as it is")
    return changed, gone


def _is_plain(value: Any) -> bool:
    """Return whether a value is a text in which a person sees every sign."""
    return isinstance(value, str) and _is_visible(value)


def _is_visible(value: Any) -> bool:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return all(one_line(part, 2 * len(part) + 1) == part for part in text.replace("\r\n", "\n").split("\n"))


def _json(typed: str, name: str) -> Any:
    try:
        return json.loads(typed)
    except (ValueError, RecursionError):
        raise DecisionInvalid(f"{name}: invalid JSON; texts stand in quotes") from None
