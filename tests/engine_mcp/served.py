"""Serve one engine to MCP clients, in the process of the test, and speak to it as a client that is not ours."""

import asyncio
import itertools
import json
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import opening
from backstay.client import Backstay
from gateways.engine_mcp.runs import EngineRuns
from gateways.links import open_seals
from gateways.listening import config_of
from gateways.terminal.serving.mcp import app_of
from tests.serving import served
from tests.web.pages import headers

EXTENSION = "io.modelcontextprotocol/tasks"
REVISION = "2026-07-28"
ELICITS = {"elicitation": {"form": {}}}


class Refused(Exception):
    """Hold the error that the server answered with."""

    def __init__(self, error: dict[str, Any], status: int) -> None:
        super().__init__(str(error))
        self.code, self.message, self.data = error.get("code"), error.get("message", ""), error.get("data")
        self.status = status


@dataclass
class Wire:
    """Send JSON-RPC as it stands in the specification, with the extension unless it is told otherwise."""

    url: str
    by: str
    tasks: bool = True
    capabilities: dict[str, Any] = field(default_factory=lambda: dict(ELICITS))
    more: dict[str, str] = field(default_factory=dict)
    _numbers: Any = field(default_factory=itertools.count)

    def body(self, method, params=None, **envelope):
        offered = {"extensions": {EXTENSION: {}}} if self.tasks else {}
        meta = {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {**self.capabilities, **offered},
        }
        params = {**(params or {}), "_meta": meta}
        return {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params, **envelope}

    def headers(self, method, params):
        named = (params or {}).get("name") or (params or {}).get("taskId")
        # Some names cannot stand in a header.
        plain = named is not None and len(named) <= 300 and named.isascii() and named.isprintable()
        routed = {"Mcp-Name": named} if plain and named == named.strip() else {}
        accepted = "application/json, text/event-stream"
        known = {"MCP-Protocol-Version": REVISION, "Mcp-Method": method, "Accept": accepted}
        return {**headers(self.by), **known, **routed, **self.more}

    async def ask(self, method, params=None, **more):
        """Return the result of a request that is answered at once; raises Refused."""
        async with httpx2.AsyncClient(timeout=60) as client:
            sent = {**self.headers(method, params), **more}
            answer = await client.post(f"{self.url}/mcp", json=self.body(method, params), headers=sent)
        said = answer.json()
        if "error" in said:
            raise Refused(said["error"], answer.status_code)
        return said["result"]

    @asynccontextmanager
    async def listening(self, *tasks, **more):
        """Listen to tasks; yield what returns the next message of the server, the acknowledgement first."""
        body = self.body("subscriptions/listen", {"notifications": {"taskIds": list(tasks), **more}})
        sent = self.headers(body["method"], {})
        async with (
            httpx2.AsyncClient(timeout=60) as client,
            client.stream("POST", f"{self.url}/mcp", json=body, headers=sent) as answer,
        ):
            if not answer.headers["content-type"].startswith("text/event-stream"):
                await answer.aread()
                raise Refused(answer.json()["error"], answer.status_code)
            lines = answer.aiter_lines()

            async def heard():
                async with asyncio.timeout(60):
                    async for line in lines:
                        if line.startswith("data:"):
                            return json.loads(line.removeprefix("data:"))
                raise AssertionError("the stream ended without a word")

            yield heard

    async def call(self, name, **arguments):
        return await self.ask("tools/call", {"name": name, "arguments": arguments})

    async def started(self, text, **more):
        """Return the task that a start is answered with."""
        return await self.call("start_run", text=text, **more)

    async def get(self, task):
        return await self.ask("tasks/get", {"taskId": task})

    async def until(self, task, *states, within_s=60):
        """Ask about a task until it is in one of these states."""
        async with asyncio.timeout(within_s):
            while (found := await self.get(task))["status"] not in states:
                await asyncio.sleep(0.1)
        return found


@asynccontextmanager
async def served_engine(running, **more):
    """Serve an engine over HTTP, behind a proxy that says who people are; yields the address."""
    settings = running.settings.model_copy(update=more)
    key = None if settings.approver_key is None else settings.approver_key.get_secret_value()
    backstay = Backstay(running.client, task_queue=settings.task_queue, approver_key=key)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opening.open_store(settings))
        trusted, seals = settings.mcp_trusted, open_seals(settings)
        runs = EngineRuns(backstay, store, seals, trusted=trusted, signs=key is not None)
        config = config_of(app_of(settings, runs, "127.0.0.1"), 100)
        yield await stack.enter_async_context(served(config.app, config))


@asynccontextmanager
async def sdk_client(url, by, *, mode="auto", **more):
    """Open a client of the SDK, which does not know the extension."""
    async with (
        httpx2.AsyncClient(headers=headers(by), timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode, **more) as client,
    ):
        yield client
