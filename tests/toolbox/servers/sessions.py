"""A streamable HTTP server, and one of server-sent events, that keep sessions in memory and can lose them.

What it does with a call or a request of an unknown session is set from outside: `unknown` is the status, `body` one of
`rpc`, `own`, `text` and `none`, `acts` whether a call of an unknown session takes effect all the same.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("look", "change")]


class Sessions:
    """Hold the sessions, the calls that took effect, and how requests are answered."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.opened = 0
        self.lists = 0
        self.acted: list[str] = []
        self.unknown, self.body, self.acts = 404, "rpc", False
        self.lists_with: int | None = None
        """The status of a list of an unknown session, when it differs."""
        self.other_methods: Response | None = None
        """The answer to a ping and a stream, when the server has neither."""
        self.refuses_replies: int | None = None
        """The status of every reply; the next call then asks a person before it goes on."""
        self.refuses_call: Response | None = None
        """The answer to the next call, whatever its session; it has taken effect by then."""
        self.ttl_ms: int | None = None
        self.shape: Any = None
        """Makes the response to a request of a known session, from its result and id."""
        self.streams: dict[str, asyncio.Queue[str]] = {}
        self.replied = asyncio.Event()

    def lose(self, status: int | None = None, body: str | None = None) -> None:
        """Forget all sessions, as a restart does; `status` and `body` say how requests of one are refused then."""
        self.unknown, self.body = status or self.unknown, body or self.body
        self.known.clear()

    def refusal(self, asked: dict[str, Any], status: int | None = None) -> Response:
        """Return the answer to a request of an unknown session."""
        status = status or self.unknown
        if self.body == "none":
            return Response(status_code=status)
        if self.body == "text":
            return PlainTextResponse("Session not found", status_code=status)
        identity = asked.get("id") if self.body == "own" else None
        error = {"code": -32001, "message": "Session not found"}
        return JSONResponse({"jsonrpc": "2.0", "id": identity, "error": error}, status_code=status)

    def beside(self, asked: dict[str, Any]) -> Response | None:
        """Return the answer to what is no request of a session; None for one."""
        if "method" not in asked:
            self.replied.set()
            return Response(status_code=self.refuses_replies or 202)
        if asked["method"] == "ping" and self.other_methods is not None:
            return self.other_methods
        return Response(status_code=202) if "id" not in asked else None

    async def question(self) -> AsyncIterator[str]:
        """Ask a person in the middle of a call, and end without an answer once the reply is refused."""
        form = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
        params = {"message": "Sure?", "requestedSchema": form}
        yield f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'elicitation/create', 'params': params})}\n\n"
        await self.replied.wait()

    def result(self, asked: dict[str, Any]) -> dict[str, Any] | None:
        """Return the result of a request of a known session; None for a method that is not spoken."""
        match asked["method"]:
            case "initialize":
                shown = {"serverInfo": {"name": "sessions", "version": "1"}, "capabilities": {"tools": {}}}
                return shown | {"protocolVersion": "2025-06-18"}
            case "tools/list":
                self.lists += 1
                return {"tools": TOOLS}
            case "tools/call":
                self.acted.append(asked["params"]["name"])
                return {"content": [{"type": "text", "text": "the answer"}]}
            case "ping":
                return {}
            case _:
                return None


def app_of(sessions: Sessions) -> Starlette:
    """Return the server of these sessions: `/mcp` is streamable HTTP, `/sse` the older transport."""

    async def streamable(request: Request) -> Response:
        if request.method != "POST":
            session = request.headers.get("mcp-session-id")
            if sessions.other_methods is not None:
                return sessions.other_methods
            return Response(status_code=405) if session in sessions.known else sessions.refusal({})
        asked = json.loads(await request.body())
        if (beside := sessions.beside(asked)) is not None:
            return beside
        identity = {"jsonrpc": "2.0", "id": asked["id"]}
        headers = {}
        if asked["method"] == "initialize":
            sessions.opened += 1
            headers = {"mcp-session-id": uuid.uuid4().hex}
            sessions.known.add(headers["mcp-session-id"])
        elif asked["method"] == "server/discover":
            return JSONResponse(identity | {"error": {"code": -32601, "message": "no such method"}}, status_code=404)
        elif request.headers.get("mcp-session-id") not in sessions.known:
            if sessions.acts and asked["method"] == "tools/call":
                sessions.result(asked)
            return sessions.refusal(asked, sessions.lists_with if asked["method"] == "tools/list" else None)
        if asked["method"] == "tools/call" and sessions.refuses_call is not None:
            sessions.result(asked)
            refusal, sessions.refuses_call = sessions.refuses_call, None
            return refusal
        result = sessions.result(asked)
        if asked["method"] == "tools/call" and sessions.refuses_replies is not None:
            return StreamingResponse(sessions.question(), media_type="text/event-stream")
        if result is None:
            return JSONResponse(identity | {"error": {"code": -32601, "message": "no such method"}})
        if sessions.shape is not None and asked["method"] == "tools/call":
            return sessions.shape(asked["id"], result)
        return JSONResponse(identity | {"result": result}, headers=headers)

    async def events(request: Request) -> Response:
        session = uuid.uuid4().hex
        sessions.known.add(session)
        sessions.opened += 1
        queue = sessions.streams[session] = asyncio.Queue()

        async def told() -> AsyncIterator[str]:
            yield f"event: endpoint\ndata: /messages?session={session}\n\n"
            while True:
                yield await queue.get()

        return StreamingResponse(told(), media_type="text/event-stream")

    async def messages(request: Request) -> Response:
        asked, session = json.loads(await request.body()), request.query_params["session"]
        if session not in sessions.known:
            return sessions.refusal(asked)
        if "id" in asked:
            result = sessions.result(asked)
            said = {"result": result} if result is not None else {"error": {"code": -32601, "message": "none"}}
            await sessions.streams[session].put(f"data: {json.dumps({'jsonrpc': '2.0', 'id': asked['id']} | said)}\n\n")
        return Response(status_code=202)

    return Starlette(
        routes=[
            Route("/mcp", streamable, methods=["GET", "POST", "DELETE"]),
            Route("/sse", events),
            Route("/messages", messages, methods=["POST"]),
        ]
    )
