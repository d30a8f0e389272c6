"""Show all of what a request is about, also what its message has no room for."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.layout import argument_lines
from backstay.approvals.proposal_words import more_words
from backstay.shown import clipped_words, one_line, shown_arguments
from gateways.slack.drawing.page import MODAL, MOST_MODAL_BLOCKS, BlockPage, section
from gateways.slack.place import ModalContext

CALLBACK = "backstay.more"
MOST_CALLS = 20
"""How many calls are shown; the run is asked for the arguments of each."""
_ALL = 10_000_000


def loading() -> View:
    """Return the modal that is there until the run has said everything."""
    return _view([section("Loading…")])


def form(request: ApprovalRequest, place: ModalContext, arguments: Mapping[int, dict[str, Any]]) -> View:
    """Return a modal with the arguments of the calls that are given, whole, and say what it leaves out."""
    page = BlockPage(characters=MODAL, most_blocks=MOST_MODAL_BLOCKS - 2)
    shown = [call for call in request.calls if call.index in arguments]
    page.code(line for call in shown for line in _lines(call.index, call.tool, arguments[call.index]))
    run, calls = one_line(place.key.workflow_id, 300), len(request.calls) - len(shown)
    page.end()
    page.fine(
        f"{clipped_words(page.hidden)} even here; see: backstay show {run}" if page.hidden else "",
        f"{calls} more calls not shown even here; see: backstay show {run}" if calls else "",
        f"{words} even here; see: backstay plan export {run}"
        if request.proposal and (words := more_words(request.proposal))
        else "",
    )
    return _view(page.blocks)


def _view(blocks: Sequence[Block]) -> View:
    return View(type="modal", title="Everything", close="Close", blocks=list(blocks), callback_id=CALLBACK)


def _lines(index: int, tool: str, arguments: dict[str, Any]) -> Iterator[str]:
    yield f"[{index}] {tool}"
    for name, value in shown_arguments(arguments, _ALL).arguments.items():
        yield from (f"    {line}" for line in argument_lines(name, value))
    yield f"    {len(json.dumps(arguments, ensure_ascii=False)):,} characters in all"
    yield ""
