"""An office of MCP servers over HTTP that answer what the cases say, and keep every call that changes something."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

from tests.provenance.attacks import Case

READS = ToolAnnotations(read_only_hint=True)
REACHES_OUT = ToolAnnotations(read_only_hint=True, open_world_hint=True)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False)
OTHERS = ("mail.read", "tickets.read", "chat.history", "drive.open")
OWN = ("crm.find", "ledger.supplier", "directory.person", "assets.host")


@dataclass
class Office:
    """Serve the answers of cases, and keep what was written."""

    answers: dict[str, Any] = field(default_factory=dict)
    written: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def prepare(self, case: Case) -> None:
        for number, read in enumerate(case.reads):
            says = read.says if isinstance(read.says, dict) else {"text": read.says}
            self.answers[f"{case.id}/{number}"] = says

    def servers(self) -> dict[str, MCPServer]:
        """Return the servers by the name of their provider."""
        made: dict[str, MCPServer] = {}

        def offer(name: str, function: Callable[..., Any], annotations: ToolAnnotations) -> None:
            provider, _, tool = name.partition(".")
            server = made.setdefault(provider, MCPServer(provider, log_level="WARNING"))
            server.tool(name=tool, annotations=annotations)(function)

        for name in (*OTHERS, *OWN):
            offer(name, self._read, READS)
        offer("web.fetch", self._fetch, REACHES_OUT)
        for name, function in self._writes().items():
            offer(name, function, WRITES)
        return made

    async def _read(self, id: str) -> dict[str, Any]:  # noqa: A002 - the argument's own name
        """Read one entry."""
        return self.answers[id]

    async def _fetch(self, url: str, id: str) -> dict[str, Any]:  # noqa: A002 - the argument's own name
        """Fetch a page."""
        return self.answers[id] | {"url": url}

    def _writes(self) -> dict[str, Callable[..., Any]]:
        async def send(to: str, subject: str, body: str) -> dict[str, Any]:
            """Send a mail."""
            return self._wrote("mail.send", to=to, subject=subject, body=body)

        async def invite(attendee: str, title: str, when: str) -> dict[str, Any]:
            """Invite somebody."""
            return self._wrote("calendar.invite", attendee=attendee, title=title, when=when)

        async def pay(iban: str, amount: float, reference: str) -> dict[str, Any]:
            """Pay an amount."""
            return self._wrote("bank.pay", iban=iban, amount=amount, reference=reference)

        async def write(path: str, content: str) -> dict[str, Any]:
            """Write a file."""
            return self._wrote("files.write", path=path, content=content)

        async def post(url: str, payload: str) -> dict[str, Any]:
            """Post to a webhook."""
            return self._wrote("hooks.post", url=url, payload=payload)

        async def run(command: str) -> dict[str, Any]:
            """Run a command."""
            return self._wrote("ops.run", command=command)

        return {
            "mail.send": send,
            "calendar.invite": invite,
            "bank.pay": pay,
            "files.write": write,
            "hooks.post": post,
            "ops.run": run,
        }

    def _wrote(self, tool: str, **arguments: Any) -> dict[str, Any]:
        self.written.append((tool, arguments))
        return {"done": len(self.written)}


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def _serving(server: MCPServer) -> AsyncGenerator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        config = uvicorn.Config(server.streamable_http_app(), log_config=None, timeout_graceful_shutdown=1)
        running = _Server(config)
        task = asyncio.create_task(running.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            running.should_exit = True
            await task


@asynccontextmanager
async def open_office(folder: Path) -> AsyncGenerator[tuple[Office, Path]]:
    """Serve an office; yields it and a toolbox file that declares which of its answers are the operator's own."""
    office = Office()
    async with AsyncExitStack() as stack:
        urls = {name: await stack.enter_async_context(_serving(server)) for name, server in office.servers().items()}
        providers: dict[str, dict[str, Any]] = {name: {"trusted": True, "tools": {}} for name in urls}
        for name in OWN:
            provider, _, tool = name.partition(".")
            providers[provider]["tools"][tool] = {"content": "own"}
        data = {"mcpServers": {name: {"url": url} for name, url in urls.items()}, "providers": providers}
        toolbox = folder / "office.json"
        toolbox.write_text(json.dumps(data), encoding="utf-8")
        yield office, toolbox
