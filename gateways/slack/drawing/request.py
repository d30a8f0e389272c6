"""Draw a request: its paragraphs as blocks, and the buttons that decide it."""

from datetime import datetime

from slack_sdk.models.blocks import ActionsBlock, Block, ButtonElement, PlainTextObject

from backstay.approvals.approval import ApprovalRequest
from gateways.slack.drawing.page import BlockPage, escaped
from gateways.slack.place import MOST_VALUE
from people.requests.key import RequestKey
from people.requests.posted import PostedRequest, left_out, offered_choices, paragraphs

APPROVE, EDIT, REJECT, ANSWER, ALWAYS = (
    f"backstay.{name}" for name in ("approve", "edit", "reject", "answer", "always")
)
CHOOSE, DRY_RUN, MORE = (f"backstay.{name}" for name in ("choose", "dry_run", "more"))
HAPPENED, DID_NOT_HAPPEN, RETRY = (f"backstay.{name}" for name in ("happened", "did_not_happen", "retry"))
ACTIONS = {
    "approve": APPROVE,
    "choose": CHOOSE,
    "dry_run": DRY_RUN,
    "answer": ANSWER,
    "happened": HAPPENED,
    "did_not_happen": DID_NOT_HAPPEN,
    "retry": RETRY,
    "modify": EDIT,
    "reject": REJECT,
    "remember": ALWAYS,
}
"""The button of each choice."""


def request_blocks(posted: PostedRequest) -> list[Block]:
    """Return the message of a request."""
    page = _drawn(posted)
    page.ours(_links(posted))
    if posted.is_open:
        page.ours(_link_to_approve(posted.request, page.hidden))
        page.blocks.extend(_buttons(posted, page.hidden))
    return page.blocks


def left_out_of(posted: PostedRequest) -> str:
    """Return what the message of a request leaves out; empty when it shows everything."""
    return left_out(posted.request, _drawn(posted).hidden)


def _drawn(posted: PostedRequest) -> BlockPage:
    """Return all of a message but its links and buttons."""
    page = BlockPage()
    for kind, lines in paragraphs(posted, expiry=False):
        match kind:
            case "heading":
                page.head(*lines)
            case "text":
                page.say("\n".join(lines))
            case "note":
                page.fine(*lines)
            case "code":
                page.code(lines)
            case "end":
                page.end()
                page.fine(page.unseen, *lines)
    return page


def _links(posted: PostedRequest) -> str:
    """Return the links of a request, and when it expires in the time of who reads it."""
    request = posted.request
    links = {"Sign in": request.sign_in, "The request": request.links.page, "The run in Temporal": request.links.web_ui}
    said = [f"<{address}|{name}>" for name, address in links.items() if address and _is_plain(address)]
    if posted.decision is not None:
        said.insert(0, "verified" if posted.decision.verified else "unverified")
    if request.expires_at and posted.state == "open":
        at = int(datetime.fromisoformat(request.expires_at).timestamp())
        when = f"<!date^{at}^{{date_short_pretty}} {{time}}|{request.expires_at}>"
        said.insert(0, f"Expires {when}, then: {request.then}")
    return "  ·  ".join(said)


def _is_plain(address: str) -> bool:
    return not set(address) & set("<>| \n")


def _buttons(posted: PostedRequest, hidden: int) -> list[Block]:
    """Return what decides a request, as its form allows."""
    value = RequestKey.of(posted.workflow_id, posted.request).value
    if len(value) > MOST_VALUE:
        return []
    buttons = [(ACTIONS[each.name], each.title, each.style) for each in offered_choices(posted, hidden)]
    if posted.request.calls:
        buttons.append((MORE, "Show all", None))
    return [ActionsBlock(elements=[_button(*each, value=value) for each in buttons])] if buttons else []


def _link_to_approve(request: ApprovalRequest, hidden: int) -> str:
    """Say where a request is approved of which the message does not hold everything; empty for any other."""
    missing, page = left_out(request, hidden), request.links.page
    if not missing or "approve" not in request.options:
        return ""
    where = "look at it and approve it at a terminal, with backstay attach"
    if page and _is_plain(page):
        where = f"<{page}|look at all of it and approve it on the page>"
    return f"Not all of it is shown here ({escaped(missing)}); {where}."


def _button(action: str, name: str, style: str | None, *, value: str) -> ButtonElement:
    return ButtonElement(text=PlainTextObject(text=name), action_id=action, value=value, style=style)
