"""An MCP server such as a user has: it lets in whoever brings its key, and may repeat it, or lead elsewhere."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse

from tests.connections.issuer import secure

KEY, PATH_KEY = "violet-harbour-lantern", "amber-orchard-telescope"
"""Nothing in them looks like a secret, so that they are found by what they are."""


@dataclass
class Crm:
    """Hold what was written, and how the server misbehaves."""

    url: str = ""
    written: list = field(default_factory=list)
    seen: list = field(default_factory=list)
    """The path and the key of each request."""
    echoes: bool = False
    leads_to: str = ""
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    """Unset, what was written down is not answered yet."""

    def __post_init__(self):
        self.answers.set()
        server = MCPServer("crm")

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        def find(name: str) -> str:
            """Find a customer."""
            return f"{name} came with {KEY} by {self.url}" if self.echoes else f"{name} is a customer"

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        async def write(text: str) -> str:
            """Write something down."""
            self.written.append(text)
            await self.answers.wait()
            return "written"

        self.app = server.streamable_http_app(
            stateless_http=True, json_response=True, streamable_http_path=f"/{PATH_KEY}/mcp"
        )

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            request = Request(scope, receive)
            given = request.headers.get("x-key", "")
            self.seen.append((request.url.path, given))
            if self.leads_to:
                await RedirectResponse(self.leads_to, 307)(scope, receive, send)
                return
            if given != KEY:
                await JSONResponse({"error": f"{given} is wrong at {request.url}"}, 401)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def reset(self):
        """Forget what came, and behave."""
        self.written.clear()
        self.seen.clear()
        self.echoes, self.leads_to = False, ""


@asynccontextmanager
async def crm(authority):
    """Serve it over HTTPS on loopback."""
    found = Crm()
    async with secure(found, authority) as base:
        found.url = f"{base}/{PATH_KEY}/mcp"
        yield found
