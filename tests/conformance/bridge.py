"""Let a client that speaks HTTP reach a stdio server: each message is passed on as it is, and nothing is answered here.

argv: the command of the server. Prints the address.
"""

import asyncio
import contextlib
import itertools
import json
import sys
import uuid
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

ANSWER_S = 90
READY = 3
SESSION = "mcp-session-id"
ENVELOPED = "enveloped"
VERSION = "io.modelcontextprotocol/protocolVersion"


class Child:
    """Hold one process of the server, and who waits for which of its answers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, command: list[str]) -> "Child":
        pipe = asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=1 << 24))

    async def pass_on(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a request; nothing is answered to anything else."""
        if "id" not in message or "method" not in message:
            self._write(message)
            return None
        number = next(self._numbers)  # clients in one session may use the same id
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self._write({**message, "id": number})
        async with asyncio.timeout(ANSWER_S):
            answer = await self._waiting[number]
        return {**answer, "id": message["id"]}

    async def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        self._reading.cancel()

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            message = json.loads(line)
            waiting = self._waiting.pop(message.get("id"), None)
            if waiting is not None and "method" not in message:
                waiting.set_result(message)


class Bridge:
    """Keep a process for each session, and one or two for all requests without one.

    The suite waits for few seconds, which a busy machine needs to start a process: some stand ready.
    """

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._children: dict[str, Child] = {}
        self._ready: list[asyncio.Task[Child]] = []

    async def prepare(self) -> None:
        """Have processes stand ready."""
        self._ready = [asyncio.create_task(self._answering()) for _ in range(READY)]
        await asyncio.wait(self._ready)

    async def _answering(self) -> Child:
        child = await Child.start(self._command)
        await child.pass_on({"jsonrpc": "2.0", "id": 0, "method": "ping"})
        return child

    async def _next(self) -> Child:
        self._ready.append(asyncio.create_task(self._answering()))
        return await self._ready.pop(0)

    async def take(self, request: Request) -> Response:
        try:
            message = await request.json()
        except ValueError:
            return _error(400, -32700, "the body is not JSON")
        named = request.headers.get(SESSION, "")
        if message.get("method") == "initialize":
            named = uuid.uuid4().hex
        elif named and named not in self._children:
            return _error(404, -32001, "there is no such session")
        # A process speaks the revision of its first message: one serves the requests that carry theirs themselves.
        key = named or (ENVELOPED if VERSION in message.get("params", {}).get("_meta", {}) else "bare")
        if key not in self._children:
            fresh = Child.start(self._command) if key == ENVELOPED else self._next()
            self._children[key] = await fresh
        answer = await self._children[key].pass_on(message)
        headers = {SESSION: named} if named else {}
        return Response(status_code=202, headers=headers) if answer is None else JSONResponse(answer, headers=headers)

    async def drop(self, request: Request) -> Response:
        child = self._children.pop(request.headers.get(SESSION, ""), None)
        if child is None:
            return _error(404, -32001, "there is no such session")
        await child.end()
        return Response(status_code=200)

    async def end(self) -> None:
        for child in [*self._children.values(), *await asyncio.gather(*self._ready)]:
            await child.end()


def _error(status: int, code: int, message: str) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}, status)


async def main(command: list[str]) -> None:
    bridge = Bridge(command)
    await bridge.prepare()
    routes = [Route("/mcp", bridge.take, methods=["POST"]), Route("/mcp", bridge.drop, methods=["DELETE"])]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), host="127.0.0.1", port=0, log_level="critical"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}/mcp", flush=True)
    try:
        await serving
    finally:
        await bridge.end()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
