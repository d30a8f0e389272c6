"""Put the engine's MCP server together, and serve it over HTTP to callers that are known."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import INVALID_REQUEST
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from backstay.errors import BackstayError
from gateways.engine_mcp.limits import CallerLimits
from gateways.engine_mcp.runs import EngineRuns
from gateways.engine_mcp.server import Context, TaskServer
from gateways.engine_mcp.tools import TOLD, Definitions, EngineTools
from gateways.links import Stranger

_NAME = "backstay"
_CALLER = "backstay.caller"
_METADATA = "/.well-known/oauth-protected-resource"
Named = Callable[[Request], Awaitable[str]]
"""Says who sends a request; raises Stranger."""


def engine_server(
    runs: EngineRuns, definitions: Definitions, *, caller: Callable[[Context], str], may_start: Callable[[str], bool]
) -> Server[Any]:
    """Return the MCP server of the engine."""
    limits = CallerLimits()
    tools = EngineTools(runs, definitions, limits, may_start).served()
    served = TaskServer(tools, runs, name=_NAME, instructions=TOLD["instructions"], caller=caller, limits=limits)
    return served.server()


def caller_of(context: Context) -> str:
    """Return who has sent a request over HTTP."""
    request: Request | None = context.request
    if request is None:
        raise RuntimeError("a request over HTTP has come without its head")
    return str(request.scope[_CALLER])


class SignIn(NamedTuple):
    """Tell clients where their people sign in for this server, as RFC 9728 says it."""

    issuer: str
    """Who makes out the tokens that are believed."""
    url: str | None
    """The public address; None where requests are made to this machine under its own names."""

    def place(self, request: Request, path: str) -> str:
        """Return the address of a path, as clients reach it."""
        return f"{self.url or str(request.base_url)}".rstrip("/") + path

    def routes(self, path: str) -> list[Route]:
        """Return the routes under which clients look for that."""

        async def told(request: Request) -> Response:
            resource = self.place(request, path)
            servers = {"authorization_servers": [self.issuer], "bearer_methods_supported": ["header"]}
            return JSONResponse({"resource": resource, **servers})

        return [Route(place, told, methods=["GET"]) for place in (f"{_METADATA}{path}", _METADATA)]


class _Endpoint:
    """Let requests through whose caller is known."""

    def __init__(self, manager: StreamableHTTPSessionManager, named: Named, sign_in: SignIn | None, path: str) -> None:
        self._manager = manager
        self._named = named
        self._sign_in = sign_in
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A browser sends the cookie of the page by itself, whoever has it do so.
        headers = [(name, value) for name, value in scope["headers"] if name != b"cookie"]
        request = Request({**scope, "headers": headers})
        content = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content != "application/json":
            await _refused(415, "send JSON-RPC as application/json")(scope, receive, send)
            return
        try:
            caller = await self._named(request)
        except Stranger as error:
            answer = _refused(401, str(error))
            answer.headers["WWW-Authenticate"] = self._challenge(request)
            await answer(scope, receive, send)
            return
        except BackstayError as error:
            await _refused(503, str(error))(scope, receive, send)
            return
        await self._manager.handle_request({**scope, _CALLER: caller}, receive, send)

    def _challenge(self, request: Request) -> str:
        if self._sign_in is None:
            return "Bearer"
        return f'Bearer resource_metadata="{self._sign_in.place(request, f"{_METADATA}{self._path}")}"'


def http_app(
    server: Server[Any], path: str, named: Named, guard: Middleware, *, sign_in: SignIn | None = None
) -> Starlette:
    """Return what serves it over HTTP, without sessions, behind a guard; `sign_in` says where clients get tokens."""
    manager = StreamableHTTPSessionManager(server, stateless=True)
    routes = [Route(path, _Endpoint(manager, named, sign_in, path), methods=["POST"])]
    routes += [] if sign_in is None else sign_in.routes(path)
    return Starlette(routes=routes, middleware=[guard], lifespan=lambda _: manager.run())


def _refused(status: int, why: str) -> JSONResponse:
    """Return a refusal that is told before anything of a request is read."""
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": why}}, status)
