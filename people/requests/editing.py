"""Let people change the arguments of a call as texts, and read what they changed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from backstay.approvals.approval import ApprovalRequest, RequestedCall
from backstay.approvals.fields import typed_json
from backstay.canonical import differs
from backstay.shown import is_visible
from people.requests.entered import Edit, Entry, EntryRefused

MORE = "further arguments"
"""The name of the entry that holds arguments which the call did not have."""


class EditedArgument(NamedTuple):
    """Hold one argument as it is edited: a string in which a person sees every character, or else JSON."""

    name: str
    value: Any
    text: str
    as_json: bool

    def read(self, typed: str) -> Any:
        """Return the value of what is in the field now; raises ValueError for what cannot be read."""
        typed = typed.replace("\r\n", "\n")
        if typed == self.text.replace("\r\n", "\n"):
            # A field makes all line breaks the same, so only this tells a string that nobody touched.
            return self.value
        if self.as_json:
            return typed_json(typed)
        # A field has every line break as one character; text that came with two goes back so.
        return typed.replace("\n", "\r\n") if "\r\n" in str(self.value) else typed


def edited_arguments(arguments: Mapping[str, Any], most: int | None = None) -> Iterator[EditedArgument]:
    """Yield each argument of a call, which are given whole, as it is edited.

    JSON of more than `most` characters is written without indents, which may be most of it.
    """
    for name, value in arguments.items():
        plain = isinstance(value, str) and _is_visible(value)
        text = value if plain else json.dumps(value, indent=2, ensure_ascii=not _is_visible(value))
        if not plain and most is not None and len(text) > most:
            text = json.dumps(value, ensure_ascii=not _is_visible(value))
        yield EditedArgument(name, value, text, as_json=not plain)


def change_words(request: ApprovalRequest, call: RequestedCall) -> str:
    """Return what becomes of a change of a call, for whoever is about to make one."""
    what = "all calls" if len(request.calls) > 1 else "the call"
    again = f"you are shown {what} again with the change, and decide then"
    then = "a changed plan is proposed again" if request.proposal is not None else again
    return f"{call.tool}: what you change is checked and ruled on again. Nothing is sent yet: {then}."


class NothingChanged(EntryRefused):
    """A call was to be changed, and what was entered is what it says already."""

    def __init__(self) -> None:
        """Say what to do instead."""
        super().__init__({"arguments": "nothing was changed; approve it as it is, or leave it"})


def edit_of(
    call: int, arguments: Mapping[str, Any], typed: Mapping[str, str], *, without: Sequence[str] = (), more: str = ""
) -> Edit:
    """Return what a person changed of a call in fields; raises EntryRefused.

    `typed`: what is in the fields that were offered; `more`: a JSON object of further arguments.
    """
    after: dict[str, Any] = {}
    faults: dict[Entry, str] = {}
    for argument in edited_arguments(arguments):
        if argument.name not in typed or argument.name in without:
            continue
        try:
            after[argument.name] = argument.read(typed[argument.name])
        except ValueError as error:
            faults[argument.name] = str(error)
    if more.strip():
        try:
            after |= _object(more)
        except ValueError as error:
            faults[MORE] = str(error)
    if faults:
        raise EntryRefused(faults)
    return edit_between(call, arguments, after, without)


def edit_in_json(call: int, arguments: Mapping[str, Any], written: str, *, whole: bool) -> Edit:
    """Return what a person changed of a call in a JSON object: of all its arguments, or of new values only.

    Raises EntryRefused.
    """
    try:
        after = _object(written)
    except ValueError as error:
        raise EntryRefused({"arguments": f"{error}; nothing was changed"}) from None
    gone = tuple(name for name in arguments if name not in after) if whole else ()
    return edit_between(call, arguments, after, gone)


def edit_between(call: int, before: Mapping[str, Any], after: dict[str, Any], without: Sequence[str]) -> Edit:
    """Return what differs between the arguments of a call and new values; raises NothingChanged where nothing does."""
    changed = {name: value for name, value in after.items() if name not in before or differs(before[name], value)}
    if not changed and not without:
        raise NothingChanged
    return Edit(call, changed, tuple(without))


def _object(typed: str) -> dict[str, Any]:
    match typed_json(typed):
        case dict() as given:
            return given
        case _:
            raise ValueError('expected a JSON object, such as {"name": "value"}')


def _is_visible(value: Any) -> bool:
    return is_visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
