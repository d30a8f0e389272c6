"""The pictures of the page, of a chat and of Slack show them as they are now; one stage and one browser serve all."""

import sqlite3
from contextlib import closing

import pytest
import pytest_asyncio

from docs.browser import open_browser
from docs.page_pictures import ANA, SHOTS, read, scene
from docs.pictures import fault_of
from docs.screenshots import COLUMNS, LINES, TASK, chat_words, read_at_once, slack
from tests.cli.screen import chatting
from tests.engine import ROOT, share_images
from tests.requirements import promise

pytestmark = pytest.mark.soak


@pytest_asyncio.fixture(scope="module")
async def taken(tmp_path_factory):
    """The stage, a browser, and what its page showed before any test did something there."""
    home = share_images(tmp_path_factory.mktemp("pictures") / "home")
    async with scene(home) as (stage, link), open_browser() as browser:
        shown = await read(browser, link)
        # Mails are numbered, and where a line of the chat is clipped depends on how long the numbers are.
        with closing(sqlite3.connect(stage.mailbox, timeout=150)) as mailbox, mailbox:
            mailbox.execute("DELETE FROM sent")
        yield stage, browser, shown


@promise("page:pictures")
def test_what_the_pictures_of_the_page_show_is_what_the_page_shows(taken):
    _, _, shown = taken

    assert set(shown) == {shot.name for shot in SHOTS}
    assert [fault for name, text in shown.items() if (fault := fault_of(name, text))] == []


@promise("docs:picture-chat")
async def test_what_the_picture_of_a_chat_shows_is_what_a_terminal_shows(taken, nursery):
    environment = read_at_once(taken[0]) | {"PYTHONPATH": str(ROOT)}
    size = {"columns": COLUMNS, "lines": LINES}
    async with chatting("--by", ANA, environment=environment, nursery=nursery, **size) as screen:
        await screen.waits_for("you>")
        screen.enter(TASK)
        await screen.shows("[d]etach?")
        screen.enter("a")
        await screen.shows("undo them with")
        await screen.waits_for("you>")
        shown = chat_words(screen.picture())
    assert not fault_of("chat", shown), shown


@promise("docs:picture-slack")
async def test_what_the_picture_of_slack_shows_is_what_is_drawn_for_slack(taken):
    stage, browser, _ = taken
    shown = await slack(stage, browser)
    assert not fault_of("slack", shown), shown
