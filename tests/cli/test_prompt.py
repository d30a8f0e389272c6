"""What a person at a terminal sees and types."""

import asyncio
import json
import re

import pytest

from backstay.client import Backstay
from backstay.testing import Reply
from tests.cli.commands import BACKSTAY, at_terminal, environment_of
from tests.requirements import promise
from tests.sizes import spread


def mails(*recipients, text="I write.", body="b"):
    return Reply(text=text, calls=[("mail__send_email", {"to": to, "subject": "s", "body": body}) for to in recipients])


@pytest.fixture
def person(opened, nursery):
    def person(*arguments, **more):
        return at_terminal(*BACKSTAY, *arguments, environment=environment_of(opened, **more), nursery=nursery)

    return person


def sent(opened, domain):
    return sorted(to for to in opened.mailbox.sent() if to.endswith(domain))


@promise("clients:cli-run")
@pytest.mark.thorough
async def test_a_person_sees_what_would_be_called_and_approves_it(person, scripts, opened):
    text = scripts.task(mails("one@seen.example", text="Trust me."))["text"]

    async with person("run", text, "--by", "ana") as terminal:
        shown = await terminal.shows("[d]etach?")
        terminal.type("a")
        said = await terminal.shows("decided: approved by ana")
        code, out = await terminal.ended()

    lines = [line.rstrip() for line in shown.splitlines()]
    assert any(line.endswith("  [0] mail.send_email  (write_safe)") for line in lines)
    assert "        to: one@seen.example" in lines
    assert "        can be undone: recall_email, with message_id from its answer" in lines
    assert any(line.startswith("  asked by rule: default: write_safe") for line in lines)
    assert "  the model says (nobody checked this): Trust me." in lines
    menu = "[a]pprove, [e]dit, [r]eject, [m]ore choices, [d]etach?"
    assert menu in shown
    assert (code, out) == (0, "done\n")
    assert "not accepted" not in said
    assert sent(opened, "@seen.example") == ["one@seen.example"]


@promise("clients:cli-run")
async def test_live_steps_come_with_budget_bars(person, scripts):
    text = scripts.task(mails("one@bars.example"))["text"]

    async with person("run", text, "--id", "with-bars") as terminal:
        shown = await terminal.shows("[d]etach?")
        terminal.type("a")
        shown += await terminal.shows("completed")
        await terminal.ended()
    async with person("undo", "with-bars") as terminal:
        undone = await terminal.shows("undone by mail.recall_email(")
        await terminal.ended()

    assert undone.count('mail.send_email {"to":"one@bars.example",') == 1
    assert "rolled_back" in undone
    assert "0/10" not in undone.partition("rolled_back")[2]
    assert not re.search(r"run\.(started|ended)|search\.run|model\.asked|approval\.asked|action\.called", shown)
    assert re.search(r"\d\d:\d\d:\d\d  step 1  mail\.send_email \{", shown)
    assert shown.count("decided: approved") == 1
    assert shown.count("completed") == 1
    assert "━" in shown
    assert "steps" in shown
    assert "USD" in shown


@promise("clients:prompt")
@pytest.mark.thorough
async def test_a_person_changes_the_arguments_in_one_line_after_a_slip(person, scripts, opened):
    text = scripts.task(mails("one@inline.example"))["text"]

    async with person("run", text) as terminal:
        await terminal.shows("[d]etach?")
        terminal.type("e")
        await terminal.shows("names: to, subject, body:")
        terminal.type('{"to": 7}')
        await terminal.shows("not accepted")
        await terminal.shows("[d]etach?")
        terminal.type("e")
        await terminal.shows("names: to, subject, body:")
        terminal.type('{"to": "two@inline.example"}')
        await terminal.shows("~ to: one@inline.example -> two@inline.example")
        await terminal.shows("decided: changed")
        await terminal.shows("CHANGED by")
        await terminal.shows("[d]etach?")
        before = sent(opened, "@inline.example")
        terminal.type("a")
        code, _ = await terminal.ended()

    assert before == []

    assert (code, sent(opened, "@inline.example")) == (0, ["two@inline.example"])


@promise("clients:prompt")
@pytest.mark.thorough
async def test_a_person_changes_the_arguments_in_an_editor(person, scripts, opened, tmp_path):
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i s/one@edited/two@edited/ "$1"\n', encoding="utf-8")
    editor.chmod(0o755)
    text = scripts.task(mails("zero@edited.example", "one@edited.example"))["text"]

    async with person("run", text, EDITOR=str(editor)) as terminal:
        await terminal.shows("[d]etach?")
        terminal.type("e")
        await terminal.shows("which calls? numbers")
        terminal.type("1")
        await terminal.shows("decided: changed")
        await terminal.shows("[d]etach?")
        before = sent(opened, "@edited.example")
        terminal.type("a")
        await terminal.ended()

    assert before == []
    assert sent(opened, "@edited.example") == ["two@edited.example", "zero@edited.example"]


@promise("clients:prompt-deleted")
async def test_a_required_argument_that_is_deleted_in_the_editor_is_refused(person, scripts, opened, tmp_path):
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i /^body:/d "$1"\n', encoding="utf-8")
    editor.chmod(0o755)
    text = scripts.task(mails("one@deleted.example"))["text"]

    async with person("run", text, EDITOR=str(editor)) as terminal:
        await terminal.shows("[d]etach?")
        terminal.type("e")
        said = await terminal.shows("body is required and cannot be left out")
        await terminal.shows("[d]etach?")
        terminal.type("r")
        await terminal.shows("why?")
        terminal.type("")
        await terminal.ended()

    assert "- body: b" in said
    assert sent(opened, "@deleted.example") == []


@promise("approvals:edited-lines")
async def test_lines_are_edited_as_lines_and_the_prompt_shows_what_was_changed(person, scripts, opened, tmp_path):
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i s/second/2nd/ "$1"\n', encoding="utf-8")
    editor.chmod(0o755)
    body = "first\nsecond\u202e\n" + "x" * 3000
    text = scripts.task(mails("one@lines.example", body=body))["text"]

    async with person("run", text, EDITOR=str(editor)) as terminal:
        await terminal.shows("[d]etach?")
        terminal.type("w")
        shown = await terminal.shows("[d]etach?")
        terminal.type("e")
        said = await terminal.shows("decided: changed")
        await terminal.shows("[d]etach?")
        terminal.type("w")
        await terminal.shows("[d]etach?")
        terminal.type("a")
        await terminal.ended()

    assert "        │ second<U+202E>" in [line.rstrip() for line in shown.splitlines()]
    assert "        ┆ xxxx" in shown
    assert [line for line in map(str.rstrip, said.splitlines()) if line.startswith("  ")][:4] == [
        *("  ~ body:", "  │ @@ -1,3 +1,3 @@", "  │  first", "  │ -second<U+202E>"),
    ]
    (row,) = opened.mailbox.rows("SELECT body FROM sent WHERE recipient = ?", "one@lines.example")
    assert row[0] == body.replace("second", "2nd")


@promise("clients:prompt")
@pytest.mark.thorough
async def test_a_person_chooses_for_each_call_of_a_batch(person, scripts, opened):
    text = scripts.task(mails("one@each.example", "two@each.example"))["text"]

    async with person("run", text) as terminal:
        await terminal.shows("[c]hoose for each call")
        terminal.type("c")
        await terminal.shows("[0] mail.send_email: [a]pprove, [r]eject")
        terminal.type("r")
        await terminal.shows("[1] mail.send_email: [a]pprove, [r]eject")
        terminal.type("a")
        await terminal.shows("decided: approved")
        await terminal.ended()

    assert sent(opened, "@each.example") == ["two@each.example"]


@promise("clients:prompt-whole")
@pytest.mark.thorough
async def test_whoever_approves_a_plan_with_steps_that_are_not_shown_is_shown_them_first(person, opened, tmp_path):
    steps = [{"tool": "mail.list_customers", "arguments": {"limit": 1}}] * 120
    unseen = {"tool": "mail.send_email", "arguments": {"to": "one@unseen.example", "subject": "s", "body": "b"}}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"steps": [*steps, unseen]}), encoding="utf-8")

    async with person("run", "--plan", str(plan), "--budget.max-tool-calls", "121") as terminal:
        menu = await terminal.shows("[d]etach?")
        terminal.type("a")
        await terminal.shows("not shown yet: 1 more step not shown; press w to see all of it")
        await terminal.shows("[d]etach?")
        terminal.type("w")
        whole = await terminal.shows("[d]etach?")
        terminal.type("r")
        await terminal.shows("why?")
        terminal.type("")
        await terminal.ended()

    assert sent(opened, "@unseen.example") == []
    assert "one@unseen.example" not in menu
    assert "one@unseen.example" in whole
    assert "[a]pprove all of it" not in menu
    assert "[a]pprove all of it" in whole


@promise("clients:prompt-whole")
@pytest.mark.parametrize("size", spread([7_000, 3_000], 1))
async def test_a_long_letter_is_approved_at_the_prompt_only_after_all_of_it_was_shown(person, scripts, opened, size):
    body = "line\n" * (size // 5) + "the last words"
    text = scripts.task(mails(f"one@long{size}.example", body=body))["text"]

    async with person("run", text) as terminal:
        first = await terminal.shows("[d]etach?")
        terminal.type("a")
        await terminal.shows("press w to see all of it")
        await terminal.shows("[d]etach?")
        before = sent(opened, f"@long{size}.example")
        terminal.type("w")
        whole = await terminal.shows("[d]etach?")
        terminal.type("a")
        await terminal.shows("decided: approved")
        await terminal.ended()

    assert before == []
    assert "the last words" not in first
    assert "the last words" in whole
    assert sent(opened, f"@long{size}.example") == [f"one@long{size}.example"]


@promise("clients:prompt-whole-line")
async def test_a_letter_of_one_long_line_is_approved_after_its_last_words_were_shown_too(person, opened, tmp_path):
    arguments = {"to": "one@lengthy.example", "subject": "s", "body": f"{'word ' * 5400}lastwords"}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"steps": [{"tool": "mail.send_email", "arguments": arguments}]}), encoding="utf-8")

    async with person("run", "--plan", str(plan)) as terminal:
        await terminal.shows("[d]etach?")
        terminal.type("w")
        whole = await terminal.shows("[d]etach?")
        terminal.type("r")
        await terminal.shows("why?")
        terminal.type("")
        await terminal.ended()

    assert "lastwords" in whole
    assert whole.count("word") == 5401


@promise("clients:prompt-dots")
async def test_a_plan_that_says_and_so_on_is_approved_once_all_of_it_was_shown(person, opened, tmp_path):
    reads = {"tool": "mail.list_sent", "arguments": {"to": "bo … cy"}}
    writes = {"tool": "mail.send_email", "arguments": {"to": "one@dots.example", "subject": "…", "body": "and so on …"}}
    plans = []
    for name, steps in {"asked": [writes], "both": [reads, writes]}.items():
        plans.append(tmp_path / f"{name}.json")
        plans[-1].write_text(json.dumps({"steps": steps}), encoding="utf-8")

    async with person("run", "--plan", str(plans[0])) as terminal:
        await terminal.shows("[a]pprove all of it")
        await terminal.shows("[d]etach?")
        terminal.type("a")
        await terminal.ended()
    async with person("run", "--plan", str(plans[1])) as terminal:
        await terminal.shows("see the [w]hole of it")
        await terminal.shows("[d]etach?")
        terminal.type("w")
        await terminal.shows("[a]pprove all of it")
        await terminal.shows("[d]etach?")
        terminal.type("a")
        await terminal.ended()

    assert sent(opened, "@dots.example") == ["one@dots.example"] * 2


class Gate:
    """A model that waits with an answer until the test says so."""

    def __init__(self, reply):
        self.reply = reply
        self.asked = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, _talk):
        self.asked.set()
        await asyncio.wait_for(self.open.wait(), 150)
        return self.reply

    def __repr__(self):
        return "a gate"


@promise("clients:prompt-typed-ahead")
@pytest.mark.parametrize("command", ["run", "attach"])
async def test_keys_that_were_typed_before_a_question_stood_there_do_not_decide_it(person, scripts, opened, command):
    gate, domain = Gate(mails(f"one@ahead-{command}.example")), f"@ahead-{command}.example"
    text = scripts.task(gate)["text"]
    arguments = ["run", text]
    if command == "attach":
        run = await Backstay(opened.client, task_queue=opened.settings.task_queue).start(scripts.task(gate))
        arguments = ["attach", run.id]

    async with person(*arguments) as terminal:
        await asyncio.wait_for(gate.asked.wait(), 150)
        terminal.type("a")
        terminal.type("a")
        gate.open.set()
        await terminal.shows("[d]etach?")
        terminal.type("r")
        await terminal.shows("why?")
        terminal.type("unseen")
        await terminal.shows("decided: rejected")
        await terminal.ended()

    assert sent(opened, domain) == []


@promise("clients:prompt-end")
@pytest.mark.parametrize("key", spread(["r", "e", "s", "c"], 2))
async def test_the_end_of_the_input_decides_nothing_at_any_question(person, scripts, opened, key):
    domain = f"@end-{key}.example"
    text = scripts.task(mails(f"one{domain}", f"two{domain}"))["text"]
    asks = {"r": "why?", "s": "why?", "e": "which calls? numbers", "c": "approve all the [rest]"}

    async with person("run", text, "--id", f"end-{key}") as terminal:
        await terminal.shows("[d]etach?")
        terminal.type(key)
        await terminal.shows(asks[key])
        terminal.seat.press("\x04")
        if key == "c":
            await terminal.shows("nothing was decided")
            await terminal.shows("[d]etach?")
            terminal.seat.press("\x04")
        code, _ = await terminal.ended()

    run = Backstay(opened.client).run(f"end-{key}")
    assert (code, [request.id for request in await run.pending()]) == (130, ["r1"])
    await run.reject("r1", by="ana")
    await run.result()
    assert sent(opened, domain) == []


@promise("clients:prompt")
@pytest.mark.thorough
async def test_a_person_rejects_and_stops_the_run(person, scripts, opened):
    text = scripts.task(mails("one@free.example"), mails("one@halt.example"))["text"]

    async with person("run", text) as terminal:
        await terminal.shows("[d]etach?")
        terminal.type("s")
        await terminal.shows("why?")
        terminal.type("enough")
        code, out = await terminal.ended()

    assert code == 5
    assert "enough" in out
    assert sent(opened, "@halt.example") == []


@promise("clients:prompt")
async def test_a_person_answers_a_question(person, scripts, opened):
    text = scripts.task(Reply(calls=[("ask_person", {"question": "Which colour?"})]))["text"]

    async with person("run", text) as terminal:
        shown = await terminal.shows("your answer (press Enter alone for other choices):")
        terminal.type("")
        await terminal.shows("[a]nswer, [r]eject, [d]etach?")
        terminal.type("answer")
        await terminal.shows("answer:")
        terminal.type("light blue")
        await terminal.shows("decided: answered")
        await terminal.ended()

    assert "Which colour?" in shown
    assert "light blue" in str(opened.model.requests[-1]["messages"])


@promise("clients:prompt-words")
async def test_words_decide_as_letters_do_and_further_choices_are_shown_when_they_are_asked_for(
    person, scripts, opened
):
    text = scripts.task(mails("one@words.example"), mails("two@words.example"))["text"]

    async with person("run", text) as terminal:
        await terminal.shows("[m]ore choices, [d]etach?")
        terminal.type("more")
        shown = await terminal.shows("more: reject and [s]top the run, for this r[u]n, a[l]ways, ne[v]er")
        await terminal.shows("[d]etach?")
        terminal.type("perhaps")
        await terminal.shows("type one of the letters in brackets, or its word; ? shows the request again")
        await terminal.shows("[d]etach?")
        terminal.type("no")
        await terminal.shows("why?")
        terminal.type("not this one")
        await terminal.shows("decided: rejected")
        await terminal.shows("two@words.example")
        await terminal.shows("[d]etach?")
        terminal.type("Yes")
        code, _ = await terminal.ended()

    assert "decided" not in shown
    assert code == 0
    assert sent(opened, "@words.example") == ["two@words.example"]


@promise("clients:elsewhere")
async def test_a_request_that_is_decided_elsewhere_leaves_the_prompt(person, scripts, opened):
    backstay = Backstay(opened.client, task_queue=opened.settings.task_queue)
    text = scripts.task(mails("one@taken.example"))["text"]

    async with person("run", text, "--id", "taken") as terminal:
        await terminal.shows("[d]etach?")
        await backstay.run("taken").reject("r1", by="bo")
        await terminal.shows("r1 was decided elsewhere")
        code, _ = await terminal.ended()

    assert (code, sent(opened, "@taken.example")) == (0, [])


@promise("clients:cli-detach")
@pytest.mark.thorough
@pytest.mark.parametrize("how", ["d", "Ctrl-C"])
async def test_letting_go_leaves_the_run_going_and_says_how_to_come_back(person, scripts, opened, how):
    text = scripts.task(mails("one@detached.example"))["text"]
    workflow_id = f"detached-{how}"

    async with person("run", text, "--id", workflow_id) as terminal:
        await terminal.shows("[d]etach?")
        terminal.type("d") if how == "d" else terminal.interrupt()
        await terminal.shows(f"backstay attach {workflow_id}")
        code, out = await terminal.ended()
    assert (code, out) == (130, "")

    async with person("attach", workflow_id) as terminal:
        await terminal.shows("[d]etach?")
        terminal.type("r")
        await terminal.shows("why?")
        terminal.type("")
        code, _ = await terminal.ended()
    assert code == 0


@promise("clients:cli-detach")
async def test_ctrl_c_lets_go_while_the_run_is_at_work(person, scripts, opened):
    gone = asyncio.Event()
    busy = Reply(status=429, headers={"retry-after": "1"})
    text = scripts.task(lambda _: mails("one@free.example") if gone.is_set() else busy)["text"]

    async with person("run", text, "--id", "at-work", "--output", "json") as terminal:
        await terminal.shows("run at-work")
        terminal.interrupt()
        await terminal.shows("backstay attach at-work")
        code, out = await terminal.ended()
    gone.set()

    assert (code, out) == (130, "")
    assert (await Backstay(opened.client).run("at-work").result()).success
