"""A chat of ten turns at a driven terminal, with a killed worker, an approval, an undo, and a steer in mid-run."""

import asyncio
import sqlite3
from itertools import pairwise
from pathlib import Path

import pytest

import opening
from backstay.settings import Settings
from backstay.testing import Conversation, Reply
from tests.cli.screen import ESC, chatting, read_along
from tests.crash.case import open_case
from tests.nursery.nursery import COMMAND
from tests.requirements import promise
from tests.turns import Turns, assert_well_formed, finished

KEY = "test-key-of-the-scripted-model"
TOKEN = "sk-" + "Zx9q7W" * 6
PIECE = 9
"""So long are the model's pieces: both secrets are split over four of them at least."""
TOLD = "Sign it with Bo"
SESSION = "ten-turns"


class Scene:
    """What the model does in each turn, and where it waits for the test."""

    def __init__(self):
        self.turns = Turns()
        self.open = asyncio.Event()
        self.asked = asyncio.Event()
        self.texts = [
            self.turns.text(finished("The word of the first turn is heron.")),
            self.turns.text(self.from_memory),
            self.turns.text(self.mails, finished("Sent to one@ten.example.")),
            self.turns.text(self.slowly, self.slowly, finished("The worker died, and I did not.")),
            self.turns.text(self.waits, self.tells_what_it_was_told),
            self.turns.text(self.waits, self.leaks, finished("I have said too much.")),
            self.turns.text(self.from_memory),
            self.turns.text(self.mails, finished("Sent again.")),
            self.turns.text(finished("Nothing to do.")),
            self.turns.text(self.from_memory),
        ]

    def from_memory(self, talk: Conversation):
        """Only who was shown the first turn can say this."""
        return finished(f"I remember: {'the first turn is heron' in str(talk.messages)}.")

    def mails(self, _):
        return Reply(calls=[("mail__send_email", {"to": "one@ten.example", "subject": "s", "body": "b"})])

    async def slowly(self, _):
        self.asked.set()
        await asyncio.wait_for(self.open.wait(), 150)
        return Reply(text="I look around. ", calls=[("search_tools", {"query": "mail"})], piece=PIECE)

    async def waits(self, _):
        self.asked.set()
        await asyncio.wait_for(self.open.wait(), 150)
        return Reply(calls=[("search_tools", {"query": "mail"})])

    def tells_what_it_was_told(self, talk):
        return finished(f"I was told: {TOLD in str(talk.messages)}.")

    def leaks(self, _):
        text = f"Here it comes. The first one is {KEY}, and then there is {TOKEN}"
        return Reply(text=text, calls=[("search_tools", {"query": "c"})], piece=PIECE, pause_s=0.05)

    def shut(self):
        self.open.clear()
        self.asked.clear()


class Eavesdropper:
    """Read everything that ever stands in the table of deltas."""

    def __init__(self, database):
        self.database = database
        self.texts = {}

    def look(self):
        with sqlite3.connect(self.database, timeout=150) as connection:
            rows = connection.execute("SELECT run, position, stream, text FROM deltas ORDER BY position")
            self.texts |= {(run, stream, position): text for run, position, stream, text in rows}

    async def keep_looking(self):
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(0.02)

    def answers(self):
        """Every answer of the model as its pieces put it together."""
        whole = {}
        for (run, stream, _), text in sorted(self.texts.items()):
            whole[run, stream] = whole.get((run, stream), "") + text
        return list(whole.values())


@promise("sessions:turns")
@pytest.mark.thorough
async def test_ten_turns_with_a_kill_an_approval_an_undo_and_a_steer(temporal, nursery, tmp_path):
    scene = Scene()
    async with open_case(temporal, nursery, tmp_path / "case", rules=scene.turns) as case:
        working = await case.worker()
        settings = Settings.load(None, home=case.environment["BACKSTAY_HOME"])
        environment = {**case.environment, "BACKSTAY_URL": await page_of(case), "EDITOR": ""}
        listening = Eavesdropper(settings.home / "backstay.db")
        looking = asyncio.create_task(listening.keep_looking())
        try:
            async with chatting("--session", SESSION, "--by", "ana", environment=environment) as screen:
                await talk(screen, scene, case, working)
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
        check(case, listening, screen)
        await check_chain(case)


async def page_of(case):
    """Raise `backstay web` as a process of its own; return its address."""
    page = await case.nursery.raised(
        COMMAND, "web", "--port", "0", environment=case.environment, log=case.folder / "page.log"
    )
    async with asyncio.timeout(150):
        while "let somebody in with" not in page.said():
            assert not page.died.done(), page.said()
            await asyncio.sleep(0.05)
    return page.said().partition("backstay web ready: ")[2].split()[0]


async def talk(screen, scene, case, working):
    """Take the ten turns."""
    await screen.waits_for("you>")
    for number, text in enumerate(scene.texts, 1):
        scene.shut()
        screen.enter(text)
        await screen.shows(text)
        match number:
            case 2 | 7 | 10:
                await screen.shows("I remember: True.")
            case 3 | 8:
                await screen.shows("[d]etach?")
                screen.enter("a")
                await screen.shows("decided: approved by ana")
            case 4:
                await asyncio.wait_for(scene.asked.wait(), 150)
                working.kill()
                assert await asyncio.wait_for(asyncio.shield(working.died), 150) == -9
                working = await case.worker()
                scene.open.set()
                await screen.shows("The worker died, and I did not.", 120)
            case 5:
                await asyncio.wait_for(scene.asked.wait(), 150)
                screen.press(ESC)
                await screen.shows("tell it>")
                screen.enter(TOLD)
                await screen.shows("it reads that at its next step")
                scene.open.set()
                await screen.shows("I was told: True.")
            case 6:
                await asyncio.wait_for(scene.asked.wait(), 150)
                await read_along(Path(case.environment["BACKSTAY_HOME"]), f"chat-{SESSION}-{number}-")
                scene.open.set()
                await screen.shows("[REDACTED:openai_key]")
            case _:
                pass
        await screen.waits_for("you>", 120)
        if number == 8:
            screen.enter("/undo")
            await screen.shows("undo this? [y]es, [n]o:")
            screen.enter("y")
            await screen.shows("rolled_back")
            await screen.waits_for("you>")
    screen.enter("/session")
    await screen.shows("10 turns")
    await screen.waits_for("you>")
    screen.enter("/quit")
    assert await screen.ended() == 0


def check(case, listening, screen):
    """No planted secret stood in the store or on the screen, and mail went as decided."""
    answers = listening.answers()
    assert any("Here it comes." in answer for answer in answers), answers
    assert any("[REDACTED:known]" in answer and "[REDACTED:openai_key]" in answer for answer in answers), answers
    for secret in (KEY, TOKEN):
        for start in range(len(secret) - 7):
            part = secret[start : start + 8]
            assert all(part not in answer for answer in answers)
            assert part not in screen.all
    listening.texts.clear()
    listening.look()
    assert listening.texts == {}
    for request in case.model.requests:
        assert_well_formed(request)
    # The second mail was undone; the first stands.
    assert case.mailbox.sent() == ["one@ten.example"]
    assert case.mailbox.requests("recall_email") == 1


async def check_chain(case):
    """Each turn is a run that follows the one before, and nothing of what was said live stands in any history."""
    settings = Settings.load(None, home=case.environment["BACKSTAY_HOME"])
    async with asyncio.timeout(150):
        while True:
            query = f"WorkflowId STARTS_WITH 'chat-{SESSION}-'"
            found = {run.id async for run in case.client.list_workflows(query)}
            if len(found) == 10:
                break
            await asyncio.sleep(0.2)
    turns = sorted(found, key=lambda name: int(name.split("-")[-2]))
    async with opening.open_store(settings) as store:
        rows = [await store.runs.get(name) for name in turns]
    assert [row.follows for row in rows] == [None, *(before.run for before, _ in pairwise(rows))]
    for name in turns:
        history = await case.client.get_workflow_handle(name).fetch_history()
        assert "model.delta" not in history.to_json()
        assert KEY not in history.to_json()
