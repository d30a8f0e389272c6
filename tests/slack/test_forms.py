"""Forms that tools' servers and schemas ask for, as modals, over HTTP and over socket mode."""

import json
from pathlib import Path

import pytest
import pytest_asyncio

from backstay.approvals.approval import ApprovalRequest
from backstay.testing import Reply
from gateways.slack.forms import answer, edit, whole
from gateways.slack.forms.inputs import FormInput
from gateways.slack.place import ModalContext
from people.requests.entered import EntryRefused
from people.requests.form import DecisionForm, decision_of
from people.requests.key import RequestKey
from tests.engine import ended
from tests.requirements import promise
from tests.slack.workspace import ANA, ONCE, U1, decisions, open_office
from tests.slack_blocks import faults_of_view, filled, text_of

SERVERS = Path(__file__).parent.parent / "toolbox" / "servers"
POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}"
PLACE = ModalContext(key=RequestKey(workflow_id="w", run_id="f", request_id="r1", digest="d"), channel="C1")
pytestmark = pytest.mark.timeout(400)


@pytest_asyncio.fixture(scope="module", params=ONCE)
async def office(request, temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    toolbox = folder / "toolbox.json"
    server = {"command": "python", "args": [str(SERVERS / "office.py"), "stdio"]}
    toolbox.write_text(json.dumps({"mcpServers": {"office": server}}), encoding="utf-8")
    more = {"toolbox": toolbox, "request_deadline_seconds": 20}
    async with open_office(temporal, folder, request.param, policy=POLICY, **more) as opened:
        yield opened


@promise("slack:server-forms")
async def test_a_form_of_a_tools_server_is_filled_in_and_the_call_goes_on(office):
    handle, message = await office.asked(Reply(calls=[("office__give_away", {"room": "cellar"})]))
    assert "A tool asks for details" in message.shown
    assert "sure" in message.shown
    await office.slack.press(message, "backstay.answer", user=U1)
    view = await office.slack.view("Give away cellar?", user=U1)
    sent = await office.slack.submit(view, {"field.sure": "yes"})
    result = await ended(handle)
    assert decisions(result) == [("answer", ANA, True)]
    assert [effect["state"] for effect in result["effects"]] == ["applied"]
    # What is sent twice is one answer.
    assert (await office.slack.repeat(sent)).status == 200
    assert (await office.slack.changed(message, f"Answered by {ANA}")).buttons == []


SCHEMA = {
    "type": "object",
    "required": ["name", "size", "colour"],
    "properties": {
        "name": {"type": "string", "maxLength": 40, "title": "Name <!here>"},
        "story": {"type": "string"},
        "size": {"type": "integer", "minimum": 1},
        "weight": {"type": "number", "default": 1.5},
        "sure": {"type": "boolean", "default": True},
        "colour": {"enum": ["red", "green"], "enumNames": ["Red", "Green"]},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}},
        "extra": {"type": "object"},
        "inner": {"type": "object", "properties": {"deep": {"type": "string"}}},
    },
}


def elicitation(schema=SCHEMA):
    return ApprovalRequest(
        id="r1", kind="elicitation", question="What?", options=("answer", "reject"), schema=schema, run_id="f"
    )


def typed(view, **values):
    return FormInput(filled(view["blocks"], {f"field.{name}": value for name, value in values.items()}))


@promise("slack:server-forms")
def test_every_kind_of_field_is_offered_and_read():
    view = answer.form(elicitation(), PLACE).to_dict()
    assert faults_of_view(view) == []
    assert "<!here>" not in str([block.get("label") for block in view["blocks"]])
    given = typed(
        view,
        name="Ana",
        story='"quoted"\n2nd',
        size="3",
        sure="no",
        colour="1",
        tags=["0", "2"],
        extra='{"x": [1]}',
        **{"inner.deep": "down"},
    )
    form = DecisionForm.of(elicitation())
    assert decision_of(form, answer.entered(form, given))["answer"] == {
        "name": "Ana",
        "story": '"quoted"\n2nd',
        "size": 3,
        "weight": 1.5,
        "sure": False,
        "colour": "green",
        "tags": ["a", "c"],
        "extra": {"x": [1]},
        "inner": {"deep": "down"},
    }


@promise("slack:misfit")
def test_what_does_not_fit_is_said_at_its_field():
    view = answer.form(elicitation(), PLACE).to_dict()
    given = typed(view, name="Ana", size="many", colour="0", weight="x", extra="{")
    form = DecisionForm.of(elicitation())
    with pytest.raises(EntryRefused) as refused:
        decision_of(form, answer.entered(form, given))
    given.refuse(refused.value.entries, [block["block_id"] for block in view["blocks"] if block["type"] == "input"])
    assert set(given.errors) == {"field.size", "field.weight", "field.extra"}
    assert given.errors["field.size"] == "type a whole number"


@promise("slack:whole")
def test_everything_says_what_it_does_not_show_and_where_that_stands():
    call = {"tool": "t.x", "arguments": {"a": "b"}, "safety": "write_safe", "undoable": False}
    calls = tuple({**call, "index": index} for index in range(25))
    request = ApprovalRequest(id="r1", kind="batch", question="May I?", calls=calls)
    view = whole.form(request, PLACE, {index: {"a": "b"} for index in range(20)}).to_dict()
    assert faults_of_view(view) == []
    assert "[19] t.x" in text_of(view["blocks"])
    assert "[20]" not in text_of(view["blocks"])
    assert "5 more calls not shown even here; see: backstay show w" in text_of(view["blocks"])


def request_about(arguments):
    call = {"index": 0, "tool": "t.x", "arguments": arguments, "safety": "write_safe", "undoable": False}
    return ApprovalRequest(id="r1", kind="call", question="May I?", calls=(call,), options=("approve", "modify"))


@promise("slack:edited")
def test_arguments_of_every_kind_are_edited_and_what_is_not_touched_stays():
    arguments = {
        "text": "as it is ",
        "hidden": "a\u202eb",
        "number": 7,
        "list": [1, 2],
        "long": "x" * 5000,
        "empty": "",
        "gone": "something",
    }
    place = PLACE.model_copy(update={"call": 0})
    view = edit.form(request_about(arguments), place, arguments).to_dict()
    assert faults_of_view(view) == []
    assert "left as they are: long" in str(view)
    # Slack takes white space off the ends.
    values = {"argument.text": "as it is", "argument.number": "8", "argument.list": "[1, 2]", "argument.gone": ""}
    given = FormInput(filled(view["blocks"], values))
    said = decision_of(DecisionForm.of(request_about(arguments)), edit.entered(0, arguments, given))
    assert said["ask_again"] is True
    assert said["calls"] == {0: {"verdict": "modify", "arguments": {"number": 8, "gone": ""}}}
    wrong = FormInput(filled(view["blocks"], {"argument.number": "eight"}))
    with pytest.raises(EntryRefused) as refused:
        edit.entered(0, arguments, wrong)
    assert "type JSON" in refused.value.entries["number"]
