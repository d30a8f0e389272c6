"""The commands that look at the tools and write them down; none of them needs Temporal."""

import json
import re
import sys

import pytest
import pytest_asyncio
from mcp import Client

import opening
from backstay.settings import Settings
from examples.mailbox.faults import Faults
from examples.mailbox.server import mailbox
from tests.cli.commands import HOUSE, bare, forked
from tests.e2e.scripted_server import SERVER, ScriptedServer
from tests.requirements import promise

TOOLS = ("mail.send_email", "mail.recall_email", "mail.search_messages")
OLD = {"name": "old", "description": "Send mail to nobody.", "input": {}, "annotations": {}, "declaration": {}}
POLICY = 'deny: ["mail.delete_*"]'


@pytest_asyncio.fixture(scope="module")
async def listed(tmp_path_factory):
    """What the mailbox lists, which a server says after it that starts at once."""
    async with Client(mailbox(tmp_path_factory.mktemp("mailbox") / "mailbox.db", Faults())) as client:
        return [
            tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools
        ]


@pytest.fixture
def environment(tmp_path, listed):
    """Lead commands to a mailbox, a server that is gone, and one that only Ana may see."""
    script = ScriptedServer(tmp_path / "mailbox.json", listed)
    script.write()
    server = {"command": sys.executable, "args": [str(SERVER), str(script.path)], "env": {"API_KEY": "${MAIL_KEY}"}}
    declared = json.loads((HOUSE / "examples/toolbox.json").read_text(encoding="utf-8"))["providers"]
    toolbox = {
        "mcpServers": {"mail": server, "gone": {"command": "no-such-server"}, "bank": server},
        "providers": declared,
        "users": {"*": {"providers": ["mail", "gone"]}, "ana": {"providers": ["bank"]}},
    }
    (tmp_path / "toolbox.json").write_text(json.dumps(toolbox), encoding="utf-8")
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    own = {"BACKSTAY_HOME": str(tmp_path / "home"), "BACKSTAY_TRUSTED": str(tmp_path)}
    return bare(MAIL_KEY="a-made-up-key-of-a-mailbox", PYTHONUTF8="1", **own)


@pytest.fixture
def run(environment, nursery, tmp_path):
    async def run(*arguments):
        return await forked(nursery, *arguments, environment=environment, folder=tmp_path)

    return run


@promise("tools:reasons")
async def test_the_list_says_what_cannot_be_called_and_why(run):
    listed = await run("tools", "list", "--output", "json")
    text = await run("tools", "list")

    rows = {row["tool"]: row for row in json.loads(listed.out)}
    assert (rows["mail.send_email"]["available"], rows["mail.send_email"]["reason"]) == (True, None)
    assert rows["mail.delete_message"]["reason"] == "denied: deny[0]: mail.delete_*"
    assert "[not available: denied: deny[0]: mail.delete_*]" in text.out
    assert "gone is not available: " in text.err
    assert re.search(r"^mail: \d+ tools \(.*\d+ restricted_write\)$", text.err, re.MULTILINE)
    assert "bank is not available: denied: users.*.providers does not name it in toolbox.json" in text.err


@promise("tools:show")
async def test_all_of_one_tool_is_shown(run):
    shown = await run("tools", "show", "send_email")
    plain = await run("tools", "show", "mail__send_email", "--output", "json")

    facts = dict(
        line.split(None, 1) for line in shown.out.splitlines() if line and not line.startswith(" ") and " " in line
    )
    assert facts["tool"] == "mail.send_email"
    assert facts["undo"] == "recall_email(message_id=result.message_id)"
    assert facts["available"] == "yes"
    assert facts["program"] == "mail.send_email"
    assert "    subject              str (required)" in shown.out
    assert json.loads(plain.out)["name"] == "mail.send_email"


@promise("tools:show")
@pytest.mark.thorough
async def test_a_tool_that_is_denied_is_shown_as_denied(run):
    shown = await run("tools", "show", "mail.delete_message")
    withheld = await run("tools", "show", "bank.send_email")

    assert (shown.code, withheld.code) == (0, 2)
    assert "no: denied: deny[0]: mail.delete_*" in shown.out
    assert "bank is not available: denied" in withheld.err


@promise("tools:closest")
async def test_an_unknown_tool_is_answered_with_the_closest_names(run):
    done = await run("tools", "show", "mail.send_mail")

    assert (done.code, done.out) == (2, "")
    assert "there is no tool 'mail.send_mail'; the closest are mail.send_email" in done.err


@promise("tools:late-library")
async def test_refresh_writes_once_and_says_where(run, tmp_path):
    first = await run("tools", "refresh")
    second = await run("tools", "refresh", "--user", "singleton")
    other = await run("tools", "refresh", "--user", "ana")

    assert (first.code, second.code, other.code) == (0, 0, 0)
    assert first.out == second.out == f"{tmp_path / 'home' / 'toolbox' / 'singleton'}\n"
    assert "written: 7 tools" in first.err
    assert "unchanged: 7 tools" in second.err
    folder = tmp_path / "home" / "toolbox" / "ana"
    assert sorted(path.name for path in (folder / "sandbox_py/servers").iterdir()) == ["__init__.py", "bank"]
    head = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert head["counts"]["tools"] == 7


@promise("tools:docs")
@pytest.mark.thorough
async def test_docs_are_written_to_a_folder_or_printed(run, tmp_path):
    written = await run("tools", "docs", "--output-folder", "pages")
    printed = await run("tools", "docs")

    assert written.out.splitlines() == ["pages/index.md", "pages/gone.md", "pages/mail.md"]
    page = (tmp_path / "pages/mail.md").read_text(encoding="utf-8")
    assert page in printed.out
    assert "**Not available:** denied: deny\\[0\\]: mail.delete\\_\\*" in page
    assert "- Undone: by recall\\_email" in page


@promise("tools:docs")
async def test_docs_that_cannot_be_written_name_the_folder(run, tmp_path):
    (tmp_path / "taken").write_text("", encoding="utf-8")
    done = await run("tools", "docs", "--output-folder", "taken/pages")

    assert done.code == 2
    assert "--output-folder: taken/pages" in done.err


@promise("tools:changed-diff")
async def test_a_changed_tool_is_shown_line_by_line_and_accepted_by_name_or_pattern(run, tmp_path, listed, environment):
    settings = Settings.load(None, home=tmp_path / "home")
    token = environment["MAIL_KEY"]

    async def meet():
        """Do what the worker does when a run first meets the catalog."""
        async with opening.open_store(settings) as store:
            await store.definitions.changed(
                "v1", dict.fromkeys(TOOLS, "0" * 64), lambda names: dict.fromkeys(names, OLD)
            )

    nothing = await run("tools", "diff")
    await meet()
    whole = await run("tools", "diff", "mail.send_email")
    every = await run("tools", "diff", "--output", "json")
    accepted = await run("tools", "accept", "mail.send_email")
    left = await run("tools", "diff", "--output", "json")
    await run("tools", "accept", "mail.*")
    none = await run("tools", "diff")

    assert "nothing has changed" in nothing.err
    lines = whole.out.splitlines()
    assert lines[:3] == ["mail.send_email", "--- allowed by first sight", "+++ now"]
    assert '-    "Send mail to nobody."' in lines
    assert any(line.startswith("+    ") and "Send" in line for line in lines)
    assert {row["tool"] for row in json.loads(every.out)} == set(TOOLS)
    assert accepted.out == "mail.send_email\n"
    assert {row["tool"] for row in json.loads(left.out)} == set(TOOLS) - {"mail.send_email"}
    assert (none.out, "nothing has changed" in none.err) == ("", True)
    assert token not in whole.out + every.out


@promise("tools:changed-accepting")
async def test_accepting_needs_a_store_and_a_tool_that_is_there(run, tmp_path):
    without = await run("tools", "accept", "mail.send_email")
    settings = Settings.load(None, home=tmp_path / "home")
    async with opening.open_store(settings):
        pass
    unknown = await run("tools", "accept", "mail.send_mail")
    nameless = await run("tools", "accept")

    assert (without.code, unknown.code, nameless.code) == (2, 2, 2)
    assert "there is no store" in without.err
    assert "the closest are mail.send_email" in unknown.err
    assert "name the tools" in nameless.err
