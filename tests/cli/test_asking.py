"""What a person at a terminal can answer about a call whose outcome nobody knows."""

import json

import pytest

from backstay.approvals.approval import ApprovalRequest
from backstay.client import Backstay
from backstay.testing import Reply
from gateways.terminal.asking.prompt import _KEYS, Prompt, _key
from gateways.terminal.terminal import Terminal
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
    given = {"toolbox": losing(tmp_path), "policy": "default: {write_safe: allow}", "request_deadline_seconds": 3}
    async with engine(temporal, tmp_path, scripts, **given) as running:
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
