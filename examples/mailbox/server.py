"""A mailbox as an MCP server: customers, invoices and e-mail over SQLite.

python examples/mailbox/server.py               serves stdio
python examples/mailbox/server.py --http 9000   serves streamable HTTP; port 0 picks a free port

MAILBOX_DB is the path of the database (default .backstay/mailbox.db); it is created and filled if it is empty. The
server never deduplicates, and records every request in the table `requests` before it acts. To make it fail on
demand, see faults.py.
"""

import gc

if __name__ == "__main__":
    # What is imported stays until the end: a collection would only walk through it, and each later one once more.
    gc.disable()

import argparse
import asyncio
import os
import socket
import sys
from pathlib import Path

# A script finds modules beside itself only; the checkout has to be added.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

from examples.mailbox.database import Database
from examples.mailbox.faults import Faults
from examples.mailbox.seed import seed
from examples.mailbox.tools import MailboxTools

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
SENDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True)
RECALLS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True)
DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)


def mailbox(path: str | Path, faults: Faults) -> MCPServer:
    """Build the server over one database, which must exist."""
    server = MCPServer("mailbox", instructions="Customers, invoices and e-mail.", log_level="WARNING")
    tools = MailboxTools(Database(path), faults)
    server.tool(annotations=READS)(tools.list_customers)
    server.tool(annotations=READS)(tools.list_invoices)
    server.tool(annotations=READS)(tools.search_messages)
    server.tool(annotations=SENDS)(tools.send_email)
    server.tool(annotations=RECALLS)(tools.recall_email)
    server.tool(annotations=READS)(tools.list_sent)
    server.tool(annotations=DELETES)(tools.delete_message)
    return server


async def serve(path: str, faults: Faults, port: int | None) -> None:
    """Fill the mailbox if it is empty, then serve until the client leaves or a signal comes."""
    await seed(path, today=faults.today())
    server = mailbox(path, faults)
    gc.freeze()
    gc.enable()
    if port is None:
        await server.run_stdio_async()
        return
    import uvicorn  # noqa: PLC0415 - a server over stdio needs none, and is started often

    with socket.create_server(("127.0.0.1", port)) as listener:
        # asyncio sets this only on sockets that name their protocol. Without it, every answer waits 40 ms for an ACK.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print(f"mailbox ready: http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        config = uvicorn.Config(server.streamable_http_app(), log_level="warning", timeout_graceful_shutdown=1)
        await uvicorn.Server(config).serve(sockets=[listener])


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(description="A mailbox as an MCP server over SQLite.")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve streamable HTTP on this loopback port")
    port = parser.parse_args().http
    environment = dict(os.environ)  # noqa: TID251 - a separate program, configured by its environment
    path = environment.get("MAILBOX_DB") or ".backstay/mailbox.db"
    asyncio.run(serve(path, Faults.read(environment), port))


if __name__ == "__main__":
    main()
