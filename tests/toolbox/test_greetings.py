"""How a connection begins: servers that are older than the newest revision, and servers that only say they speak it.

VoidNullable/lific#57, 0xMassi/webclaw#107, dmtrKovalenko/fff#797, SylphxAI/pdf-reader-mcp#598, github/copilot-cli#4809:
servers that end at any first message but `initialize`. kglite 0.21.2 from PyPI takes no call without the handshake.
"""

import pytest

from backstay.errors import OutcomeUnknown
from tests.requirements import promise


async def intent():
    """Stand for a committed intent."""


@pytest.fixture
def greeted(servers, opened, tmp_path):
    """Open a toolbox with a server that minds how a connection begins; returns it, and what the server did."""
    log = tmp_path / "log"

    def started(how):
        entry = {"command": "python", "args": [str(servers / "greetings.py"), how, str(log)]}
        return opened(tmp_path, {"mcpServers": {"old": entry}})

    return started, lambda: log.read_text(encoding="utf-8").split()


async def call(toolbox, name, before_send=None):
    definition = (await toolbox.catalog("anyone")).definitions[f"old.{name}"]
    return await toolbox.call(definition, {}, deadline_s=30, effect_id="w/r/1", before_send=before_send)


@promise("tools:greetings")
async def test_a_server_that_ends_at_the_newest_revisions_question_is_started_again_with_the_older_handshake(greeted):
    started, done = greeted
    async with started("ends") as toolbox:
        assert (await toolbox.catalog("anyone")).unavailable == {}
        assert (await call(toolbox, "change", intent)).data == "the answer"
    assert done() == ["started", "started", "change"]


@promise("tools:greetings")
async def test_a_read_that_is_refused_for_want_of_the_handshake_is_made_again_after_it(greeted):
    started, done = greeted
    async with started("wants") as toolbox:
        answers = [(await call(toolbox, name)).data for name in ("look", "look")]
    assert answers == ["the answer"] * 2
    assert done() == ["started", "started", "look", "look"]


@promise("effects:greetings")
@pytest.mark.parametrize(("how", "acted"), [("wants", []), ("acts", ["change"])])
async def test_whether_a_write_happened_that_is_refused_for_want_of_the_handshake_is_unknown(greeted, how, acted):
    started, done = greeted
    async with started(how) as toolbox:
        with pytest.raises(OutcomeUnknown, match="asked for a handshake when it was called: initialize is required"):
            await call(toolbox, "change", intent)
        assert done() == ["started", *acted]
        assert (await call(toolbox, "change", intent)).data == "the answer"
    assert done() == ["started", *acted, "started", "change"]


@promise("effects:greetings")
async def test_a_refusal_that_names_what_it_calls_is_none_for_want_of_the_handshake(greeted):
    started, done = greeted
    async with started("names") as toolbox:
        answers = [await call(toolbox, "initialize", intent) for _ in range(2)]
    assert [(answer.success, answer.error) for answer in answers] == [
        (False, "initialize is required to have a name")
    ] * 2
    assert done() == ["started"]


@promise("effects:greetings")
async def test_the_words_of_a_tool_about_something_else_that_is_not_initialized_are_its_answer(greeted):
    started, done = greeted
    async with started("own") as toolbox:
        answers = [await call(toolbox, *how) for how in (("change", intent), ("look",), ("change", intent))]
        assert (await toolbox.catalog("anyone")).unavailable == {}
    said = 'workspace "prod" is not initialized; run init_workspace'
    assert [(answer.success, answer.error, answer.may_have_acted) for answer in answers] == [(False, said, False)] * 3
    assert done() == ["started"]
