"""docs/tools-plugins.md and docs/tools-python.md: their files are written as the pages say, opened and called."""

import json
import os
import shutil
from pathlib import Path

import pytest

from backstay import Ask, Deny
from sandbox.isolation.command_jail import CommandJail
from tests.docs.blocks import HOUSE, blocks
from tests.engine import share_images
from tests.requirements import promise
from toolbox.configuration.template import render
from toolbox.providers.provider import Caller
from toolbox.toolbox import open_toolbox

SERVERS = HOUSE / "tests/toolbox/servers"
SHAPES = [block for block in blocks("json") if block.noun == "tools people"]


def of(language: str, noun: str) -> str:
    (block,) = [block for block in blocks(language) if block.noun == noun]
    return block.text


def opened(folder: Path, configuration: str, **variables: str):
    (folder / "toolbox.json").write_text(configuration, encoding="utf-8")
    shutil.copy(SERVERS / "people.py", folder)
    variables = {"PATH": os.defpath, **variables}
    jail = CommandJail(nsjail=None, home=share_images(folder / "home"), image="python")
    return open_toolbox(folder / "toolbox.json", environment=variables, home=folder, confinement=jail)


async def intent():
    """Stand for a committed intent."""


@promise("plugins:page")
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


@promise("python:page")
@pytest.mark.parametrize("block", SHAPES, ids=lambda block: block.place)
async def test_the_shapes_of_the_page_fit_the_servers_they_name(tmp_path, block):
    mail = {"to": "ana@example.com", "subject": "s", "body": "b"}

    async with opened(tmp_path, block.text) as toolbox:
        catalog = await toolbox.catalog("anyone")
        sent = await toolbox.call(catalog.definitions["gmail.send_email"], mail, deadline_s=60, before_send=intent)

    assert catalog.unavailable == {}
    assert sent.success
    assert sent.data == "m1" or sent.data["to"] == ["ana@example.com"]


@promise("python:page")
async def test_the_functions_of_the_page_are_tools(tmp_path):
    (tmp_path / "reminders.py").write_text(of("python", "tools reminders"), encoding="utf-8")

    async with opened(tmp_path, of("json", "tools reminders")) as toolbox:
        tools = (await toolbox.catalog("anyone")).definitions
        reminded = await toolbox.call(
            tools["reminders.remind"], {"customer": "ana@example.com"}, deadline_s=60, before_send=intent
        )

    assert reminded.data["subject"] == "A reminder"


@promise("python:page")
async def test_the_first_tool_of_the_page_is_a_tool(tmp_path):
    (tmp_path / "charges.py").write_text(of("python", "tools charges"), encoding="utf-8")
    ana = {"customer": "ana@example.com", "cents": 500}

    async with opened(tmp_path, of("json", "tools charges")) as toolbox:
        charge = (await toolbox.catalog("anyone")).definitions["billing.charge"]
        charged = await toolbox.call(charge, ana, deadline_s=60, before_send=intent)
        refused = await toolbox.call(charge, ana | {"cents": 200_000}, deadline_s=60, before_send=intent)

    assert (charged.data, refused.error) == ([ana], "a charge is at most 1000.00")


@promise("python:page")
async def test_what_the_page_charges_is_found_and_undone(tmp_path):
    (tmp_path / "billing.py").write_text(of("python", "tools billing"), encoding="utf-8")

    async with opened(tmp_path, of("json", "tools billing")) as toolbox:
        catalog = await toolbox.catalog("anyone")
        tools = catalog.definitions
        charge = tools["billing.charge"]
        total = [(await toolbox.call(tools["billing.total"], {}, deadline_s=60)).data]
        charged = await toolbox.call(charge, {"cents": 5}, deadline_s=60, before_send=intent, effect_id="run/1")
        known = {"arguments": {"cents": 5}, "effect": {"id": "run/1"}, "result": charged.data}
        check = catalog.verify_of(charge)
        found = await toolbox.call(check, render(charge.declaration.verify.arguments, known), deadline_s=60)
        undo = render(charge.declaration.undo.arguments, known)
        await toolbox.call(catalog.undo_of(charge), undo, deadline_s=60, before_send=intent)
        gone = await toolbox.call(check, render(charge.declaration.verify.arguments, known), deadline_s=60)
        total.append((await toolbox.call(tools["billing.total"], {}, deadline_s=60)).data)

    assert (found.data, gone.data) == ({"number": "run/1"}, False)
    assert total == [0, 0]


@promise("python:page")
def test_the_test_of_the_page_passes():
    exec(compile(of("python", "tools testing"), "docs/tools-python.md", "exec"), {"__name__": "page"})


@promise("python:checks")
async def test_the_checks_of_the_security_page_deny_and_ask(tmp_path):
    (tmp_path / "safety.py").write_text(of("python", "tools safety"), encoding="utf-8")
    (tmp_path / "bank.py").write_text(
        "from backstay import tool\n"
        "@tool\ndef pay(account: str, cents: int, note: str = '') -> int:\n    return cents\n",
        encoding="utf-8",
    )
    both = json.loads(of("json", "tools safety")) | {"python": {"bank": {"module": "bank.py"}}}
    ours = "DE" + "1" * 20

    async with opened(tmp_path, json.dumps(both)) as toolbox:
        pay = (await toolbox.catalog("anyone")).definitions["bank.pay"]

        async def said(**arguments):
            return await toolbox.judge(pay, arguments, Caller())

        words = [
            await said(account=ours, cents=5),
            await said(account=ours, cents=100_001),
            await said(account="FR1", cents=5),
            await said(account=ours, cents=5, note="eve@evil.example"),
        ]

    assert words[:2] == [None, Ask("this is a large payment")]
    assert words[2].why.startswith("arguments.account:")
    assert words[3] == Deny("/note is not ours")
