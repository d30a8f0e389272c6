"""A streamable HTTP endpoint that answers a call of the tool `http_<status>` with that status, and counts the calls."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

calls: list[str] = []
headers: list[dict[str, str]] = []
waits: list[str] = ["7"]
"""The last one is how long it wants those to wait whom it refuses."""
left: list[str] = []
"""The bodies without an end that nobody reads any more."""
ENDLESS = ("drip", "drip_401", "drip_500", "event", "flood")
OPEN = ("open_200", "open_400", "open_500")
"""Those that answer in a stream which stays open behind the answer."""
CODED = {
    "coded_none": "none",
    "coded_charset": "utf-8",
    "coded_empty": "",
    "coded_twice": "identity, none",
    "coded_unknown": "aws-chunked",
}
"""Those that say of an answer as it is that it is encoded."""
LATE_S = 3.0
"""How long an answer takes that comes late."""
said: asyncio.Queue[bytes] = asyncio.Queue()
"""The answers that are to come on the stream of the older transport."""
answering: set[asyncio.Task[None]] = set()
PACKED = {"packed": "gzip", "packed_twice": "identity, br", "packed_old": "x-gzip"}
STATUSES = (200, 202, 302, 401, 403, 404, 407, 429, 500, 502, 503)


def _tool(name: str) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}}


async def _endless(name: str, chunk: bytes, pause_s: float, first: bytes = b"") -> AsyncIterator[bytes]:
    try:
        yield first
        while True:
            yield chunk
            await asyncio.sleep(pause_s)
    finally:
        left.append(name)


def _call(name: str, identity: dict[str, Any]) -> Response:
    calls.append(name)
    refusal = identity | {"error": {"code": -32603, "message": "over quota"}}
    match name.split("_"):
        case ["http", status]:
            return HTMLResponse("<html>no</html>", status_code=int(status), headers={"retry-after": waits[-1]})
        case ["json", status]:
            return JSONResponse({"error": "unauthorized"}, status_code=int(status))
        case ["rpc" | "null" as named, status]:
            return JSONResponse(refusal if named == "rpc" else refusal | {"id": None}, status_code=int(status))
        case ["params", status]:
            return JSONResponse(identity | {"error": {"code": -32602, "message": "bad"}}, status_code=int(status))
        case ["broken"]:
            return Response('{"jsonrpc": "2.0", "id": 1, "resu', media_type="application/json")
        case ["drip"]:
            return StreamingResponse(_endless(name, b" ", 0.05), media_type="application/json")
        case ["drip", status]:
            return StreamingResponse(_endless(name, b" ", 0.05), int(status), media_type="application/json")
        case ["event"]:
            return StreamingResponse(_endless(name, b"data: x\n", 0.05), media_type="text/event-stream")
        case ["open", status]:
            answer = identity | {"result": {"content": [{"type": "text", "text": "fine"}]}}
            whole = _endless(name, b"\n: still here\n\n", 0.05, first=f"data: {json.dumps(answer)}\n\n".encode())
            return StreamingResponse(whole, int(status), media_type="text/event-stream")
        case ["flood"]:
            return StreamingResponse(_endless(name, b" " * 1_000_000, 0), media_type="application/json")
        case ["packed", *_]:
            return Response(b"\x1f\x8b", media_type="application/json", headers={"content-encoding": PACKED[name]})
        case _:
            coding = {"content-encoding": CODED[name]} if name in CODED else {}
            return JSONResponse(identity | {"result": {"content": [{"type": "text", "text": "fine"}]}}, headers=coding)


async def _kept_open() -> AsyncIterator[bytes]:
    """Yield the answers between comments that end with their line."""
    yield b"event: endpoint\ndata: /sse/messages\n\n"
    while True:
        try:
            yield b"data: " + await asyncio.wait_for(said.get(), 0.1) + b"\n\n"
        except TimeoutError:
            yield b": ping\n"


async def older_transport(request: Request) -> Response:
    """Answer on the one stream of the older transport."""
    if request.method == "GET":
        return StreamingResponse(_kept_open(), media_type="text/event-stream")
    response = await endpoint(request)
    late = b'"name":"late"' in (await request.body()).replace(b" ", b"")

    async def answer() -> None:
        await asyncio.sleep(LATE_S if late else 0)
        await said.put(bytes(response.body))

    if response.body:
        answering.add(task := asyncio.create_task(answer()))
        task.add_done_callback(answering.discard)
    return Response(status_code=202)


async def endpoint(request: Request) -> Response:
    body = json.loads(await request.body() or b"null")
    if not isinstance(body, dict) or "id" not in body:
        return Response(status_code=202 if request.method == "POST" else 405)
    identity = {"jsonrpc": "2.0", "id": body["id"]}
    headers.append(dict(request.headers))
    if request.url.path == "/closed":
        return Response(status_code=401)
    match body["method"]:
        case "initialize":
            info = {"serverInfo": {"name": "web", "version": "1"}, "capabilities": {"tools": {}}}
            return JSONResponse(identity | {"result": info | {"protocolVersion": "2025-06-18"}})
        case "tools/list":
            kinds = [f"{kind}_{status}" for kind in ("http", "json", "rpc", "null", "params") for status in STATUSES]
            names = [*kinds, *ENDLESS, *OPEN, *CODED, *PACKED, "broken", "fine", "late"]
            return JSONResponse(identity | {"result": {"tools": [_tool(name) for name in names]}})
        case "tools/call":
            return _call(body["params"]["name"], identity)
        case _:
            return JSONResponse(identity | {"error": {"code": -32601, "message": "no such method"}}, status_code=404)


older = Route("/sse{path:path}", older_transport, methods=["GET", "POST"])
app = Starlette(routes=[older, Route("/{path:path}", endpoint, methods=["GET", "POST", "DELETE"])])
