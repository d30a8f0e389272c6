"""An engine with definitions, its page and its store: what schedules and triggers are added to in tests."""

import asyncio
import json
import time
import uuid
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2
from temporalio.client import Client
from temporalio.service import RPCError

import opening
import worker
from backstay.client import Backstay
from backstay.client.connecting import DATA_CONVERTER
from backstay.client.schedules import Schedules
from backstay.testing import Reply
from gateways.signatures import signature
from people.standing.keeping import Keeping
from people.standing.listing import list_tasks
from store.store import Store
from tests.engine import ROOT, Engine, engine, pending
from tests.web.pages import KEY, Served, behind_a_proxy, served_page

ANA = "ana@example.com"
DONE = [Reply(calls=[("finish", {"summary": "done"})])]
POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
allow: [{tool: "mail.send_email", when: {to: {ends_with: "@free.example"}}}]
"""


@dataclass
class Office:
    """Add schedules and triggers to an engine, and send to its page as another program would."""

    engine: Engine
    page: Served
    store: Store
    keeping: Keeping
    keys: dict[str, str] = field(default_factory=dict)

    async def schedule(self, name, *, by=ANA, usd=1.0, runs=None, budget=0.1, task=None, **times: Any) -> None:
        asked = asked_schedule(name, by=by, usd=usd, runs=runs, budget=budget, task=task, **times)
        await self.keeping.add(asked, KEY.encode())

    async def trigger(self, name, *, by=ANA, usd=1.0, budget=0.1, definition="tell_customer", **door: Any) -> str:
        asked = {"kind": "trigger", "name": name, "by": by, "door": door, "definition": definition}
        asked |= {"task": {"budget": {"max_llm_cost_usd": budget}}, "per_day": {"max_llm_cost_usd": usd}}
        self.keys[name] = await self.keeping.add(asked, KEY.encode())
        return self.keys[name]

    def request(self, name, given, event="", *, key=None, at=None, **more):
        """Return the request that a program sends to a trigger: what it carries, and how it is signed."""
        body = given if isinstance(given, bytes) else json.dumps(given).encode()
        stamp = str(int(time.time() if at is None else at))
        mac = signature((key or self.keys.get(name, "none")).encode(), stamp, body)
        headers = {"backstay-timestamp": stamp, "backstay-signature": mac, **({"backstay-id": event} if event else {})}
        return {"url": f"{self.page.url}/triggers/{name}", "content": body, "headers": headers | more}

    async def send(self, name, given, event="", **more):
        async with httpx2.AsyncClient(timeout=60) as client:
            return await client.post(**self.request(name, given, event, **more))

    async def listed(self, name):
        schedules = Schedules(self.engine.client, self.engine.settings.task_queue)
        return next(row for row in await list_tasks(self.store, schedules) if row.name == name)

    async def until(self, name, holds, within_s=60):
        """Wait until what is listed of one is as it should be; return that."""
        async with asyncio.timeout(within_s):
            while not holds(row := await self.listed(name)):
                await asyncio.sleep(0.1)
        return row

    async def asking(self, workflow_id, within_s=60):
        """Return the handle of a run once it has begun and waits for people."""
        handle = self.engine.client.get_workflow_handle(workflow_id)
        async with asyncio.timeout(within_s):
            while True:
                with suppress(RPCError):
                    await pending(handle)
                    return handle
                await asyncio.sleep(0.1)

    @asynccontextmanager
    async def second_worker(self):
        host = self.engine.client.service_client.config.target_host
        client = await Client.connect(host, data_converter=DATA_CONVERTER)
        async with (
            opening.open_resources(self.engine.settings, client) as resources,
            worker.open_worker(client, resources),
        ):
            yield


@asynccontextmanager
async def open_office(client, folder, rules=None, *, policy=POLICY, **more):
    """Open an engine with the definitions of the examples, and its page."""
    settings = {**behind_a_proxy(), "definitions": ROOT / "examples/definitions", **more}
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(engine(client, folder, rules or DONE * 50, policy=policy, **settings))
        page = await stack.enter_async_context(served_page(opened))
        store = await stack.enter_async_context(opening.open_store(opened.settings))
        signing = Backstay(client, task_queue=opened.settings.task_queue, approver_key=KEY)
        yield Office(opened, page, store, Keeping(signing, store, opening.read_policy(opened.settings.policy)))


def asked_schedule(name, *, by=ANA, usd=1.0, runs=None, budget=0.1, task=None, **times):
    """Return what adds a schedule."""
    asked = {"kind": "schedule", "name": name, "by": by, "times": times}
    asked |= {"task": {"text": f"task of {name}", **(task or {}), "budget": {"max_llm_cost_usd": budget}}}
    return asked | {"per_day": {"max_llm_cost_usd": usd} | ({} if runs is None else {"max_runs": runs})}


def some(word):
    """Return a name that no other test uses: schedules belong to the whole namespace."""
    return f"{word}-{uuid.uuid4().hex[:8]}"
