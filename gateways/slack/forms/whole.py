"""Show all of what a request is about, also what its message has no room for."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from slack_sdk.models.views import View

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.layout import argument_lines
from backstay.shown import clipped_words, one_line, shown_arguments
from gateways.slack.aim import Place
from gateways.slack.drawing.page import MODAL, MOST_MODAL_BLOCKS, Page

CALLBACK = "backstay.more"
_ALL = 10_000_000


def form(request: ApprovalRequest, place: Place, arguments: Mapping[int, dict[str, Any]]) -> View:
    """Return a modal with the arguments of every call, whole."""
    page = Page(characters=MODAL, most_blocks=MOST_MODAL_BLOCKS - 2)
    page.code(line for call in request.calls for line in _lines(call.index, call.tool, arguments.get(call.index)))
    if page.hidden:
        page.fine(f"{clipped_words(page.hidden)} even here; see: backstay show {one_line(place.aim.w, 300)}")
    return View(
        type="modal",
        title="Everything",
        close="Close",
        blocks=page.blocks,
        private_metadata=place.metadata,
        callback_id=CALLBACK,
    )


def _lines(index: int, tool: str, arguments: dict[str, Any] | None) -> Iterator[str]:
    yield f"[{index}] {tool}"
    if arguments is None:
        yield "    the run does not say"
        return
    for name, value in shown_arguments(arguments, _ALL).arguments.items():
        yield from (f"    {line}" for line in argument_lines(name, value))
    yield f"    {len(json.dumps(arguments, ensure_ascii=False)):,} characters in all"
    yield ""
