"""The mailbox, spoken to over real standard input and output, and over HTTP."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from contextlib import asynccontextmanager
from datetime import date

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters

from examples.mailbox.faults import Faults
from examples.mailbox.seed import seed
from examples.mailbox.statements import statements
from tests.docs.blocks import HOUSE
from tests.mailbox_server import open_mailbox
from tests.nursery.piped import spoken_with
from tests.requirements import promise

TODAY = "2026-11-20"
SERVER = str(HOUSE / "examples/mailbox/server.py")
MAIL = {"to": "ana@example.com", "subject": "Hello", "body": "A word.", "client_token": "run/1"}


def mailbox(path, **switches):
    return StdioServerParameters(
        command=sys.executable, args=[SERVER], env={"MAILBOX_DB": str(path), "MAILBOX_TODAY": TODAY, **switches}
    )


@asynccontextmanager
async def here(path):
    """Come to a mailbox in this process; what its tools do is the same, and a start takes a second."""
    async with (
        open_mailbox(path, Faults.read({"MAILBOX_TODAY": TODAY})) as address,
        Client(address, read_timeout_seconds=30) as client,
    ):
        yield client


def rows(path, query):
    with sqlite3.connect(path) as connection:
        return connection.execute(query).fetchall()


@promise("demo:mailbox-seed")
@pytest.mark.thorough
async def test_an_empty_mailbox_creates_and_fills_itself_where_it_is_told_to(tmp_path):
    path = tmp_path / "deep" / "mailbox.db"
    async with Client(mailbox(path), read_timeout_seconds=30) as client:
        customers = (await client.call_tool("list_customers", {"limit": 100})).structured_content
        invoices = (await client.call_tool("list_invoices", {"limit": 100})).structured_content
    assert len(customers["customers"]) == customers["total"] == 12
    assert len(invoices["invoices"]) == invoices["total"] == 40
    assert {60, 61} <= {invoice["days_overdue"] for invoice in invoices["invoices"]}
    assert {True, False} == {invoice["paid"] for invoice in invoices["invoices"]}
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]


@promise("demo:mailbox-tools")
async def test_pages_join_to_the_whole_list_without_gap_or_repetition(tmp_path):
    numbers, more = [], True
    async with here(tmp_path / "mailbox.db") as client:
        while more:
            page = (await client.call_tool("list_invoices", {"offset": len(numbers), "limit": 7})).structured_content
            numbers += [invoice["number"] for invoice in page["invoices"]]
            more = page["has_more"]
        beyond = (await client.call_tool("list_customers", {"offset": 500})).structured_content
    assert sorted(numbers) == [f"INV-{1001 + index}" for index in range(40)]
    assert beyond == {"customers": [], "total": 12, "offset": 500, "has_more": False}


@promise("demo:mailbox-tools")
async def test_overdue_by_more_than_sixty_days_leaves_out_sixty_and_whatever_is_paid(tmp_path):
    path = tmp_path / "mailbox.db"
    asked = {"overdue_days_more_than": 60, "limit": 100}
    async with here(path) as client:
        page = (await client.call_tool("list_invoices", asked)).structured_content
        paid = (await client.call_tool("list_invoices", {"status": "paid", "limit": 100})).structured_content
    late = rows(path, "SELECT number FROM invoices WHERE paid = 0 AND due_date < '2026-09-21'")
    assert sorted(invoice["number"] for invoice in page["invoices"]) == sorted(number for (number,) in late)
    assert min(invoice["days_overdue"] for invoice in page["invoices"]) == 61
    assert all(invoice["days_overdue"] == 0 for invoice in paid["invoices"])


@promise("demo:mailbox")
async def test_the_same_mail_twice_is_sent_twice_and_both_requests_are_counted(tmp_path):
    path = tmp_path / "mailbox.db"
    async with here(path) as client:
        first = await client.call_tool("send_email", MAIL, meta={"backstay/effect-id": "run/1"})
        second = await client.call_tool("send_email", MAIL)
        found = (await client.call_tool("list_sent", {"token": "run/1"})).structured_content
        other = (await client.call_tool("list_sent", {"token": "run/2"})).structured_content
    assert first.structured_content["message_id"] != second.structured_content["message_id"]
    assert (found["total"], other) == (2, {"messages": [], "total": 0})
    counted = rows(path, "SELECT arguments, effect_id FROM requests WHERE tool = 'send_email' ORDER BY id")
    assert [(json.loads(arguments), effect) for arguments, effect in counted] == [(MAIL, "run/1"), (MAIL, None)]


@promise("demo:mailbox-tools")
async def test_a_mail_is_recalled_once(tmp_path):
    async with here(tmp_path / "mailbox.db") as client:
        message_id = (await client.call_tool("send_email", MAIL)).structured_content["message_id"]
        recalled = await client.call_tool("recall_email", {"message_id": message_id})
        again = await client.call_tool("recall_email", {"message_id": message_id})
        unknown = await client.call_tool("recall_email", {"message_id": "mail-999"})
        nonsense = await client.call_tool("recall_email", {"message_id": "'; DROP TABLE sent"})
        sent = (await client.call_tool("list_sent", {"to": MAIL["to"]})).structured_content
    assert (recalled.is_error, again.is_error, unknown.is_error, nonsense.is_error) == (False, True, True, True)
    assert "already recalled" in again.content[0].text
    assert [message["recalled"] for message in sent["messages"]] == [True]


@promise("demo:mailbox-tools")
async def test_received_messages_are_found_and_deleted_for_good(tmp_path):
    async with here(tmp_path / "mailbox.db") as client:
        found = (await client.call_tool("search_messages", {"query": "PAYMENT"})).structured_content["messages"]
        assert len(found) == 1
        message_id = found[0]["message_id"]
        deleted = await client.call_tool("delete_message", {"message_id": message_id})
        again = await client.call_tool("delete_message", {"message_id": message_id})
        rest = (await client.call_tool("search_messages", {"query": "payment"})).structured_content
    assert (deleted.is_error, again.is_error, rest) == (False, True, {"messages": []})


@promise("demo:mailbox-tools")
async def test_every_tool_says_whether_it_changes_the_world_and_what_it_answers(tmp_path):
    async with here(tmp_path / "mailbox.db") as client:
        tools = (await client.list_tools()).tools
    reads = {tool.name for tool in tools if tool.annotations.read_only_hint}
    assert reads == {"list_customers", "list_invoices", "search_messages", "list_sent"}
    assert {tool.name for tool in tools} - reads == {"send_email", "recall_email", "delete_message"}
    assert [tool.name for tool in tools if tool.annotations.destructive_hint] == ["delete_message"]
    assert all(tool.output_schema for tool in tools)


@promise("demo:mailbox-dies")
async def test_dying_after_a_send_leaves_the_mail_sent_and_does_not_happen_again(tmp_path, nursery):
    path = tmp_path / "mailbox.db"
    for _ in range(2):
        server = await spoken_with(nursery, mailbox(path, MAILBOX_DIE_AFTER_SEND="2"), tmp_path)
        async with Client(server, read_timeout_seconds=30) as client:
            await client.call_tool("send_email", MAIL)
            if rows(path, "SELECT count(*) FROM sent") == [(1,)]:
                with pytest.raises(MCPError):
                    await client.call_tool("send_email", MAIL)
                assert rows(path, "SELECT count(*) FROM sent") == [(2,)]
    assert rows(path, "SELECT count(*) FROM sent") == [(3,)]


@promise("demo:mailbox-dies")
@pytest.mark.thorough
async def test_dying_before_a_send_counts_the_request_and_sends_nothing(tmp_path):
    path = tmp_path / "mailbox.db"
    async with Client(mailbox(path, MAILBOX_DIE_BEFORE_SEND="1"), read_timeout_seconds=30) as client:
        with pytest.raises(MCPError):
            await client.call_tool("send_email", MAIL)
    assert rows(path, "SELECT (SELECT count(*) FROM requests), (SELECT count(*) FROM sent)") == [(1, 0)]
    async with Client(mailbox(path, MAILBOX_DIE_BEFORE_SEND="1"), read_timeout_seconds=30) as client:
        assert not (await client.call_tool("send_email", MAIL)).is_error


@promise("demo:mailbox-hangs")
async def test_hanging_on_a_send_sends_the_mail_and_leaves_the_server_usable(tmp_path):
    path = tmp_path / "mailbox.db"
    async with Client(mailbox(path, MAILBOX_HANG_ON_SEND="1"), read_timeout_seconds=30) as client:
        with pytest.raises(MCPError):
            await client.call_tool("send_email", MAIL, read_timeout_seconds=2)
        found = (await client.call_tool("list_sent", {"token": "run/1"})).structured_content
    assert found["total"] == 1


@promise("demo:mailbox-settings")
async def test_a_switch_that_cannot_be_read_is_named(tmp_path, nursery):
    environment = {"PATH": os.defpath, "MAILBOX_DB": str(tmp_path / "mailbox.db"), "MAILBOX_SLOW_SECONDS": "soon"}
    process = await nursery.raised(SERVER, environment=environment, log=tmp_path / "said")
    assert await process.ended(150) != 0
    assert "MAILBOX_SLOW_SECONDS: 'soon' is not a number" in process.said()


@promise("tools:http")
async def test_the_same_tools_answer_over_http(tmp_path, nursery):
    environment = {"PATH": os.defpath, "MAILBOX_DB": str(tmp_path / "mailbox.db")}
    said = {"log": tmp_path / "said", "out": tmp_path / "printed"}
    process = await nursery.raised(SERVER, "--http", "0", environment=environment, **said)
    try:
        async with asyncio.timeout(150):
            while not process.answered().endswith("\n"):
                assert not process.died.done(), process.said()
                await asyncio.sleep(0.05)
        url = process.answered().removeprefix("mailbox ready: ").strip()
        async with Client(url, read_timeout_seconds=30) as client:
            sent = await client.call_tool("send_email", MAIL)
        assert sent.structured_content["message_id"] == "mail-1"
        async with httpx2.AsyncClient(timeout=10) as browser:
            assert (await browser.get(url.removesuffix("/mcp"))).status_code == 404
    finally:
        process.kill(signal.SIGTERM)
        await asyncio.wait_for(asyncio.shield(process.died), 150)


@promise("demo:mailbox-seed")
async def test_four_processes_open_a_new_mailbox_at_once_and_fill_it_once(tmp_path):
    path = tmp_path / "mailbox.db"
    code = f"import asyncio; from examples.mailbox.seed import seed; asyncio.run(seed({str(path)!r}))"
    processes = [await asyncio.create_subprocess_exec(sys.executable, "-c", code) for _ in range(4)]
    ended = [await asyncio.wait_for(process.wait(), 150) for process in processes]
    assert ended == [0, 0, 0, 0]
    assert rows(path, "SELECT (SELECT count(*) FROM customers), (SELECT count(*) FROM invoices)") == [(12, 40)]


@promise("demo:mailbox-seed")
async def test_the_same_seed_fills_two_mailboxes_alike(tmp_path):
    for name in ("one.db", "other.db"):
        await seed(tmp_path / name, random_seed=3, customers=5, invoices=9, today=date(2026, 11, 20))
    query = "SELECT * FROM invoices ORDER BY number"
    assert rows(tmp_path / "one.db", query) == rows(tmp_path / "other.db", query)
    assert len(rows(tmp_path / "one.db", query)) == 9


@promise("demo:mailbox-settings")
def test_statements_are_found_by_their_headings():
    assert list(statements("schema.sql")) == ["customers", "invoices", "inbox", "sent", "requests"]
    assert statements("overdue.sql")["overdue"].endswith("ORDER BY customers.email")
