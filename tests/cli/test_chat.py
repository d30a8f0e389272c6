"""A person talks with an agent at a terminal: turns, approvals, words while they are said, and what is typed beside."""

import asyncio

import pytest
import pytest_asyncio

from backstay.testing import Conversation, Reply
from store.opening import open_store
from tests.cli.commands import environment_of, forked
from tests.cli.screen import ESC, chatting, read_along
from tests.engine import PLANS, PRICES, engine
from tests.memory.recorded import Recorded, remember
from tests.requirements import promise
from tests.turns import Turns, calls, finished
from tests.web.pages import served_page

POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
"""
KEY = "test-key-of-the-scripted-model"
TWO_MODELS = {**PRICES, "other": {"input": 2.0, "cached": 0.2, "output": 8.0}}


@pytest_asyncio.fixture(scope="module")
async def office(temporal, tmp_path_factory):
    folder, turns = tmp_path_factory.mktemp("chat"), Turns()
    async with (
        engine(temporal, folder, turns, policy=POLICY, profiles=PLANS, prices=TWO_MODELS, cached=100) as opened,
        served_page(opened) as page,
    ):
        yield opened, turns, page


@pytest.fixture
def opened(office):
    return office[0]


@pytest.fixture
def turns(office):
    return office[1]


@pytest.fixture
def chat(office, nursery):
    def chat(*arguments, **more):
        environment = environment_of(office[0], **more)
        return chatting(*arguments, environment=environment, nursery=nursery)

    return chat


def mail(*recipients, text="I write."):
    return Reply(text=text, calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"}) for to in recipients])


def sent(opened, domain):
    return [to for to in opened.mailbox.sent() if to.endswith(domain)]


async def ready(screen):
    await screen.waits_for("you>")


async def leave(screen):
    screen.enter("/quit")
    told = await screen.shows("come back with: backstay chat --session ")
    assert await screen.ended() == 0
    return told


class Gate:
    """A model that waits with an answer until the test says so."""

    def __init__(self, reply):
        self.reply = reply
        self.asked = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, talk: Conversation) -> Reply:
        self.asked.set()
        await asyncio.wait_for(self.open.wait(), 150)
        return self.reply(talk) if callable(self.reply) else self.reply

    def __repr__(self):
        return "a gate"


@promise("sessions:turns")
async def test_each_turn_goes_on_from_the_one_before_and_approvals_are_met_in_line(chat, turns, opened):
    first = turns.text(mail("one@inline.example"), finished("sent to one"))
    second = turns.text(lambda talk: finished(f"I wrote to {talk.calls('mail__send_email')[0].arguments['to']}"))
    async with chat("--by", "ana") as screen:
        await ready(screen)
        screen.enter(first)
        shown = await screen.shows("[d]etach?")
        assert "to: one@inline.example" in shown
        screen.enter("a")
        await screen.shows("decided: approved by ana")
        await screen.shows("sent to one")
        await ready(screen)
        # Nothing that was said has been erased by the panel below it.
        assert "decided: approved by ana" in screen.picture()
        screen.enter(second)
        await screen.shows("I wrote to one@inline.example")
        await ready(screen)
        await leave(screen)
    assert sent(opened, "@inline.example") == ["one@inline.example"]


@promise("sessions:words")
async def test_words_are_shown_while_they_are_said_without_secrets_and_nothing_acts_on_the_terminal(office, chat):
    (opened, turns, served), session = office, "read-along"
    hostile = "Look: \x1b]0;owned\x07\x1b[2J\x1b[31m red \u202e and\rover. "
    said = f"I begin with the first of them. {hostile}\nThe key is {KEY}. And that was all of it."
    first = Gate(Reply(calls=[("search_tools", {"query": "a"})]))
    gate = Gate(Reply(calls=[("search_tools", {"query": "b"})]))
    text = turns.text(
        first,
        Reply(text=said, calls=[("search_tools", {"query": "c"})], piece=4, pause_s=0.12),
        gate,
        Reply(calls=[("finish", {"summary": "It is over, and it went well."})], piece=5, pause_s=0.1),
    )
    async with chat("--session", session) as screen:
        await ready(screen)
        screen.enter(text)
        await asyncio.wait_for(first.asked.wait(), 150)
        (name,) = [name async for name in open_runs(opened, f"chat-{session}-")]
        run = await served.page.store.runs.get(name)
        await read_along(opened.settings.home, run.run)
        first.open.set()
        # The events of the step before come amid these words, and do not cut the line in two.
        await screen.shows("I begin with the first")
        # While the model still waits with its next answer.
        await asyncio.wait_for(gate.asked.wait(), 150)
        await screen.shows("[REDACTED:known]")
        assert not gate.open.is_set()
        gate.open.set()
        await screen.shows("completed")
        await ready(screen)
        assert "<U+001B>]0;owned<U+0007>" in screen.all
        assert "<U+202E>" in screen.all
        assert screen.drawn.title == ""
        assert KEY not in screen.all
        assert all(KEY[start : start + 10] not in screen.all for start in range(len(KEY) - 9))
        lines = [line for line in screen.picture().splitlines() if "It is over, and it went well." in line]
        assert 1 <= len(lines) <= 2  # once in the words, and once in the event
        await leave(screen)


@promise("sessions:esc")
async def test_esc_tells_a_working_run_something(chat, turns):
    gate = Gate(calls(("search_tools", {"query": "a"})))
    text = turns.text(gate, lambda talk: finished(f"heard: {'in French' in talk.last_text or _heard(talk)}"))
    async with chat("--by", "ana") as screen:
        await ready(screen)
        screen.enter(text)
        await asyncio.wait_for(gate.asked.wait(), 150)
        screen.press(ESC)
        await screen.shows("tell it>")
        screen.enter("Answer in French, please")
        await screen.shows("it reads that at its next step")
        gate.open.set()
        await screen.shows("heard: True")
        await ready(screen)
        await leave(screen)


def _heard(talk):
    return any("in French" in str(message.get("content")) for message in talk.messages)


@promise("sessions:early")
async def test_what_is_typed_before_a_request_is_shown_does_not_decide_it(chat, turns, opened):
    gate = Gate(mail("one@early.example"))
    text = turns.text(gate, finished("over"))
    async with chat("--by", "ana") as screen:
        await ready(screen)
        await screen.paste(f"{text}")
        screen.press("\ra\ra\r")
        await asyncio.wait_for(gate.asked.wait(), 150)
        screen.press("a\ra\r\ra\n")
        gate.open.set()
        await screen.shows("[d]etach?")
        # It still waits, and takes what is typed now.
        screen.enter("r")
        await screen.shows("why?")
        screen.enter("")
        await screen.shows("decided: rejected by ana")
        await ready(screen)
        await leave(screen)
    assert sent(opened, "@early.example") == []


@promise("sessions:pasted")
async def test_a_long_text_may_be_pasted_and_a_longer_one_is_refused(chat, turns, opened):
    text = turns.text(finished("read"))
    async with chat() as screen:
        await ready(screen)
        await screen.paste("x" * 1_000_000)
        await screen.shows("(pasted 1,000,000 characters, and 100,000 may be typed: put them in a file)")
        screen.press(ESC)
        # Drawn at once, both pastes would differ in a few signs, and only those would be shown.
        await ready(screen)
        await screen.paste("y" * 60_000)
        await screen.shows("[pasted 1: 60,000 characters]")
        screen.press(ESC)
        await ready(screen)
        await screen.paste(f"{text} {'word ' * 12_000}\nlast line")
        await screen.shows("[pasted 2: 60,020 characters]")
        screen.press("\r")
        await screen.shows("read")
        await ready(screen)
        await leave(screen)
    (told,) = [
        message["content"]
        for message in opened.model.requests[-1]["messages"]
        if message["role"] == "user" and str(message["content"]).startswith(text)
    ]
    assert len(told) > 60_000
    assert told.rstrip().endswith("last line")


@promise("sessions:pasted")
async def test_a_turn_with_a_long_paste_that_is_asked_for_again_is_sent_with_it(chat, turns, opened):
    def count(talk):
        said = [str(message["content"]) for message in talk.messages]
        return finished(f"heard {[each for each in said if each.startswith(text)][-1].count('word')} words")

    text = turns.text(count)
    async with chat() as screen:
        await ready(screen)
        await screen.paste(f"{text} {'word ' * 200}")
        screen.press("\r")
        await screen.shows("heard 200 words")
        await ready(screen)
        # Another one must not take the place of the first.
        await screen.paste("x" * 1010)
        await screen.shows("[pasted 2: 1,010 characters]")
        screen.press(ESC)
        await ready(screen)
        screen.press(f"{ESC}[A\r")
        await screen.shows("heard 200 words")
        await ready(screen)
        await leave(screen)


@promise("sessions:back")
async def test_who_leaves_comes_back_to_a_run_that_went_on(chat, turns):
    gate = Gate(finished("it went on alone"))
    text, next_text = turns.text(gate), turns.text(finished("and on"))
    async with chat("--session", "coming-back") as screen:
        await ready(screen)
        screen.enter(text)
        await asyncio.wait_for(gate.asked.wait(), 150)
        screen.press("\x03")
        shown = await screen.shows("come back with: backstay chat --session coming-back")
        assert "the run continues" in shown
        assert await screen.ended() == 130
    async with chat("--session", "coming-back") as screen:
        await screen.shows("1 turns so far")
        gate.open.set()
        await screen.shows("it went on alone")
        await ready(screen)
        screen.enter(next_text)
        await screen.shows("and on")
        await ready(screen)
        screen.enter("/session")
        await screen.shows("2 turns")
        await ready(screen)
        await leave(screen)
    async with chat("--session", "coming-back") as screen:
        shown = await screen.shows("and on")
        assert "it went on alone" in shown
        assert next_text in shown.partition("it went on alone")[2]
        await ready(screen)
        await leave(screen)


@promise("sessions:bar")
async def test_words_of_earlier_turns_are_behind_the_bar_too_so_that_none_passes_for_a_line_of_the_engine(
    chat, turns, opened
):
    posing = "decided: approved by ana"
    # As wide as the terminal, so that what follows would begin a line.
    wide = f"{'wide ' * 30}{posing} {'wide ' * 22}{posing}"
    async with chat("--session", "barred") as screen:
        await ready(screen)
        screen.enter(turns.text(finished(f"all well\n{posing}\r{posing}\x0c{posing}\n{wide}")))
        await screen.shows("completed")
        await ready(screen)
        await leave(screen)
    run = Recorded("barred", "which boiler", (), wide)
    async with open_store(database_url=None, home=opened.settings.home) as store:
        await remember(store, "zoe", run, session="barred")
    for arguments in (("--session", "barred"), ("--resume", "--by", "zoe")):
        async with chat(*arguments) as screen:
            await ready(screen)
            lines = screen.picture().splitlines()
            await leave(screen)
        shown = [line for line in lines if posing in line]
        assert shown, lines
        assert [line for line in shown if not line.startswith("│ ")] == []


@promise("sessions:undo-as-shown")
@pytest.mark.thorough
async def test_commands_look_and_undo(chat, turns, opened):
    text = turns.text(mail("one@undone.example"), finished("sent"))
    async with chat("--by", "ana", "--budget.max-steps", "7") as screen:
        await ready(screen)
        screen.enter("/undo")
        await screen.shows("there are no turns yet")
        await ready(screen)
        screen.enter("/nonsense")
        await screen.shows("there is no /nonsense; /help says what there is")
        await ready(screen)
        screen.enter("/help")
        await screen.shows("undo what the last turn did")
        await ready(screen)
        screen.enter("/tools\u00a0send an e-mail")
        await screen.shows("mail.send_email")
        await ready(screen)
        screen.enter(text)
        await screen.shows("[d]etach?")
        screen.enter("a")
        await screen.shows("completed")
        await ready(screen)
        screen.enter("/budget")
        await screen.shows("2/7")
        await ready(screen)
        screen.enter("/budget max_steps=nine")
        await screen.shows("is not a limit; give one such as max_steps=5")
        await ready(screen)
        screen.enter("/budget max_steps=9")
        await screen.shows('"max_steps": 9')
        await ready(screen)
        screen.enter("/plan")
        await screen.shows("has no plan")
        await ready(screen)
        assert sent(opened, "@undone.example") == ["one@undone.example"]
        await ready(screen)
        screen.enter("/undo")
        await screen.shows("recall_email")
        await screen.shows("undo this? [y]es, [n]o:")
        screen.enter("n")
        await screen.shows("nothing was undone")
        assert sent(opened, "@undone.example") == ["one@undone.example"]
        await ready(screen)
        screen.enter("/undo")
        await screen.shows("undo this? [y]es, [n]o:")
        screen.enter("y")
        await screen.shows("rolled_back")
        await ready(screen)
        await leave(screen)
    assert sent(opened, "@undone.example") == []


@promise("sessions:undo-as-shown")
async def test_what_an_undo_in_a_chat_has_shown_is_what_it_undoes(chat, turns, opened, nursery, tmp_path):
    text = turns.text(mail("one@shown.example"), mail("two@shown.example"), finished("sent"))
    async with chat("--by", "ana", "--session", "as-shown") as screen:
        await ready(screen)
        screen.enter(text)
        for to in ("one", "two"):
            await screen.shows(f"to: {to}@shown.example")
            await screen.shows("[d]etach?")
            screen.enter("a")
            await screen.shows("decided: approved by ana")
        await screen.shows("completed")
        await ready(screen)
        screen.enter("/undo")
        shown = await screen.shows("undo this? [y]es, [n]o:")
        assert "one@shown.example" in shown
        assert "two@shown.example" in shown
        given = {"environment": environment_of(opened), "folder": tmp_path}
        elsewhere = await forked(nursery, "undo", "last", "--to-step", "1", "--by", "bo", **given)
        assert elsewhere.code == 0, elsewhere.err
        assert sent(opened, "@shown.example") == ["one@shown.example"]
        screen.enter("y")
        await screen.shows("it has changed since it was shown")
        again = await screen.shows("undo this? [y]es, [n]o:")
        assert "one@shown.example" in again
        assert "two@shown.example" not in again
        assert sent(opened, "@shown.example") == ["one@shown.example"]
        screen.enter("y")
        await screen.shows("rolled_back")
        await ready(screen)
        await leave(screen)
    assert sent(opened, "@shown.example") == []


@promise("sessions:limit-twice")
async def test_a_limit_is_given_once_and_several_at_once(chat):
    async with chat() as screen:
        await ready(screen)
        for twice in ("max_steps=5 max_steps=9", "max-steps=5 max_steps=9"):
            screen.enter(f"/budget {twice}")
            await screen.shows("max_steps is there twice")
            await ready(screen)
        screen.enter("/budget max_steps=5 max_tool_calls=4")
        shown = await screen.shows('"max_tool_calls": 4')
        assert '"max_steps": 5' in shown
        assert '"max_steps": 9' not in shown
        await ready(screen)
        await leave(screen)


@promise("sessions:commands")
async def test_the_plan_of_the_last_turn_is_shown_with_its_steps(chat, turns):
    steps = [
        {"tool": "mail.list_sent", "arguments": {"to": "one@planned.example"}, "summary": "what they were sent"},
        {"tool": "mail.list_customers", "arguments": {"offset": 0, "limit": 1}, "summary": "who there is"},
    ]
    planned = turns.text(calls(("propose_plan", {"plan": {"title": "Look at both", "steps": steps}})), finished("read"))
    async with chat("--by", "ana") as screen:
        await ready(screen)
        screen.enter(planned)
        await screen.shows("completed")
        await ready(screen)
        screen.enter("/plan")
        shown = await screen.shows("states:")
        await ready(screen)
        assert ": Look at both" in shown
        assert "state COMPLETED" in shown
        first, second = (shown.index(f"mail.{tool}") for tool in ("list_sent", "list_customers"))
        assert first < shown.index("what they were sent") < second < shown.index("who there is")
        screen.enter("/plan p9")
        await screen.shows("plan: no plan p9; the plans are: p1")
        await ready(screen)
        await leave(screen)


@promise("sessions:model")
async def test_a_chosen_model_is_asked_from_the_next_turn_on_until_the_usual_one_is(chat, turns, opened):
    texts = [turns.text(finished(f"answer {number}")) for number in range(3)]
    async with chat("--session", "two-models") as screen:
        await ready(screen)
        for text, choice, said in zip(
            texts,
            ("/model other", "/model -", "/model"),
            ("model other, from the next turn on", "has chosen, from the next turn on", "the operator has chosen"),
            strict=True,
        ):
            screen.enter(text)
            await screen.shows("completed")
            await ready(screen)
            screen.enter(choice)
            await screen.shows(said)
            await ready(screen)
        await leave(screen)
    runs = [(await turn_of(opened, "two-models", number)).result() for number in (1, 2, 3)]
    used = [list((await run)["usage"]["models"]) for run in runs]
    asked = [request["model"] for request in opened.model.requests if any(text in str(request) for text in texts)]
    assert (used, asked) == ([["scripted"], ["other"], ["scripted"]], ["scripted", "other", "scripted"])


@promise("sessions:session")
async def test_a_turn_goes_on_in_the_session_that_was_chosen_and_knows_nothing_of_the_other(chat, turns, opened):
    def knows(talk):
        said = str(talk.messages)
        return finished(f"plum: {'a plum' in said}, pear: {'a pear' in said}")

    plum, pear = turns.text(finished("it is a plum")), turns.text(finished("it is a pear"))
    among_plums, among_pears = turns.text(knows), turns.text(knows)
    async with chat("--session", "plums") as screen:
        await ready(screen)
        for typed, said in (
            (plum, "completed"),
            ("/session pears", "session pears, 0 turns"),
            (pear, "completed"),
            ("/session plums", "session plums, 1 turns"),
            (among_plums, "plum: True, pear: False"),
            ("/session a b/c", "is not a session name"),
            ("/session pears", "session pears, 1 turns"),
            (among_pears, "plum: False, pear: True"),
        ):
            screen.enter(typed)
            await screen.shows(said)
            await ready(screen)
        await leave(screen)
        assert "come back with: backstay chat --session pears" in screen.all
    for session in ("plums", "pears"):
        first, second = [await turn_of(opened, session, number) for number in (1, 2)]
        result = await second.result()
        (started,) = [event for event in result["events"] if event["name"] == "run.started"]
        assert started["data"]["follows"] == first.id


async def turn_of(opened, session, number):
    (name,) = [name async for name in open_runs(opened, f"chat-{session}-{number}-")]
    return opened.client.get_workflow_handle(name)


@promise("sessions:turns")
@pytest.mark.thorough
async def test_a_turn_that_cannot_be_followed_is_left_out(chat, turns, opened):
    first, gate = turns.text(finished("the first")), Gate(finished("never"))
    second = turns.text(gate)
    third, fourth = (turns.text(lambda talk: finished(f"I know: {'the first' in str(talk.messages)}")) for _ in "34")
    async with chat("--session", "with-a-hole") as screen:
        await ready(screen)
        screen.enter(first)
        await screen.shows("completed")
        await ready(screen)
        screen.enter(second)
        await asyncio.wait_for(gate.asked.wait(), 150)
        (name,) = [name async for name in open_runs(opened, "chat-with-a-hole-2-")]
        await opened.client.get_workflow_handle(name).terminate("a test")
        await screen.shows("the run was terminated")
        gate.open.set()
        await ready(screen)
        screen.enter(third)
        await screen.shows("I know: True")
        await ready(screen)
        screen.enter("/model gpt-typo")
        await screen.shows("from the next turn on")
        await ready(screen)
        screen.enter(turns.text())
        await screen.shows("no price is known for 'gpt-typo'")
        await ready(screen)
        await leave(screen)
    async with chat("--session", "with-a-hole") as screen:
        await screen.shows("2 turns so far")
        await ready(screen)
        screen.enter(fourth)
        await screen.shows("I know: True")
        await ready(screen)
        await leave(screen)


async def open_runs(opened, prefix):
    async with asyncio.timeout(150):
        while True:
            found = [run.id async for run in opened.client.list_workflows(f"WorkflowId STARTS_WITH '{prefix}'")]
            if found:
                break
            await asyncio.sleep(0.2)
    for name in found:
        yield name


@promise("sessions:no-store")
async def test_without_a_store_the_chat_goes_on_and_says_so_once(chat, turns, tmp_path):
    text = turns.text(calls(("search_tools", {"query": "a"})), finished("no words, but an end"))
    async with chat(BACKSTAY_HOME=str(tmp_path / "elsewhere")) as screen:
        await screen.shows("what the model says is shown when it has said it: there is no store in ")
        await ready(screen)
        screen.enter(text)
        await screen.shows("no words, but an end")
        await ready(screen)
        assert screen.all.count("there is no store in") == 1
        await leave(screen)
    assert not (tmp_path / "elsewhere").exists()


@promise("sessions:no-terminal")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [([], "chat: needs a terminal to type at"), (["--session", "a b"], "chat: needs a terminal")],
)
async def test_without_a_terminal_it_says_what_to_use_instead(opened, nursery, tmp_path, arguments, said):
    done = await forked(nursery, "chat", *arguments, environment=environment_of(opened), folder=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@promise("sessions:session-name")
async def test_a_session_that_cannot_be_named_so_is_refused(chat):
    async with chat("--session", "a b/c") as screen:
        await screen.shows("--session: 'a b/c' is not a session name; use up to 60 letters, digits, - _ .")
        assert await screen.ended() == 2


@promise("sessions:resume")
async def test_a_chat_is_resumed_where_memory_says_it_was_left_and_shows_its_last_answers(chat, turns, opened):
    async with chat("--resume", "--by", "nobody") as screen:
        await screen.shows("nothing of a session is remembered for nobody")
        assert await screen.ended() == 2
    run = Recorded("resumed", "which boiler", (), "It was the boiler of Zwolle.")
    async with open_store(database_url=None, home=opened.settings.home) as store:
        await remember(store, "ana", run, session="the-boiler")
    async with chat("--resume", "--by", "ana") as screen:
        await screen.shows("2026-03-04: It was the boiler of Zwolle.")
        await ready(screen)
        screen.enter(turns.text(finished("I go on.")))
        await screen.shows("I go on.")
        await ready(screen)
        screen.enter("/quit")
        await screen.shows("come back with: backstay chat --session the-boiler")
        assert await screen.ended() == 0
