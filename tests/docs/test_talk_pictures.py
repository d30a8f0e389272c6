"""The pictures of a chat and of Slack show them as they are now."""

import pytest_asyncio

from docs.browser import open_browser
from docs.page_pictures import ANA
from docs.pictures import fault_of
from docs.screenshots import COLUMNS, LINES, TASK, chat_words, read_at_once, slack, stage_for
from tests.cli.screen import chatting
from tests.engine import ROOT, share_images


@pytest_asyncio.fixture(scope="module")
async def stage(tmp_path_factory):
    stage = stage_for(share_images(tmp_path_factory.mktemp("talk") / "home"))
    try:
        await stage.set_up()
        yield stage
    finally:
        await stage.take_down()


async def test_what_the_picture_of_a_chat_shows_is_what_a_terminal_shows(stage):
    environment = read_at_once(stage) | {"PYTHONPATH": str(ROOT)}
    async with chatting("--by", ANA, environment=environment, columns=COLUMNS, lines=LINES) as screen:
        await screen.waits_for("you>")
        screen.enter(TASK)
        await screen.shows("[d]etach?")
        screen.enter("a")
        await screen.shows("take them back")
        await screen.waits_for("you>")
        shown = chat_words(screen.picture())
    assert not fault_of("chat", shown), shown


async def test_what_the_picture_of_slack_shows_is_what_is_drawn_for_slack(stage):
    async with open_browser() as browser:
        shown = await slack(stage, browser)
    assert not fault_of("slack", shown), shown
