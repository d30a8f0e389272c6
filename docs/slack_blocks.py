"""Draw Slack's blocks as a page, near enough to Slack's own client for a picture: no workspace is needed."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape, unescape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

from backstay.approvals.approval import ApprovalRequest
from gateways.slack.drawing.request import request_blocks
from gateways.slack.drawing.run import ThreadHead
from gateways.slack.forms import verdicts
from gateways.slack.place import ModalContext
from people.requests.key import RequestKey
from people.requests.posted import PostedRequest

HERE = Path(__file__).resolve().parent
CHANNEL = "approvals"


def page_of(workflow_id: str, request: ApprovalRequest) -> str:
    """Return a page with a run's thread, the request in it, and the form in which it is rejected."""
    head = ThreadHead(workflow_id=workflow_id, task=request.task, user_id=request.user_id, links=request.links)
    place = ModalContext(key=RequestKey.of(workflow_id, request), channel=CHANNEL)
    at = datetime.fromisoformat(request.created_at).astimezone(UTC).strftime("%H:%M")
    messages = [
        {"at": at, "thread": False, "blocks": _plain(head.blocks())},
        {
            "at": at,
            "thread": True,
            "blocks": _plain(request_blocks(PostedRequest(workflow_id=workflow_id, request=request))),
        },
    ]
    form: View = verdicts.reject_form(request, place)
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"entities": unescape, "markup": _markup}
    template = environment.get_template("slack_blocks.html.j2")
    return template.render(channel=CHANNEL, messages=messages, modal=form.to_dict())


def _plain(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    return [block.to_dict() for block in blocks]


def _markup(text: str) -> Markup:
    """Return the little of Slack's markup that our own words use: links, mentions, times and bold."""
    said = re.sub(r"<!date\^(\d+)\^[^|>]*\|([^>]*)>", lambda found: _time(int(found[1])), text)
    said = re.sub(r"<(https?://[^|>]*)\|([^>]*)>", lambda found: f"\0{escape(found[2])}\1", said)
    said = escape(unescape(said)).replace("\0", "<a>").replace("\1", "</a>")
    return Markup(re.sub(r"\*([^*]+)\*", r"<b>\1</b>", said))  # noqa: S704  # escaped above


def _time(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%b %-d at %H:%M")
