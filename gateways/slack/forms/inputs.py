"""Inputs of modals: how each is offered, and what a person has filled in."""

from collections.abc import Mapping, Sequence
from typing import Any

from slack_sdk.models.blocks import (
    Block,
    InputBlock,
    Option,
    PlainTextInputElement,
    PlainTextObject,
    StaticMultiSelectElement,
    StaticSelectElement,
)
from slack_sdk.models.views import View

from backstay.errors import DecisionRefused
from gateways.slack.drawing.page import MOST_MODAL_BLOCKS, fitting, plain
from gateways.slack.place import ModalContext
from people.requests.entered import Entry, entry_name

LONGEST = 3000
"""What Slack lets an input hold."""
MOST_OPTIONS = 100
_OPTION = 75
_LABEL = 2000
_HINT = 1500
_METADATA = 3000


class FormInput:
    """Hold what a person filled in, and what is wrong with it."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        """Take the values of a view, by block and action."""
        self._state = state
        self.errors: dict[str, str] = {}
        """What is to be said at an input, by its block."""
        self._blocks: dict[Entry, str] = {}

    def stands_for(self, entry: Entry, block: str) -> None:
        """Say at which input an entry was made, where the input is not called like it."""
        self._blocks[entry] = block

    def text(self, block: str) -> str:
        """Return what was typed, or nothing."""
        return str(self._element(block).get("value") or "")

    def chosen(self, block: str) -> str:
        """Return the value that was chosen, or nothing."""
        return str((self._element(block).get("selected_option") or {}).get("value") or "")

    def several(self, block: str) -> list[str]:
        """Return the values that were chosen."""
        return [str(option["value"]) for option in self._element(block).get("selected_options") or ()]

    def _element(self, block: str) -> Mapping[str, Any]:
        return next(iter((self._state.get(block) or {}).values()), {})

    def refuse(self, entries: Mapping[Entry, str], inputs: Sequence[str]) -> None:
        """Say what is wrong with entries, each at its own input; at the first one where there is none for it."""
        for entry, why in entries.items():
            block = self._blocks.get(entry, entry)
            own = isinstance(block, str) and block in inputs
            at, said = (str(block), why) if own else (next(iter(inputs), ""), f"{entry_name(entry)}: {why}")
            self.errors[at] = "; ".join(filter(None, [self.errors.get(at), said]))[:_HINT]


def modal(title: str, submit: str | None, blocks: Sequence[Block], place: ModalContext, callback: str) -> View:
    """Return a modal; raises DecisionRefused for one that Slack does not take."""
    if len(blocks) > MOST_MODAL_BLOCKS or len(place.metadata) > _METADATA:
        raise DecisionRefused("this is too long for a form in Slack; decide it on the page or in a terminal")
    return View(
        type="modal",
        title=PlainTextObject(text=title),
        submit=None if submit is None else PlainTextObject(text=submit),
        close=PlainTextObject(text="Close" if submit is None else "Cancel"),
        blocks=list(blocks),
        private_metadata=place.metadata,
        callback_id=callback,
    )


def text_input(
    block: str,
    label: str,
    *,
    optional: bool = False,
    value: str = "",
    hint: str = "",
    multiline: bool = False,
    most: int | None = None,
) -> InputBlock:
    """Return an input for text; others' words are there literally."""
    element = PlainTextInputElement(
        action_id=block, multiline=multiline, initial_value=value or None, max_length=most and min(most, LONGEST)
    )
    return _input(block, label, element, optional=optional, hint=hint)


def choice_input(
    block: str,
    label: str,
    options: Sequence[tuple[str, str]],
    *,
    optional: bool = False,
    initial: str | None = None,
    hint: str = "",
) -> InputBlock:
    """Return an input that offers one of several values, each with what people read."""
    made = _options(options)
    first = next((option for option in made if option.value == initial), None)
    element = StaticSelectElement(action_id=block, options=made, initial_option=first)
    return _input(block, label, element, optional=optional, hint=hint)


def several_input(
    block: str,
    label: str,
    options: Sequence[tuple[str, str]],
    *,
    optional: bool = True,
    initial: Sequence[str] = (),
    hint: str = "",
) -> InputBlock:
    """Return an input that offers any of several values."""
    made = _options(options)
    first = [option for option in made if option.value in initial]
    element = StaticMultiSelectElement(action_id=block, options=made, initial_options=first or None)
    return _input(block, label, element, optional=optional, hint=hint)


def _options(options: Sequence[tuple[str, str]]) -> list[Option]:
    return [Option(value=value, text=plain(text, _OPTION)) for value, text in options[:MOST_OPTIONS]]


def _input(block: str, label: str, element: Any, *, optional: bool, hint: str) -> InputBlock:
    said = PlainTextObject(text=fitting(hint, _HINT)[0], emoji=False) if hint else None
    return InputBlock(block_id=block, label=plain(label, _LABEL), element=element, optional=optional, hint=said)
