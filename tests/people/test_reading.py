"""What is entered at different doors is read alike: the same decision, and the same words where it cannot be one."""

import json
import math

import pytest

import worker
from backstay.approvals.admission import DecisionInvalid
from backstay.approvals.approval import ApprovalRequest, CallVerdict
from backstay.approvals.edits import edited
from backstay.approvals.proof import ShownRequest
from backstay.approvals.proposal_words import part_lines
from backstay.approvals.view import RequestView
from backstay.errors import DecisionRefused, SettingsInvalid, TaskInvalid, Unreachable
from backstay.yaml_text import read_yaml
from gateways.slack.drawing.request import request_blocks
from gateways.slack.forms import answer, choose, edit, verdicts
from gateways.slack.forms.inputs import FormInput
from gateways.slack.interactions import Interactions
from gateways.slack.people import read_people
from gateways.slack.place import ModalContext
from gateways.terminal.asking.form import fields_from
from gateways.terminal.flags import json_object
from gateways.terminal.render import request_lines
from gateways.web.forms import edited_fields, edits_in, entered_in
from gateways.web.sent import Submission
from people.decide.deciding import decide
from people.decide.looking import KnownRequest
from people.requests.editing import edit_between, edit_in_json, edit_of
from people.requests.entered import EntryRefused, FormEntry, entry_name
from people.requests.form import DecisionForm, decision_of
from people.requests.key import RequestKey
from people.requests.posted import PostedRequest
from store.notices.requests import RequestRow
from tests.requirements import promise
from tests.slack_blocks import faults_of_view, filled, text_of
from workflows.view import request_details

PLACE = ModalContext(key=RequestKey(workflow_id="w", run_id="f", request_id="r1", digest="d"), channel="C1")
UNSENT = {"shown": ShownRequest(), "once": ("page", "e1")}
ARGUMENTS = {"to": "kim@x.example", "n": 1, "tags": ["a"]}
FORM = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer"},
        "colour": {"enum": ["red", "blue"]},
        "note": {"type": "string"},
    },
}


def calls(*safeties):
    return [
        {"index": index, "tool": "mail.send", "arguments": ARGUMENTS, "safety": safety, "undoable": False}
        for index, safety in enumerate(safeties)
    ]


def request(kind="batch", options=("approve", "modify", "reject"), **fields):
    given = {"calls": calls("write_safe", "write_safe"), "may_remember": ("run", "never"), **fields}
    return ApprovalRequest.model_validate({"id": "r1", "kind": kind, "question": "?", "options": options, **given})


def plan():
    steps = [{"idx": each["index"], "action": each["tool"], **each} for each in calls("write_safe", "write_safe")]
    part = {"part": 1, "steps": [0, 1]}
    proposal = {"plan_id": "p1", "version": 1, "hash": "h", "steps": steps, "parts": [part]}
    toggles = {"external_processes": True, "limits": {"timeout_s": 20, "memory_mb": 512}}
    return request("plan", proposal={**proposal, "toggles": toggles})


def read(asked, entered):
    """Return the decision, or what is said of the entries that cannot be one."""
    try:
        return decision_of(DecisionForm.of(asked), entered())
    except EntryRefused as refused:
        return {entry_name(entry): why for entry, why in refused.entries.items()}


def on_the_page(asked, edited=None, **fields):
    sent = Submission({name: value if isinstance(value, tuple) else (value,) for name, value in fields.items()})
    form = DecisionForm.of(asked)
    return read(asked, lambda: entered_in(sent, form, () if edited is None else edits_in(sent, {edited: ARGUMENTS})))


def in_slack(view, entered, values):
    shown = view.to_dict()
    return entered(FormInput(filled(shown["blocks"], values)))


def chosen_in_slack(asked, **values):
    form = DecisionForm.of(asked)
    view = choose.form(asked, PLACE, "ana")
    return read(asked, lambda: in_slack(view, lambda given: choose.entered(form, given), values))


@promise("approvals:one-reading")
@pytest.mark.parametrize(
    ("asked", "page", "slack", "flags", "expected"),
    [
        pytest.param(
            request(),
            {"offered.0": "1", "offered.1": "1", "take.0": "1"},
            {"leave_out": ["1"]},
            {"left_out": [1]},
            {"verdict": "approve", "calls": {1: {"verdict": "reject"}}},
            id="a call left out",
        ),
        pytest.param(
            request(),
            {"offered.0": "1", "offered.1": "1"},
            {"leave_out": ["0", "1"]},
            {"left_out": [0, 1]},
            {"calls": "nothing would be left; reject the request instead"},
            id="all left out",
        ),
        pytest.param(
            plan(),
            {"offered.0": "1", "offered.1": "1"},
            {"leave_out": ["0", "1"]},
            {"left_out": [0, 1]},
            {
                "verdict": "approve",
                "calls": {0: {"verdict": "reject"}, 1: {"verdict": "reject"}},
                "option": "approve_per_step",
                "plan_id": "p1",
            },
            id="every asked step of a plan left out",
        ),
        pytest.param(
            plan(),
            {"step_timeout": "4", "no_processes": "1", "comment": " only a "},
            {"timeout_s": "4", "processes": "no", "comment": "only a"},
            {"limits": {"timeout_s": 4}, "no_processes": True, "comment": "only a"},
            {
                "verdict": "approve",
                "comment": "only a",
                "option": "approve_all",
                "plan_id": "p1",
                "toggles": {"external_processes": False, "limits": {"timeout_s": 4}},
            },
            id="a plan narrowed",
        ),
        pytest.param(
            plan(),
            {"step_memory": "much", "offered.0": "1", "offered.1": "1", "take.0": "1"},
            {"memory_mb": "much", "leave_out": ["1"]},
            {"limits": {"memory_mb": "much"}, "left_out": [1]},
            {"toggles.limits.memory_mb": "type a whole number, at most 512"},
            id="no number",
        ),
        pytest.param(
            plan(),
            {"step_timeout": "1e999"},
            {"timeout_s": "NaN"},
            {"limits": {"timeout_s": math.inf}},
            {"toggles.limits.timeout_s": "type a number, at most 20"},
            id="no finite number",
        ),
        pytest.param(
            plan(),
            {"step_timeout": "1_5", "step_memory": "1_00"},
            {"timeout_s": "1_5", "memory_mb": "1_00"},
            {"limits": {"timeout_s": "1_5", "memory_mb": "1_00"}},
            {
                "toggles.limits.timeout_s": "type a number, at most 20",
                "toggles.limits.memory_mb": "type a whole number, at most 512",
            },
            id="a number with what Python would leave out",
        ),
    ],
)
def test_what_is_approved_in_part_is_read_alike(asked, page, slack, flags, expected):
    assert on_the_page(asked, verdict="approve", **page) == expected
    assert chosen_in_slack(asked, **slack) == expected
    assert read(asked, lambda: FormEntry("approve", **flags)) == expected


@promise("approvals:one-reading")
@pytest.mark.parametrize(
    ("page", "slack", "flags", "expected"),
    [
        (
            {"x.0": "7", "x.1": "1", "x.2": '""'},
            {"field.size": "7", "field.colour": "1", "field.note": '""'},
            ["size=7", "colour=blue", 'note=""'],
            {"verdict": "answer", "answer": {"size": 7, "colour": "blue", "note": ""}},
        ),
        (
            {"x.0": "many"},
            {"field.size": "many"},
            ["size=many"],
            {"size": "type a whole number"},
        ),
    ],
)
def test_the_fields_of_an_answer_are_read_alike(page, slack, flags, expected):
    asked = request("elicitation", ("answer",), calls=(), schema=FORM)
    form = DecisionForm.of(asked)
    view = answer.form(asked, PLACE)

    assert on_the_page(asked, verdict="answer", **page) == expected
    assert read(asked, lambda: in_slack(view, lambda given: answer.entered(form, given), slack)) == expected
    assert read(asked, lambda: FormEntry("answer", fields=fields_from(form, flags))) == expected


DEFAULTS = {
    "type": "object",
    "required": ["empty", "null", "choice"],
    "properties": {
        "empty": {"type": "string", "default": ""},
        "quotes": {"type": "string", "default": '""'},
        "or_null": {"type": ["string", "null"], "default": "abc"},
        "whole": {"type": "integer", "default": 5.0},
        "spaced": {"enum": [" a", "b"], "default": " a"},
        "list": {"type": "array"},
        "null": {"type": ["string", "null"]},
        "choice": {"enum": ["x", None]},
    },
}
HELD = {"empty": "", "quotes": '""', "or_null": "abc", "whole": 5.0, "spaced": " a"}


@promise("approvals:one-reading")
def test_a_default_is_sent_as_it_is_and_null_and_an_empty_list_are_something():
    asked = request("elicitation", ("answer",), calls=(), schema=DEFAULTS)
    form, view = DecisionForm.of(asked), answer.form(asked, PLACE)
    given = fields_from(form, ["null=null", "choice=null", "list=[]"])
    in_modal = in_slack(
        view,
        lambda given: answer.entered(form, given),
        {"field.null": "null", "field.choice": "1"},
    )

    assert decision_of(form, FormEntry("answer", fields=given))["answer"] == {
        **HELD,
        "null": None,
        "choice": None,
        "list": [],
    }
    assert decision_of(form, in_modal)["answer"] == {**HELD, "null": None, "choice": None}
    assert not any("initial_option" in block["element"] for block in view.to_dict()["blocks"][-1:])
    assert read(asked, lambda: FormEntry("answer", fields={("choice",): (-1,), ("empty",): "x", ("null",): "1"})) == {
        "choice": "must be given"
    }


@promise("approvals:none-chosen")
def test_whoever_unticks_what_was_chosen_beforehand_chooses_nothing_and_says_so():
    tags = {"type": "array", "items": {"enum": ["a", "b"]}}
    properties = {"held": {**tags, "default": ["a"]}, "free": tags, "other": {**tags, "default": ["gone"]}}
    asked = request("elicitation", ("answer",), calls=(), schema={"type": "object", "properties": properties})
    form, view = DecisionForm.of(asked), answer.form(asked, PLACE)

    assert on_the_page(asked, verdict="answer") == {"verdict": "answer", "answer": {"held": []}}
    unticked = in_slack(view, lambda given: answer.entered(form, given), {"field.held": []})
    assert decision_of(form, unticked)["answer"] == {"held": []}
    as_it_was = in_slack(view, lambda given: answer.entered(form, given), {})
    assert decision_of(form, as_it_was)["answer"] == {"held": ["a"]}


@promise("approvals:one-reading")
def test_a_text_in_quotes_is_read_by_a_flag_as_at_a_prompt():
    form = DecisionForm.of(request("elicitation", ("answer",), calls=(), schema=FORM))
    for typed, text in {'"one\\ntwo"': "one\ntwo", '"\\"\\""': '""', '""': "", '"a" "b"': '"a" "b"'}.items():
        fields = fields_from(form, ["size=1", f"note={typed}"])
        assert decision_of(form, FormEntry("answer", fields=fields))["answer"] == {"size": 1, "note": text}


@promise("approvals:one-reading")
@pytest.mark.parametrize(
    ("schema", "typed", "expected"),
    [
        (None, " x ", "x"),
        (None, " ", None),
        (None, None, None),
        ({"type": "string"}, " x ", " x "),
        ({"type": "string"}, "", ""),
        ({"type": "object", "properties": {"note": {"type": "string"}}}, None, None),
    ],
)
def test_an_answer_as_a_whole_is_sent_as_it_is_where_a_schema_says_what_fits(schema, typed, expected):
    asked = request("elicitation", ("answer",), calls=(), schema=schema)
    refused = {"answer": "it is empty; write something, or reject the question"}
    said = refused if expected is None else {"verdict": "answer", "answer": expected}

    assert read(asked, lambda: FormEntry("answer", answer=typed)) == said


ALIKE = {
    "type": "object",
    "properties": {
        "a": {"type": "object", "properties": {"b": {"type": "integer"}}},
        "a.b": {"type": "integer"},
        "n" * 300: {"type": "integer"},
        "m" * 300: {"type": "integer"},
    },
}


@promise("approvals:one-reading")
def test_two_fields_whose_names_read_alike_have_a_value_and_a_fault_each():
    asked = request("elicitation", ("answer",), calls=(), schema=ALIKE)
    form, view = DecisionForm.of(asked), answer.form(asked, PLACE).to_dict()
    given = FormInput(filled(view["blocks"], {"field0": "1", "field1": "2"}))
    wrong = FormInput(filled(view["blocks"], {"field1": "x", "field2": "y", "field3": "z"}))
    inputs = [block["block_id"] for block in view["blocks"] if block["type"] == "input"]

    assert faults_of_view(view) == []
    assert on_the_page(asked, verdict="answer", **{"x.0": "1", "x.1": "2"})["answer"] == {"a": {"b": 1}, "a.b": 2}
    assert decision_of(form, answer.entered(form, given))["answer"] == {"a": {"b": 1}, "a.b": 2}
    with pytest.raises(DecisionInvalid, match=r"2 fields are called 'a\.b'"):
        fields_from(form, ["a.b=1"])
    with pytest.raises(EntryRefused) as refused:
        decision_of(form, answer.entered(form, wrong))
    wrong.refuse(refused.value.entries, inputs)
    assert wrong.errors == dict.fromkeys(["field1", "field2", "field3"], "type a whole number")
    # What has no input of its own is said at the first one, all of it, and nowhere where there is none.
    for inputs, said in ((["only"], {"only": "b: no; c: no"}), ([], {"": "b: no; c: no"})):
        other = FormInput({})
        other.refuse({"b": "no", "c": "no"}, inputs)
        assert other.errors == said


@promise("approvals:one-reading")
@pytest.mark.parametrize(
    ("page", "slack", "line", "expected"),
    [
        (
            {"v.0.1": "true"},
            {"argument.n": "true"},
            '{"n": true}',
            {
                "verdict": "modify",
                "calls": {0: {"verdict": "modify", "arguments": {"n": True}}},
                "ask_again": True,
            },
        ),
        (
            {"v.0.1": "1e999"},
            {"argument.n": "-1e999"},
            None,
            {"n": 'invalid JSON; type JSON, such as "text", 7 or ["a", "b"]'},
        ),
        (
            {"v.0.1": "1.0", "v.0.2": "[1]"},
            {"argument.n": "1.0", "argument.tags": "[1]"},
            '{"n": 1.0, "tags": [1]}',
            {
                "verdict": "modify",
                "calls": {0: {"verdict": "modify", "arguments": {"n": 1.0, "tags": [1]}}},
                "ask_again": True,
            },
        ),
        ({}, {}, '{"n": 1}', {"arguments": "nothing was changed; approve it as it is, or leave it"}),
    ],
)
def test_a_change_of_a_call_is_read_alike(page, slack, line, expected):
    asked = request("call", calls=calls("write_safe"))
    fields = {field.name: field.text for field in edited_fields(0, ARGUMENTS)}
    view = edit.form(asked, PLACE.model_copy(update={"call": 0}), ARGUMENTS)

    assert on_the_page(asked, edited=0, **{**fields, **page}) == expected
    assert read(asked, lambda: in_slack(view, lambda given: edit.entered(0, ARGUMENTS, given), slack)) == expected
    if line is not None:
        assert (
            read(asked, lambda: FormEntry("modify", edits=(edit_in_json(0, ARGUMENTS, line, whole=False),))) == expected
        )


@promise("approvals:one-reading")
@pytest.mark.parametrize("value", [True, 1.0, {"a": True}, [1.0]])
def test_a_value_that_python_takes_for_equal_is_a_change_when_it_is_made_and_when_it_is_carried_out(value):
    before = {"n": 1, "o": {"a": 1}, "l": [1]}
    name = next(name for name, was in before.items() if was == value)
    edit = edit_between(0, before, before | {name: value}, ())
    changed = edited(before, before, CallVerdict(verdict="modify", arguments=edit.arguments), "calls.0")

    assert repr(edit.arguments) == repr({name: value})
    assert repr(changed) == repr(before | {name: value})


@promise("approvals:one-reading")
async def test_a_number_that_json_cannot_say_is_refused_before_anything_is_sent():
    known = KnownRequest("w", "r1", None, request("elicitation", ("answer",), calls=(), schema=FORM))
    for number in ("NaN", "1e999"):
        with pytest.raises(DecisionInvalid, match="a number is NaN or infinite"):
            await decide(None, known, {"verdict": "answer", "answer": float(number)}, by="ana", **UNSENT)


@promise("approvals:one-reading")
def test_what_is_wrong_with_an_entry_is_said_on_one_line_and_of_a_limit_that_a_plan_lacks_too():
    hostile = {"type": "object", "required": ["a"], "properties": {"a": {"enum": ["x\u202e\x1b[2J", "y" * 999]}}}
    asked = request("elicitation", ("answer",), calls=(), schema=hostile)
    said = read(asked, lambda: FormEntry("answer", fields={("a",): "z"}))["a"]

    assert (said[:42], len(said)) == ("choose from [1] x<U+202E><U+001B>[2J, [2] ", 300)
    assert read(plan(), lambda: FormEntry("approve", limits={"pages": "x"})) == {
        "toggles.limits.pages": "type a number"
    }


@promise("approvals:one-reading")
def test_json_that_only_its_indents_make_too_long_for_a_form_is_edited_in_slack():
    arguments = {"rows": [[number] for number in range(400)]}
    place, asked = PLACE.model_copy(update={"call": 0}), request("call", calls=calls("write_safe"))
    view, few = edit.form(asked, place, arguments), {"argument.rows": "[1]"}
    as_it_is = edit.form(asked, place, arguments).to_dict()

    assert (len(json.dumps(arguments)) < 3000 < len(json.dumps(arguments, indent=2)), faults_of_view(as_it_is)) == (
        True,
        [],
    )
    assert in_slack(view, lambda given: edit.entered(0, arguments, given), few).edits == ((0, {"rows": [1]}, ()),)
    assert "nothing was changed" in str(
        read(asked, lambda: in_slack(view, lambda given: edit.entered(0, arguments, given), {}))
    )


@promise("approvals:one-reading")
async def test_who_was_not_shown_all_of_it_is_not_sent_where_they_are():
    known = KnownRequest("w", "r1", None, request())
    for said, more in (
        ("open it on the page, or at a", {}),
        ("not: much; open it again$", {"instead": "open it again"}),
    ):
        with pytest.raises(DecisionRefused, match=said):
            await decide(None, known, {"verdict": "approve"}, by="ana", shown=ShownRequest(), hidden="much", **more)


@promise("approvals:one-reading")
def test_a_decision_that_is_to_be_remembered_is_read_alike():
    asked, view = request(), verdicts.remember_form(request(), PLACE)
    never = {"verdict": "reject", "remember": "never", "remember_arguments": "any"}
    run = {"verdict": "approve", "remember": "run", "remember_arguments": "these"}

    assert on_the_page(asked, verdict="reject_never", remember_arguments="any") == never
    assert read(asked, lambda: in_slack(view, verdicts.remembered, {"remember": "never", "arguments": "any"})) == never
    assert on_the_page(asked, verdict="approve", remember="run", remember_arguments="these") == run
    assert read(asked, lambda: in_slack(view, verdicts.remembered, {"remember": "run"})) == run
    assert read(asked, lambda: verdicts.remembered(FormInput({}))) == {"remember": "choose for how long"}


@promise("approvals:reads-undone")
def test_no_door_says_of_a_call_that_only_reads_that_it_cannot_be_undone():
    asked = request("call", calls=calls("read_only"))
    writes = request("call", calls=calls("write_safe"))
    shown = [
        [
            request_details("w", each).replace("cannot", "CANNOT").replace("be undone", "BE UNDONE")
            for each in (asked, writes)
        ],
        ["\n".join(line for line, _ in request_lines("w", each)) for each in (asked, writes)],
        [
            text_of([block.to_dict() for block in request_blocks(PostedRequest(workflow_id="w", request=each))])
            for each in (asked, writes)
        ],
    ]

    assert [["CANNOT BE UNDONE" in text for text in texts] for texts in shown] == [[False, True]] * 3
    assert [call.writes for each in (asked, writes) for call in RequestView.of(each).calls] == [False, True]


class Away:
    """A client whose run cannot say the arguments of a call."""

    def __init__(self, error):
        self.error = error

    def run(self, _):
        return self

    async def arguments(self, *_):
        raise self.error


@promise("slack:edited")
async def test_arguments_as_they_are_shown_are_edited_only_where_no_call_waits():
    def opened(error):
        return Interactions(None, Away(error), None, None, None)._arguments(request(), PLACE.key, 0)

    assert await opened(DecisionRefused("no call waits")) == ARGUMENTS
    with pytest.raises(Unreachable):
        await opened(Unreachable("Temporal does not answer"))


TWICE = '{"to": "bo@x.example", "to": "eve@x.example"}'


@promise("approvals:said-twice")
def test_what_is_written_twice_in_different_words_is_refused_at_every_door(tmp_path):
    for whole in (True, False):
        with pytest.raises(EntryRefused, match="to: duplicate key"):
            edit_in_json(0, ARGUMENTS, TWICE, whole=whole)
    with pytest.raises(EntryRefused, match="to: duplicate key"):
        edit_of(0, ARGUMENTS, {}, more=TWICE)
    with pytest.raises(TaskInvalid, match=r"--calls: .*0: duplicate key"):
        json_object('{"0": {"verdict": "reject"}, "0": {"verdict": "approve"}}', "--calls", "{}")
    form = DecisionForm.of(request("question", ("answer",), schema=FORM, calls=[]))
    with pytest.raises(DecisionInvalid, match="--field: 'size' is given twice"):
        fields_from(form, ["size=1", "size=2"])
    with pytest.raises(DecisionInvalid, match="verdict: sent twice"):
        entered_in(Submission({"verdict": ("reject", "approve")}), form)
    for name, text in {
        "policy.yaml": "deny: [a.b]\nask: [a.b]\ndeny: []\n",
        "people.yaml": "U1: ana\nU1: bo\n",
    }.items():
        (tmp_path / name).write_text(text)
        read_file = worker.read_policy if name == "policy.yaml" else read_people
        with pytest.raises(SettingsInvalid, match="duplicate key"):
            read_file(tmp_path / name)


@promise("approvals:said-twice")
def test_files_of_people_are_read_as_before_where_each_key_stands_once():
    text = "a: &a {x: 1, y: [1, {z: 2}]}\nb: {<<: *a, x: 3}\nc: *a\n1: one\n'1': other\n"
    first = {"x": 1, "y": [1, {"z": 2}]}
    assert read_yaml(text) == {"a": first, "b": {**first, "x": 3}, "c": first, 1: "one", "1": "other"}
    assert read_yaml("# nothing\n") is None
    nested = "[" * 30_000
    with pytest.raises(TaskInvalid, match="--input: invalid JSON"):
        json_object(nested, "--input", "{}")


@promise("page:plan-parts")
def test_a_plan_waits_for_nobody_once_its_run_says_so_even_before_the_store_knows_of_the_decision():
    asked = plan()
    given = {"position": 1, "workflow_id": "w", "run_id": "f", "run": "f", "request_id": "r1", "user_id": "ana"}
    times = {"opened_at": 1, "changed_at": 1}
    row = RequestRow(**given, **times, state="open", request=asked.model_dump(mode="json"))
    waiting, decided = KnownRequest("w", "r1", row, asked), KnownRequest("w", "r1", row, None)
    silent, closed = decided._replace(trouble="no worker answers"), row.model_copy(update={"state": "expired"})
    known = [waiting, silent, decided, decided._replace(ended=True), silent._replace(row=closed)]
    standing = [RequestView.of(each.request, waits=each.may_wait).parts[0] for each in known]

    assert standing == ["steps 0, 1: waits for anyone"] * 2 + ["steps 0, 1: asked anyone"] * 3
    part = asked.proposal.parts[0].model_copy(update={"verified": True})
    verified = asked.proposal.model_copy(update={"parts": (part,)})
    assert [*part_lines(verified), *part_lines(verified, waits=False)] == [
        "steps 0, 1: waits for a verified person",
        "steps 0, 1: asked a verified person",
    ]


@promise("page:plan-parts")
def test_in_slack_a_plan_that_waits_no_more_is_drawn_as_waiting_for_nobody():
    waits, gone, decided = (
        json.dumps(
            [block.to_dict() for block in request_blocks(PostedRequest(workflow_id="w", request=plan(), **more))]
        )
        for more in ({}, {"waits": False}, {"state": "decided"})
    )

    assert ["waits for" in each for each in (waits, gone, decided)] == [True, False, False]
