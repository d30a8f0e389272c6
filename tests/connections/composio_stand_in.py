"""A service of the shape of Composio's API: accounts of users, links to connect one, and MCP addresses for users."""

import asyncio
import secrets
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Mount, Route

from tests.connections.issuer import secure

KEY, SERVER, CONFIG = "ck-violet-harbour-lantern", "srv-1", "ac_1"
user: ContextVar[str] = ContextVar("user", default="")


@dataclass
class StandIn:
    """Hold accounts and addresses, and how it misbehaves."""

    url: str = ""
    accounts: dict = field(default_factory=dict)
    """Whose account is connected, by its id."""
    links: dict = field(default_factory=dict)
    addresses: dict = field(default_factory=dict)
    """Whose each address is, by the secret in it."""
    calls: list = field(default_factory=list)
    keys: list = field(default_factory=list)
    """The keys that came to addresses of users."""
    written: list = field(default_factory=list)
    status: int = 0
    pause_s: float = 0.0
    gives: dict = field(default_factory=dict)
    """What an answer says otherwise, by the name of the call."""

    def __post_init__(self):
        server = MCPServer("gmail")

        @server.tool()
        def send(to: str) -> str:
            """Send a mail."""
            self.written.append((user.get(), to))
            return f"sent by {user.get()} through {next(iter(self.addresses))}"

        self.mcp = server.streamable_http_app(stateless_http=True, json_response=True, streamable_http_path="/")

    @property
    def app(self):
        routes = [
            Route("/api/v3/connected_accounts", self.listed, methods=["GET"]),
            Route("/api/v3/connected_accounts/link", self.link, methods=["POST"]),
            Route("/api/v3/mcp/servers/generate", self.generate, methods=["POST"]),
            Route("/connect/{link}", self.connect, methods=["GET"]),
            Mount("/v3/mcp", self.guarded),
        ]
        return Starlette(routes=routes, lifespan=lambda _: self.mcp.router.lifespan_context(self.mcp))

    async def _answered(self, request, name, said):
        self.calls.append(name)
        await asyncio.sleep(self.pause_s)
        if request.headers.get("x-api-key") != KEY:
            return JSONResponse({"error": {"message": "wrong key", "given": request.headers.get("x-api-key")}}, 401)
        if self.status:
            return JSONResponse({"error": {"message": "not now"}}, self.status)
        return JSONResponse({**said, **self.gives.get(name, {})})

    async def listed(self, request):
        asked = request.query_params
        items = [
            {"id": each, "status": "ACTIVE", "user_id": who}
            for each, who in self.accounts.items()
            if who == asked["user_ids"] and asked["auth_config_ids"] == CONFIG
        ]
        return await self._answered(request, "listed", {"items": items, "total_pages": 1})

    async def link(self, request):
        said = await request.json()
        token = secrets.token_hex(8)
        self.links[token] = said
        told = {"link_token": token, "redirect_url": f"{self.url}/connect/{token}", "connected_account_id": "ca_1"}
        return await self._answered(request, "link", told)

    async def connect(self, request):
        """Connect the account, as the person does in a browser."""
        said = self.links.pop(request.path_params["link"])
        account = f"ca_{secrets.token_hex(4)}"
        self.accounts[account] = said["user_id"]
        back = f"{said['callback_url']}&status=success&connected_account_id={account}"
        return RedirectResponse(back)

    async def generate(self, request):
        said = await request.json()
        secret = secrets.token_urlsafe(16)
        self.addresses[secret] = said["user_ids"][0]
        url = f"{self.url}/v3/mcp/{SERVER}?user_id={secret}"
        return await self._answered(request, "generate", {"mcp_url": url, "user_ids_url": [url]})

    async def guarded(self, scope, receive, send):
        request = Request(scope, receive)
        self.keys.append(request.headers.get("x-api-key"))
        who = self.addresses.get(request.query_params.get("user_id"))
        if who is None or who not in self.accounts.values():
            await JSONResponse({"error": f"nobody at {request.url}"}, 401)(scope, receive, send)
            return
        user.set(who)
        await self.mcp({**scope, "path": "/", "raw_path": b"/", "root_path": ""}, receive, send)

    def reset(self):
        """Forget everybody, and behave."""
        for each in (self.accounts, self.links, self.addresses, self.calls, self.keys, self.written, self.gives):
            each.clear()
        self.status, self.pause_s = 0, 0.0


@asynccontextmanager
async def stand_in(authority):
    """Serve it over HTTPS on loopback."""
    found = StandIn()
    async with secure(found.app, authority) as found.url:
        yield found


def entry_of(found, key="${COMPOSIO_API_KEY}"):
    """Return the entry of toolbox.json."""
    about = {"api_key": key, "mcp_server_id": SERVER, "auth_config_id": CONFIG}
    return {"url": found.url, "auth": {"grant": "composio", "composio": about}}
