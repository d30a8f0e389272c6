"""Offer what people can enter as fields of HTML forms, and read what such a form was sent with."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from backstay.approvals.approval import RequestKind
from backstay.approvals.fields import FormField
from backstay.shown import one_line
from gateways.web.sent import Submission
from people.requests.editing import EditedArgument, NothingChanged, edit_of, edited_arguments
from people.requests.entered import Edit, Entry, EntryRefused, FormEntry, Typed, entry_name
from people.requests.form import DecisionForm


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

    @classmethod
    def of(cls, call: int, at: int, argument: EditedArgument) -> "EditedField":
        """Return the field of an argument of a call."""
        rows = min(max(argument.text.count("\n") + 1, 1), 20)
        shown = one_line(argument.name, 200)
        return cls(f"v.{call}.{at}", shown, argument.text, argument.as_json, rows, f"drop.{call}.{at}")


def edited_fields(call: int, arguments: Mapping[str, Any]) -> list[EditedField]:
    """Return a field for each argument of a call that is changed, which are given whole."""
    return [EditedField.of(call, at, argument) for at, argument in enumerate(edited_arguments(arguments))]


def field_name(form: DecisionForm, at: int, field: FormField) -> str:
    """Return the name of a field of an answer; names that a tool's server gave may hold anything."""
    return field.name if form.kind is RequestKind.BUDGET else f"x.{at}"


def entered_in(sent: Submission, form: DecisionForm, edits: tuple[Edit, ...] = ()) -> FormEntry:
    """Return what a person entered in the form of a request."""
    choice = "modify" if edits else sent.get("verdict")
    # The choice under "Remember it" belongs to the button that approves.
    remember = sent.get("remember") if choice == "approve" else ""
    return FormEntry(
        choice,
        sent.get("comment"),
        left_out=[call.index for call in form.calls if _left_out(sent, call.index)],
        no_processes=bool(sent.get("no_processes")),
        limits={limit.field: typed for limit in form.limits if (typed := sent.get(limit.name).strip())},
        remember=remember,
        remember_arguments=sent.get("remember_arguments") if remember or choice == "reject_never" else None,
        answer=sent.get("answer"),
        fields={each.path: _typed(sent, form, at, each) for at, each in enumerate(form.fields)},
        edits=edits,
    )


def _left_out(sent: Submission, call: int) -> bool:
    """Return whether the box of a call is not ticked; such a box sends nothing, so the form says that it was there."""
    return bool(sent.get(f"offered.{call}")) and not sent.get(f"take.{call}")


def edits_in(sent: Submission, calls: Mapping[int, dict[str, Any]]) -> tuple[Edit, ...]:
    """Return what a form changes of calls, whose arguments are given whole; nothing of a call that stays as it is.

    Raises EntryRefused for what cannot be read, and where nothing is changed.
    """
    edits: list[Edit] = []
    faults: dict[Entry, str] = {}
    for call, arguments in calls.items():
        try:
            edits.append(edit_in(sent, call, arguments))
        except NothingChanged:
            continue
        except EntryRefused as error:
            named = f"call {call}, " if len(calls) > 1 else ""
            faults |= {f"{named}{entry_name(entry)}": why for entry, why in error.entries.items()}
    if faults:
        raise EntryRefused(faults)
    if not edits:
        raise NothingChanged
    return tuple(edits)


def edit_in(sent: Submission, call: int, arguments: Mapping[str, Any]) -> Edit:
    """Return what the form of a call changes of its arguments; raises EntryRefused for what cannot be read."""
    fields = dict(zip(arguments, edited_fields(call, arguments), strict=True))
    typed = {name: sent.get(field.name) for name, field in fields.items() if sent.all(field.name)}
    without = [name for name, field in fields.items() if sent.get(field.drop)]
    return edit_of(call, arguments, typed, without=without, more=sent.get(f"more.{call}"))


def _typed(sent: Submission, form: DecisionForm, at: int, field: FormField) -> Typed:
    name = field_name(form, at, field)
    if field.kind in {"choice", "choices"}:
        positions = {str(position): position for position in range(len(field.choices))}
        return tuple(positions[chosen] for chosen in sent.all(name) if chosen in positions)
    return sent.get(name)
