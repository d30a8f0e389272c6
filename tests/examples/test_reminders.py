"""The demo's model, played against the real mailbox over a real socket: it finds whom to remind by itself."""

import json
import tempfile
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path

import aiosqlite
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mcp import Client
from openai import AsyncOpenAI

from backstay.testing import ScriptedModel
from examples.mailbox.faults import Faults
from examples.mailbox.reminders import Reminders
from examples.mailbox.seed import seed
from examples.mailbox.server import mailbox
from examples.mailbox.statements import statements
from tests.requirements import promise
from tests.sizes import sized

TASK = "Remind every customer with an invoice overdue by more than 60 days, and tell me the total."
TODAY = date(2026, 11, 20)
ENGINE = ("search_tools", "read_result", "ask_person", "finish")


class Play:
    """Run the demo's conversation the way an engine would, with nothing between model and mailbox."""

    def __init__(self, model, client, whole_below=2048, reject=()):
        self.model, self.client, self.whole_below, self.reject = model, client, whole_below, reject
        self.stored = {}
        self.visible = None
        self.rounds = 0

    async def run(self, task=TASK):
        names = [f"mail__{tool.name}" for tool in (await self.client.list_tools()).tools]
        messages = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": task}]
        async with AsyncOpenAI(base_url=self.model.base_url, api_key="none", max_retries=0, timeout=150) as endpoint:
            for self.rounds in range(1, 60):
                visible = names if self.visible is None else self.visible
                tools = [{"type": "function", "function": {"name": name}} for name in [*visible, *ENGINE]]
                answer = await endpoint.chat.completions.create(model="scripted", messages=messages, tools=tools)
                message = answer.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                for call in message.tool_calls or []:
                    arguments = json.loads(call.function.arguments)
                    if call.function.name == "finish":
                        return arguments
                    content = json.dumps(await self.answer(call.function.name, arguments, names))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
        raise AssertionError("the script did not come to an end")

    async def answer(self, name, arguments, names):
        if name == "search_tools":
            self.visible = names
            return {"data": names, "ref": "hits"}
        if name == "read_result":
            whole = self.stored[arguments["ref"]][arguments["path"]]
            return {"data": whole[arguments["offset"] : arguments["offset"] + arguments["limit"]], "total": len(whole)}
        if arguments.get("to") in self.reject:
            return {"error": "rejected by ana: not this one", "error_type": "Rejected"}
        result = await self.client.call_tool(name.removeprefix("mail__"), arguments)
        if result.is_error:
            return {"error": result.content[0].text, "error_type": "ToolError"}
        ref = f"blob-{len(self.stored)}"
        self.stored[ref] = result.structured_content
        if len(json.dumps(result.structured_content)) < self.whole_below:
            return {"data": result.structured_content, "ref": ref}
        size = {"bytes": len(json.dumps(result.structured_content)), "rows": None}
        return {"label": name, "original_size": size, "truncated": True, "sample": {}, "storage_ref": ref}


@asynccontextmanager
async def stage(folder, **seeding):
    path = Path(folder) / "mailbox.db"
    await seed(path, today=TODAY, **seeding)
    async with (
        ScriptedModel(Reminders()) as model,
        Client(mailbox(path, Faults(pinned_day=TODAY)), read_timeout_seconds=30) as client,
    ):
        yield path, model, client


async def overdue(path):
    async with aiosqlite.connect(path) as connection:
        values = {"today": TODAY.isoformat(), "days": 60}
        rows = await connection.execute_fetchall(statements("overdue.sql")["overdue"], values)
    return sorted(email for email, _, _ in rows), round(sum(total for _, _, total in rows), 2)


async def mailed(path):
    async with aiosqlite.connect(path) as connection:
        rows = await connection.execute_fetchall("SELECT recipient, body FROM sent ORDER BY recipient")
    return dict(rows)


WITHOUT_EXPLAIN = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
"""Explaining a failure traces every line that runs: far too slow with servers in the loop."""


@promise("demo:computed")
@settings(
    max_examples=sized(20, 8), deadline=None, phases=WITHOUT_EXPLAIN, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    random_seed=st.integers(0, 2**32),
    customers=st.integers(1, 25),
    invoices=st.integers(0, 90),
    whole_below=st.sampled_from([2048, 900, 100]),
)
async def test_recipients_and_total_equal_the_sql_query_for_any_mailbox(random_seed, customers, invoices, whole_below):
    with tempfile.TemporaryDirectory() as folder:
        seeding = {"random_seed": random_seed, "customers": customers, "invoices": invoices}
        async with stage(folder, **seeding) as (path, model, client):
            outputs = (await Play(model, client, whole_below).run())["outputs"]
        recipients, total = await overdue(path)
        assert sorted(outputs["recipients"]) == sorted(await mailed(path)) == recipients
        assert outputs["total"] == total


@promise("demo:asks-once")
async def test_the_demo_takes_four_decisions_and_names_each_invoice_in_its_mail(tmp_path):
    async with stage(tmp_path) as (path, model, client):
        play = Play(model, client)
        finished = await play.run()
        page = (await client.call_tool("list_invoices", {"overdue_days_more_than": 60})).structured_content
    bodies = await mailed(path)
    assert (play.rounds, finished["success"]) == (4, True)
    assert all(any(invoice["number"] in body for body in bodies.values()) for invoice in page["invoices"])
    assert f"{finished['outputs']['total']:,.2f}" in finished["summary"]


@promise("demo:refined")
async def test_the_script_searches_when_the_tools_are_not_visible_yet(tmp_path):
    async with stage(tmp_path) as (path, model, client):
        play = Play(model, client)
        play.visible = ["crm__list_people"]
        finished = await play.run()
    assert finished["success"] is True
    assert sorted(finished["outputs"]["recipients"]) == (await overdue(path))[0]


@promise("demo:refused")
async def test_what_a_person_rejected_is_told_and_stays_in_the_total(tmp_path):
    async with stage(tmp_path) as (path, model, client):
        recipients, total = await overdue(path)
        finished = await Play(model, client, reject=recipients[:1]).run()
    assert finished["outputs"]["total"] == total
    assert finished["outputs"]["not_reminded"] == recipients[:1]
    assert sorted(finished["outputs"]["recipients"]) == sorted(await mailed(path)) == recipients[1:]
    assert "Not sent: 1" in finished["summary"]


@promise("demo:script")
async def test_the_number_of_days_comes_from_the_task(tmp_path):
    async with stage(tmp_path) as (_, model, client):
        finished = await Play(model, client).run(TASK.replace("60", "100"))
        asked = {"overdue_days_more_than": 100, "limit": 100}
        page = (await client.call_tool("list_invoices", asked)).structured_content
    assert finished["outputs"]["total"] == round(sum(invoice["amount"] for invoice in page["invoices"]), 2)


@promise("demo:refused")
async def test_a_tool_that_keeps_failing_ends_in_a_plain_failure(tmp_path):
    async with stage(tmp_path) as (path, model, client):
        async with aiosqlite.connect(path) as connection:
            await connection.execute("DROP TABLE invoices")
        finished = await Play(model, client).run()
    assert finished["success"] is False
    assert finished["summary"].startswith("I could not read the invoices")
