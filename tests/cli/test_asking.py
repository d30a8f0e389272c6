"""What a person can say at a prompt: of a call whose outcome nobody knows, and of forty calls at once."""

import json
from types import SimpleNamespace

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from backstay.approvals.approval import ApprovalRequest, RequestedCall
from backstay.client import Backstay
from backstay.errors import DecisionRefused
from backstay.shown import one_line
from backstay.testing import Reply
from gateways.terminal.asking.deciding import decided
from gateways.terminal.asking.editing import arguments_in_yaml, calls_as_yaml, calls_in, numbers_in
from gateways.terminal.asking.prompt import _KEYS, Prompt, _key
from gateways.terminal.terminal import Terminal
from tests.cli.test_editing import JSON, TEXT
from tests.engine import Scripts, ended, engine, pending, toolbox_of
from tests.requirements import promise

MAIL = ("mail__send_email", {"to": "kim@x.example", "subject": "s", "body": "b"})


class Typist(Terminal):
    """A terminal at which somebody types these lines, and which remembers what was said before each of them."""

    def __init__(self, *lines):
        super().__init__()
        self.lines = list(lines)
        self.notes = []
        self.questions = []

    async def ask(self, question, before=()):
        self.questions.append(question)
        self.notes.append([text for text, _ in before])
        return self.lines.pop(0)


def losing(folder):
    """Return a toolbox whose server does what it is told, and dies before it answers."""
    toolbox = toolbox_of(folder, folder / "mailbox.db", MAILBOX_DIE_AFTER_SEND="1")
    data = json.loads(toolbox.read_text(encoding="utf-8"))
    data["providers"]["mail"]["tools"]["send_email"] = {"safety": "write_safe"}
    toolbox.write_text(json.dumps(data), encoding="utf-8")
    return toolbox


@promise("clients:prompt-outcome")
async def test_yes_and_no_send_nothing_again_where_the_outcome_of_a_call_is_asked(temporal, tmp_path):
    scripts, unclear = Scripts(), ["y", "yes", "OK", "n", "no"]
    more = {"toolbox": losing(tmp_path), "policy": "default: {write_safe: allow}", "request_deadline_seconds": 3}
    async with engine(temporal, tmp_path, scripts, **more) as running:
        handle = await running.start(scripts.task(Reply(calls=[MAIL])))
        run = Backstay(running.client).run(handle.id)
        (request,) = await pending(handle)
        typist = Typist(*unclear, "t")
        prompt = Prompt(typist, run, running.settings, by="ana", editor=None)
        assert await prompt.decide(ApprovalRequest.model_validate(request))
        result = await ended(handle)

    assert typist.lines == []
    assert typist.questions[0] == "it [h]appened, it did n[o]t happen, [t]ry again, [d]etach?"
    said = "yes and no decide nothing here: type one of the letters in brackets, or its word"
    assert [note[0].startswith(said) for note in typist.notes[1:]] == [True] * len(unclear)
    decided = [event["data"]["verdict"] for event in result["events"] if event["name"] == "approval.decided"]
    assert decided == ["retry"]


@promise("clients:prompt-outcome")
@pytest.mark.parametrize("kind", ["fault", "review"])
def test_yes_and_no_decide_nothing_at_any_question_about_an_outcome(kind):
    options = {"fault": ("retry", "reject"), "review": ("approve", "reject")}[kind]
    request = ApprovalRequest(id="r1", kind="outcome", question="q", options=options)
    letters = {letter for letter, _ in _KEYS.values()}

    assert not {_key(request, typed) for typed in ("y", "yes", "ok", "n", "no")} & letters
    assert [_key(request, typed) for typed in options] == [_KEYS[option][0] for option in options]


@promise("clients:prompt-words")
@pytest.mark.parametrize(
    ("typed", "letter"),
    [("it happened", "h"), ("it did not happen", "o"), ("did not happen", "o"), ("try again", "t"), ("other", "")],
)
def test_the_words_of_a_menu_decide_as_their_letters_do(typed, letter):
    options = ("happened", "did_not_happen", "retry")

    assert _key(ApprovalRequest(id="r1", kind="outcome", question="q", options=options), typed) == letter


@pytest_asyncio.fixture(scope="module")
async def office(temporal, tmp_path_factory):
    scripts = Scripts()
    more = {"policy": "default: {write_safe: ask}", "max_completion_tokens": 20_000}
    async with engine(temporal, tmp_path_factory.mktemp("office"), scripts, **more) as running:
        yield running, scripts


async def typed(office, domain, count, *lines, editor=None):
    """Type lines at each of the prompts of a run that wants to write mails; return what was asked, and who has one."""
    running, scripts = office
    arguments = [{"to": f"{at}{domain}", "subject": "s", "body": "b"} for at in range(count)]
    reply = Reply(calls=[("mail__send_email", each) for each in arguments])
    handle = await running.start(scripts.task(reply, budget={"max_tool_calls": 100, "max_llm_cost_usd": 5.0}))
    run, typists = Backstay(running.client).run(handle.id), []
    for each in lines:
        (request,) = await pending(handle)
        typists.append(Typist(*each))
        prompt = Prompt(typists[-1], run, running.settings, by="ana", editor=editor)
        assert await prompt.decide(ApprovalRequest.model_validate(request))
        assert typists[-1].lines == []
    await ended(handle)
    return typists, sorted(to for to in running.mailbox.sent() if to.endswith(domain))


def other(at, domain):
    return f'{{"to": "other{at}{domain}"}}'


def wanted(domain, changed, rejected=(), count=40):
    """Return who has a mail where these were changed and these rejected."""
    kept = {f"{at}{domain}" for at in range(count) if at not in {*changed, *rejected}}
    return sorted(kept | {f"other{at}{domain}" for at in changed})


@promise("clients:prompt-forty")
async def test_of_forty_calls_three_are_edited_one_is_rejected_and_the_rest_approved_in_one_decision(office):
    to = "@turns.example"
    turns = ["c", "3", "e", other(3, to), "7", "e", "{", "e", other(7, to), "e", other(8, to), "12", "x", "r", "rest"]

    (first, second), sent = await typed(office, to, 40, turns, ["a"])

    assert sent == wanted(to, (3, 7, 8), (12,))
    menu = "[a]pprove, [r]eject, [e]dit, approve all the [rest], [b]ack, or a number?"
    assert f"[3] mail.send_email: {menu}" in first.questions
    slip, unknown = (text for note in first.notes for text in note)
    assert slip.startswith("not accepted: arguments: ")
    assert unknown == "type one of the letters in brackets, or the number of a call"
    assert len(second.questions) == 1


@promise("clients:prompt-forty")
async def test_several_calls_are_named_at_once_and_edited_in_turn_before_one_decision(office):
    to = "@named.example"
    lines = ["e", "3,7-8", other(3, to), "{", other(7, to), ""]

    (first, _), sent = await typed(office, to, 40, lines, ["a"])

    assert sent == wanted(to, (3, 7))
    assert first.questions[1] == "which calls? numbers, such as 3 or 3,7-9:"
    assert [text[:14] for note in first.notes for text in note] == ["not accepted: "]


@promise("clients:prompt-forty")
async def test_an_editor_has_all_the_named_calls_in_one_file(office, tmp_path):
    to, editor = "@file.example", tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/to: /to: other/" "$1"\n', encoding="utf-8")
    editor.chmod(0o755)

    _, sent = await typed(office, to, 5, ["e", "1,3-4"], ["a"], editor=str(editor))

    assert sent == wanted(to, (1, 3, 4), count=5)


@promise("clients:prompt-forty")
async def test_what_was_said_of_calls_is_kept_over_a_step_back_and_over_a_change_that_is_refused(office):
    to = "@back.example"
    lines = ["c", "b", "c", "r", "b", "a", "e", '{"to": 7}', "a", "1", "e", other(1, to)]

    (first, _), sent = await typed(office, to, 3, lines, ["a"])

    assert sent == wanted(to, (1,), count=3)
    notes = [text for note in first.notes for text in note]
    assert notes[0] == "nothing was decided"
    assert "to" in notes[1]
    assert len(notes) == 2


@promise("approvals:edited-yaml")
@given(st.lists(st.dictionaries(TEXT, JSON, max_size=3), min_size=2, max_size=3))
def test_calls_come_out_of_one_file_as_they_went_in(arguments):
    calls = [RequestedCall(index=at, tool="a.b", arguments={}, safety="write_safe", undoable=False) for at in (0, 3, 7)]
    before = {call.index: each for call, each in zip(calls, arguments, strict=False)}
    text = calls_as_yaml(calls[: len(arguments)], before)

    assert calls_in(arguments_in_yaml(text), calls[: len(arguments)]) == before
    assert all(one_line(line, 16 * len(line) + 16) == line for line in text.split("\n"))


@promise("clients:prompt-forty")
def test_numbers_of_calls_are_read_as_people_write_them_and_any_other_is_refused():
    known = [0, 1, 2, 5, 7]
    assert numbers_in("2, 5 - 7,0", known, "call") == [2, 5, 7, 0]
    assert numbers_in("1 7", known, "call") == [1, 7]
    for wrong in ("", ",", "3", "1-3", "7-1", "-1", "1-", "all", "99999999999", "1-99999999999"):
        with pytest.raises(DecisionRefused, match="nothing was changed"):
            numbers_in(wrong, known, "call")


@promise("clients:prompt-whole")
async def test_what_was_not_shown_at_the_prompt_is_approved_in_no_other_way_either():
    call = RequestedCall(index=0, tool="a.b", arguments={"n": "x…"}, safety="write_safe", undoable=False, clipped=5)
    both = {"kind": "batch", "question": "q", "options": ("approve", "modify", "reject"), "digest": "shown"}
    request = ApprovalRequest(id="r1", calls=(call, call.model_copy(update={"index": 1})), **both)
    run, sent = SimpleNamespace(id="w", signs=False), []

    async def decide(approval):
        sent.append(approval.verdict)
        return {}

    run.decide = decide
    for entered in ({}, {"left_out": [0]}, {"remember": "run"}):
        with pytest.raises(DecisionRefused, match="10 characters clipped; press w to see it"):
            await decided(run, request, "ana", "approve", shown_whole={"another"}, **entered)
    await decided(run, request, "ana", "reject")
    await decided(run, request, "ana", "approve", shown_whole={"shown"})

    assert sent == ["reject", "approve"]
