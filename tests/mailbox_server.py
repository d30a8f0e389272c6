"""The mailbox over HTTP inside the test process: it outlives every worker, and costs no start."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import MCPServer

from examples.mailbox.database import Database
from examples.mailbox.faults import Faults
from examples.mailbox.seed import seed
from examples.mailbox.server import mailbox
from examples.mailbox.tools import MailboxTools
from tests.serving import Server


@cache
def described() -> MCPServer:
    """Return a mailbox that knows the schemas of its tools; they are made from the functions, and take longest."""
    return mailbox("", Faults.read({}))


def another_mailbox(database: Path, faults: Faults) -> MCPServer:
    """Return what `mailbox` returns, with schemas that were made before."""
    own, known = MailboxTools(Database(database), faults), described()
    tools = [tool.model_copy(update={"fn": getattr(own, tool.name)}) for tool in known._tool_manager.list_tools()]
    return MCPServer("mailbox", instructions=known.instructions, log_level="WARNING", tools=tools)


@asynccontextmanager
async def open_mailbox(database: Path, faults: Faults) -> AsyncGenerator[str]:
    """Serve a seeded mailbox; yields its address."""
    await seed(database, today=faults.today())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        app = another_mailbox(database, faults).streamable_http_app()
        server = Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            await server.end(serving)
