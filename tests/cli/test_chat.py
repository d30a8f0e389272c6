"""A person talks with an agent at a terminal: turns, approvals, words while they are said, and what is typed beside."""

import asyncio

import pytest

from backstay.testing import Reply
from tests.cli.commands import environment_of
from tests.cli.screen import ESC, chatting


def mails(*recipients, text="I write."):
    return Reply(text=text, calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"}) for to in recipients])


@pytest.fixture
def chat(opened):
    def chat(*arguments, **more):
        return chatting(*arguments, environment=environment_of(opened, **more))

    return chat


async def test_a_person_says_something_approves_and_goes_on(chat, scripts, opened):
    first, second = scripts.task(mails("one@chat.example"))["text"], scripts.task()["text"]
    async with chat("--by", "ana") as screen:
        await screen.shows("you>")
        screen.enter(first)
        shown = await screen.shows("[d]etach?")
        assert "to: one@chat.example" in shown
        screen.enter("a")
        await screen.shows("decided: approve by ana")
        await screen.shows("done")
        await screen.shows("you>")
        screen.enter(second)
        await screen.shows("completed")
        await screen.shows("you>")
        screen.enter("/quit")
        await screen.shows("come back with: backstay chat --session ")
        assert await screen.ended() == 0
    assert [to for to in opened.mailbox.sent() if to.endswith("@chat.example")] == ["one@chat.example"]
