"""How requests look as blocks: within Slack's limits, and with nothing in them that Slack would obey."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slack_sdk.models.blocks import Block

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.notice import DecisionNotice
from backstay.canonical import digest_of
from backstay.task.event import Event
from gateways.slack.drawing.page import BlockPage, escaped, fitting
from gateways.slack.drawing.request import request_blocks
from gateways.slack.drawing.run import ThreadHead, step_lines, steps_blocks
from gateways.slack.forms.verdicts import remember_form
from gateways.slack.place import ModalContext
from people.requests.key import RequestKey
from people.requests.posted import PostedRequest
from tests.requirements import promise
from tests.slack_blocks import faults_of, text_of

HOSTILE = "<!channel> <@U1> <https://evil.example|here> *bold* _it_ `code` ```\n*out* & :bomb: https://evil.example"


def request(arguments=None, calls=1, **fields):
    made = [
        {
            "index": index,
            "tool": "mail.send_email",
            "arguments": arguments if arguments is not None else {"to": "a@x.example", "body": HOSTILE},
            "safety": "write_safe",
            "undoable": True,
            "undo_how": f"recall {HOSTILE}",
            "diff": f"+ {HOSTILE}",
            "args_digest": "d" * 64,
        }
        for index in range(calls)
    ]
    values = {
        "id": "r1",
        "kind": "call" if calls == 1 else "batch",
        "question": f"May I? {HOSTILE}",
        "task": HOSTILE,
        "reason": HOSTILE,
        "rule": HOSTILE,
        "user_id": HOSTILE,
        "options": ("approve", "modify", "reject"),
        "may_remember": ("run", "always", "never"),
        "run_id": "f" * 36,
        "digest": "d" * 64,
        "links": {"page": "https://approve.example/requests/w/r1"},
        "expires_at": "2026-11-25T12:00:00+00:00",
        **fields,
    }
    return ApprovalRequest.model_validate({**values, "calls": made})


def drawn(shown):
    return [block.to_dict() if isinstance(block, Block) else block for block in request_blocks(shown)]


@promise("slack:drawing")
def test_text_of_others_makes_no_mention_no_link_no_broadcast_and_no_format():
    decision = DecisionNotice(verdict="reject", by=HOSTILE, comment=HOSTILE)
    for shown in (
        PostedRequest(workflow_id=HOSTILE, request=request()),
        PostedRequest(workflow_id="w", request=request(), state="decided", decision=decision),
    ):
        blocks = drawn(shown)
        assert faults_of(blocks) == []
        said = json.dumps([texts(block) for block in blocks])
        for active in ("<!channel>", "<@U1>", "<https://evil.example"):
            assert active not in said
            assert active not in escaped(shown.headline)
        for block in blocks:
            for text in texts(block):
                if text["type"] == "mrkdwn" and "evil.example" in text["text"]:
                    # Text of others stands in Slack's markup only as code, which it cannot leave.
                    assert text["text"].startswith("```\n")
                    assert text["text"].endswith("\n```")
                    assert text["text"].count("```") == 2
                    assert text["verbatim"] is True
                elif text["type"] == "plain_text" and "evil" in text["text"]:
                    assert text["emoji"] is False


def texts(block):
    found = []

    def walk(node):
        match node:
            case {"type": "plain_text" | "mrkdwn"}:
                found.append(node)
            case dict():
                [walk(inner) for inner in node.values()]
            case list():
                [walk(inner) for inner in node]
            case _:
                pass

    walk(block)
    return found


@promise("slack:alike")
@pytest.mark.parametrize(
    ("arguments", "calls", "offered"),
    [
        ({"to": "a@x.example", "body": HOSTILE}, 1, True),
        ({"to": "a@x.example", "body": HOSTILE}, 2, False),
        ({"to": f"{'a' * 3000}@x.example"}, 1, False),
    ],
)
def test_calls_like_one_can_be_remembered_where_the_form_says_which_they_are(arguments, calls, offered):
    asked = request(arguments, calls)
    whole = [call.model_copy(update={"args_digest": digest_of(call.arguments)}) for call in asked.calls]
    asked = asked.model_copy(update={"calls": tuple(whole)})
    form = remember_form(
        asked, ModalContext(key=RequestKey(workflow_id="w", run_id="f", request_id="r1", digest="d"), channel="C1")
    ).to_dict()
    assert faults_of(form["blocks"]) == []
    choices = [option["value"] for block in form["blocks"] for option in block.get("element", {}).get("options", ())]
    assert ("alike" in choices) is offered
    assert (
        'to is "a@x.example", from model; any text as body; no other argument' in json.dumps(form).replace("\\", "")
    ) is offered


@promise("slack:drawing-counted")
@pytest.mark.parametrize("calls", [1, 3, 60])
@pytest.mark.parametrize("length", [10, 3000, 20_000])
def test_what_does_not_fit_is_counted_and_is_not_approved_in_a_message(calls, length):
    shown = PostedRequest(workflow_id="w", request=request({"body": "&" * length}, calls=calls))
    blocks = drawn(shown)
    assert faults_of(blocks) == []
    assert sum(len(text["text"]) for block in blocks for text in texts(block)) < 13_200
    buttons = [e["action_id"] for b in blocks if b["type"] == "actions" for e in b["elements"]]
    whole = calls < 60 and length == 10
    assert ("clipped" in text_of(blocks)) is not whole
    assert ("backstay.approve" in buttons) is whole
    assert ("Not all of it is shown here" in text_of(blocks)) is not whole
    assert {"backstay.choose", "backstay.always"} & set(buttons) == set() or whole
    assert "backstay.more" in buttons


@promise("slack:drawing-goes-on")
@pytest.mark.parametrize("head", ["[0] mail.send_email  (write_safe)", "    to: eve@x.example"])
def test_what_goes_on_of_a_long_line_stands_behind_a_mark_and_passes_for_no_line_of_its_own(head):
    for before in range(540, 600):
        # Slack's escapes make the line longer than a block, which somewhere here would break it just before the head.
        body = f"{'&' * before}{head}{'&' * 50}"
        lines = text_of(drawn(PostedRequest(workflow_id="w", request=request({"body": body})))).split("\n")
        assert sum(line.startswith(head) for line in lines) == head.startswith("[0]")
        assert "".join(line.removeprefix("    ┆ ") for line in lines if line.startswith(("    body:", "    ┆ "))) == (
            escaped(f"    body: {body}")
        )


@promise("slack:drawing-goes-on")
def test_nothing_goes_on_of_a_line_whose_beginning_has_no_room():
    page = BlockPage(characters=1200)
    page.code(["    to: a@x.example", f"    body: {'&' * 600}", "    subject: s"])
    (block,) = page.blocks
    assert block.to_dict()["text"]["text"] == "```\n    to: a@x.example\n    subject: s\n```"
    assert page.hidden >= 600


@promise("slack:drawing-lines")
@settings(max_examples=60, deadline=None)
@given(lines=st.lists(st.text(max_size=400), max_size=40))
def test_any_lines_make_blocks_that_slack_takes_and_every_character_is_shown_or_counted(lines):
    page = BlockPage()
    page.code(lines)
    blocks = [block.to_dict() for block in page.blocks]
    assert faults_of(blocks) == []
    inner = "".join(block["text"]["text"].removeprefix("```\n").removesuffix("\n```") for block in blocks)
    assert "```" not in inner
    expected = sum(len(line.replace("```", "``<U+0060>")) for line in lines)
    unescaped = inner.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace("\n", "")
    assert len(unescaped) + page.hidden >= expected - sum(line.count("\n") for line in lines)


@promise("slack:drawing-lines")
@given(text=st.text(alphabet="<>&ab", max_size=200), most=st.integers(0, 100))
def test_a_clipped_text_never_ends_within_an_escape(text, most):
    shown, hidden = fitting(text, most)
    assert len(shown) <= most
    assert shown == escaped(text[: len(text) - hidden])


@promise("slack:drawing-buttons")
def test_an_id_that_no_button_can_carry_leaves_the_request_without_buttons():
    blocks = drawn(PostedRequest(workflow_id="w" * 3000, request=request()))
    assert faults_of(blocks) == []
    assert "actions" not in [block["type"] for block in blocks]


@promise("slack:drawing-limits")
def test_a_run_and_its_steps_are_drawn_within_the_limits():
    result = {"outcome": "completed", "final_summary": HOSTILE * 200, "usage": {"steps": 3, "tool_calls": 2}}
    head = [block.to_dict() for block in ThreadHead(workflow_id=HOSTILE, task=HOSTILE, result=result).blocks()]
    assert faults_of(head) == []
    assert "<!channel>" not in json.dumps(head)
    events = [Event(n=n, name="action.called", at="2026-11-25T12:00:00", text=HOSTILE) for n in range(30)]
    steps = [block.to_dict() for block in steps_blocks(step_lines(events, left_out=True))]
    assert faults_of(steps) == []
    assert "<!channel>" not in json.dumps(steps)
