"""Which chats read along at the page what the model says, and what the others say instead."""

import asyncio

import pytest
import pytest_asyncio
from pydantic import SecretStr

from backstay.testing import Reply
from tests.cli.commands import environment_of
from tests.cli.screen import chatting, read_along
from tests.engine import engine
from tests.requirements import promise
from tests.sizes import spread
from tests.turns import Turns, calls, finished
from tests.web.pages import KEY, PROXY, SECRET, served_page

POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
ask: [{tool: "mail.send_email", approvers: [ana]}]
"""
LOOK = calls(("search_tools", {"query": "mail"}))
TROUBLE = "no live text: the page at"
OIDC = {"web_identity": "oidc", "oidc_issuer": "http://127.0.0.1:9", "oidc_audience": "the-page"}


@pytest_asyncio.fixture(scope="module")
async def office(temporal, tmp_path_factory):
    turns = Turns()
    folder = tmp_path_factory.mktemp("read-along")
    async with engine(temporal, folder, turns, policy=POLICY, cached=100, approver_key=KEY) as opened:
        yield opened, turns


class Gate:
    """A model that waits with an answer until the test says so."""

    def __init__(self, reply):
        self.reply = reply
        self.open = asyncio.Event()

    async def __call__(self, _):
        await asyncio.wait_for(self.open.wait(), 150)
        return self.reply


class Doorkeeper:
    """Count who asks to be let in, and leave the rest to the page's own."""

    def __init__(self, page):
        self.own, page.identity = page.identity, self
        self.asked = 0

    async def visitor(self, request):
        self.asked += 1
        return await self.own.visitor(request)

    async def has_asked(self, times):
        async with asyncio.timeout(150):
            while self.asked < times:
                await asyncio.sleep(0.05)


def chat(opened, url, *arguments, **more):
    environment = environment_of(opened, BACKSTAY_URL=url, BACKSTAY_APPROVER_KEY=KEY, **more)
    return chatting(*arguments, environment=environment)


async def leave(screen):
    await screen.waits_for("you>")
    screen.enter("/quit")
    assert await screen.ended() == 0


@promise("sessions:unread")
async def test_who_may_not_see_the_run_is_told_so_once_and_reads_along_as_soon_as_it_asks_them(office):
    (opened, turns), session = office, "not-seen"
    first = Gate(calls(("mail__send_email", {"to": "one@seen.example", "subject": "s", "body": "b"})))
    second, third, last = Gate(LOOK), Gate(finished("over")), Gate(finished("over again"))
    text = turns.text(first, second, Reply(text="Now you read along. ", calls=LOOK.calls, piece=9), third)
    next_text = turns.text(last)
    async with served_page(opened) as served, chat(opened, served.url, "--session", session, "--by", "ana") as screen:
        keeper = Doorkeeper(served.page)
        await screen.waits_for("you>")
        screen.enter(text)
        told = await screen.shows(f"{TROUBLE} {served.url} shows ana no such run") + await screen.shows("when it ends")
        assert "to its user (--user)" in told
        first.open.set()
        await screen.shows("[d]etach?")
        screen.enter("a")
        await screen.shows("decided: approved by ana")
        await read_along(opened.settings.home, f"chat-{session}-1-")
        second.open.set()
        await screen.shows("Now you read along.")
        third.open.set()
        await screen.shows("completed")
        await screen.waits_for("you>")
        asked = keeper.asked
        screen.enter(next_text)
        # Often enough to say it again.
        await keeper.has_asked(asked + 4)
        last.open.set()
        await screen.shows("completed")
        await leave(screen)
        assert screen.all.count(TROUBLE) == 1


@promise("sessions:of-user")
async def test_the_user_of_the_run_reads_along_where_the_policy_names_others(office):
    (opened, turns), session = office, "own"
    first, second = Gate(LOOK), Gate(finished("over"))
    text = turns.text(first, Reply(text="It is yours to read. ", calls=LOOK.calls, piece=9), second)
    chatting_as = ("--session", session, "--by", "bo", "--user", "bo")
    async with served_page(opened) as served, chat(opened, served.url, *chatting_as) as screen:
        await screen.waits_for("you>")
        screen.enter(text)
        await read_along(opened.settings.home, f"chat-{session}-1-")
        first.open.set()
        await screen.shows("It is yours to read.")
        second.open.set()
        await screen.shows("completed")
        await leave(screen)
        assert "no live text" not in screen.all


@promise("sessions:not-let-in")
@pytest.mark.parametrize(
    ("page", "environment", "by", "why"),
    spread(
        [
            pytest.param(
                {"web_identity": "header", "web_proxy_secret": SecretStr(PROXY)},
                {"BACKSTAY_WEB_IDENTITY": "header"},
                "ana",
                "it knows people by a proxy (BACKSTAY_WEB_IDENTITY=header)",
                id="behind-a-proxy",
            ),
            pytest.param(
                OIDC,
                {"BACKSTAY_WEB_IDENTITY": "oidc"},
                "ana",
                "it knows people by a proxy (BACKSTAY_WEB_IDENTITY=oidc)",
                id="by-id-token",
            ),
            pytest.param(
                {"web_secret": SecretStr(SECRET)},
                {},
                "ana",
                "it does not take the link of this chat",
                id="another-secret",
            ),
            pytest.param({"url": "http://0.0.0.0"}, {}, "ana", "which lets in on this machine only", id="elsewhere"),
            pytest.param({}, {}, "ana, bo", "--by: your name cannot be used here", id="a-name-for-no-link"),
        ],
        1,
    ),
)
async def test_a_chat_that_the_page_does_not_know_says_why_once_and_asks_once_in_a_turn(
    office, page, environment, by, why
):
    opened, turns = office
    gates = Gate(LOOK), Gate(LOOK)
    texts = [turns.text(gate, LOOK, LOOK, LOOK, finished("over")) for gate in gates]
    async with served_page(opened, **page) as served:
        keeper = Doorkeeper(served.page)
        url = served.url if "url" not in page else served.url.replace("127.0.0.1", "0.0.0.0")
        async with chat(opened, url, "--by", by, **environment) as screen:
            for number, (text, gate) in enumerate(zip(texts, gates, strict=True), 1):
                await screen.waits_for("you>")
                screen.enter(text)
                if number == 1:
                    await screen.shows(f"{TROUBLE} {url} does not let this chat in: ")
                    assert why in await screen.shows("when it ends")
                await keeper.has_asked(number)
                gate.open.set()
                await screen.shows("completed")
            await leave(screen)
    assert screen.all.count(TROUBLE) == 1
    assert keeper.asked == 2
