"""docs/tools-plugins.md and docs/tools-actions.md: their files are written as the pages say, opened and called."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.docs.blocks import HOUSE, blocks
from toolbox.configuration.template import render
from toolbox.toolbox import open_toolbox

SERVERS = HOUSE / "tests/toolbox/servers"
SHAPES = [block for block in blocks("json") if block.noun == "actions people"]


def of(language: str, noun: str) -> str:
    (block,) = [block for block in blocks(language) if block.noun == noun]
    return block.text


def opened(folder: Path, configuration: str, **variables: str):
    (folder / "toolbox.json").write_text(configuration, encoding="utf-8")
    shutil.copy(SERVERS / "people.py", folder)
    return open_toolbox(folder / "toolbox.json", environment={"PATH": os.defpath, **variables}, home=folder)


async def intent():
    """Stand for a committed intent."""


async def test_the_command_line_tool_of_the_page_is_wrapped_called_and_undone(tmp_path):
    plugin = tmp_path / "plugins/invoices/cli.py"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(of("python", "plugin invoices"), encoding="utf-8")
    book = tmp_path / "book.json"
    book.write_text(json.dumps([{"number": 1, "customer": "Ana", "amount": 9, "days": 31}]), encoding="utf-8")

    async with opened(tmp_path, of("json", "plugins"), BOOK=str(book)) as toolbox:
        catalog = await toolbox.catalog("anyone")
        tools = catalog.definitions
        late = await toolbox.call(tools["invoices.late"], {}, deadline_s=60)
        added = await toolbox.call(
            tools["invoices.add"], {"customer": "Bo", "amount": 2.5}, deadline_s=60, before_send=intent
        )
        undo = render(tools["invoices.add"].declaration.undo.arguments, {"result": added.data})
        await toolbox.call(catalog.undo_of(tools["invoices.add"]), undo, deadline_s=60, before_send=intent)

    assert (catalog.problems, sorted(tools)) == ([], ["invoices.add", "invoices.late", "invoices.remove"])
    assert [invoice["customer"] for invoice in late.data["late"]] == ["Ana"]
    assert added.data == {"number": 2}
    assert [invoice["customer"] for invoice in json.loads(book.read_text(encoding="utf-8"))] == ["Ana"]


@pytest.mark.parametrize("block", SHAPES, ids=lambda block: block.place)
async def test_the_shapes_of_the_page_fit_the_servers_they_name(tmp_path, block):
    mail = {"to": "ana@example.com", "subject": "s", "body": "b"}

    async with opened(tmp_path, block.text) as toolbox:
        catalog = await toolbox.catalog("anyone")
        sent = await toolbox.call(catalog.definitions["gmail.send_email"], mail, deadline_s=60, before_send=intent)

    assert catalog.unavailable == {}
    assert sent.success
    assert sent.data == "m1" or sent.data["to"] == ["ana@example.com"]


async def test_the_actions_of_the_page_are_tools(tmp_path):
    (tmp_path / "billing.py").write_text(of("python", "actions"), encoding="utf-8")

    async with opened(tmp_path, of("json", "actions")) as toolbox:
        tools = (await toolbox.catalog("anyone")).definitions
        reminded = await toolbox.call(
            tools["billing.remind"], {"customer": "ana@example.com"}, deadline_s=60, before_send=intent
        )
        total = await toolbox.call(tools["billing.total"], {"amounts": [1.5, 2]}, deadline_s=60)

    assert reminded.data["subject"] == "A reminder"
    assert total.data == 3.5
