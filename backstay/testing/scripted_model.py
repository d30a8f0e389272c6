"""A model that follows a script: an OpenAI-compatible server over a real loopback socket, with its own bill."""

import asyncio
import inspect
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from backstay.testing.completion import ScriptedCompletion
from backstay.testing.conversation import Conversation
from backstay.testing.reply import Bill, Prices, Reply


class Silence(Response):
    """Send nothing until the client disconnects; with `hang_up`, disconnect it first."""

    def __init__(self, hang_up: Callable[[], None] | None = None) -> None:
        super().__init__()
        self._hang_up = hang_up

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for the end of the connection."""
        if self._hang_up is not None:
            self._hang_up()
        while (await receive())["type"] != "http.disconnect":
            pass


class Half(Silence):
    """Send the first half of an answer, and disconnect the client."""

    def __init__(
        self, body: bytes, hang_up: Callable[[], None], streamed: Callable[[], AsyncIterator[bytes]] | None = None
    ) -> None:
        super().__init__(hang_up)
        self._whole = body
        self._streamed = streamed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Begin to answer; the announced rest never comes."""
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(self._whole)).encode())]
        if self._streamed is not None:
            headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if self._streamed is None:
            half = self._whole[: len(self._whole) // 2]
            await send({"type": "http.response.body", "body": half, "more_body": True})
        else:
            async for event in self._streamed():
                await send({"type": "http.response.body", "body": event, "more_body": True})
        await super().__call__(scope, receive, send)


Rules = Callable[[Conversation], Reply | Awaitable[Reply]] | Sequence[Reply]
"""A rule that answers every conversation, or replies in the order of the requests."""


class ScriptedModel:
    """Serve Chat Completions from rules.

    `async with ScriptedModel(rules) as model:` listens on a free loopback port of the running loop; give
    `model.base_url` to any OpenAI client.
    """

    def __init__(self, rules: Rules, port: int = 0, *, kept: int | None = None) -> None:
        """Keep the last `kept` requests, or all of them: thousands of long ones take gigabytes."""
        self.requests: list[dict[str, Any]] = []
        """The parsed bodies of the requests, in order of arrival."""
        self.bill = Bill()
        self.faults: list[Exception] = []
        """What the rules themselves raised."""
        self._rules = rules
        self._port = port
        self._kept = kept
        self._arrived = 0
        self._changed = asyncio.Condition()
        self._before = b""

    @property
    def base_url(self) -> str:
        """Return the address to give to a client."""
        return f"http://127.0.0.1:{self._port}/v1"

    def billed_micro(self, prices: Prices) -> int:
        """Return what was billed so far in millionths of a US dollar, lost and failed answers included."""
        return self.bill.micro(prices)

    async def asked(self, count: int = 1, within_s: float = 30) -> None:
        """Wait until the given number of requests have arrived; raises TimeoutError."""
        await self._until(lambda: self._arrived >= count, within_s)

    async def charged(self, count: int = 1, within_s: float = 30) -> None:
        """Wait until the given number of requests have been billed; raises TimeoutError."""
        await self._until(lambda: len(self.bill) >= count, within_s)

    async def __aenter__(self) -> Self:
        listener = socket.create_server(("127.0.0.1", self._port))
        # asyncio does this only for sockets that name their protocol; without it every answer waits 40 ms for an ACK.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._port = listener.getsockname()[1]
        routes = [
            Route("/v1/chat/completions", self._complete, methods=["POST"]),
            Route("/v1/models", self._models, methods=["GET"]),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes), http=H11Protocol, log_config=None, access_log=False, lifespan="off", ws="none"
        )
        self._server = _Server(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._hang_up_on(None)
        await self._serving

    async def _until(self, holds: Callable[[], bool], within_s: float) -> None:
        async with asyncio.timeout(within_s), self._changed:
            await self._changed.wait_for(holds)

    async def _models(self, _: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "script"}]})

    async def _complete(self, request: Request) -> Response:
        raw = await request.body()
        body = _parsed(raw)
        self._arrived = number = self._arrived + 1
        shared = _shared(self._before, raw)
        self._before = raw
        self.requests.append(body)
        if self._kept is not None:
            del self.requests[: -self._kept]
        await self._tell()
        reply = await self._reply(number, body)
        answer = ScriptedCompletion(reply, number, body, len(raw), shared)
        if reply.billed:
            self.bill.add(str(body.get("model", "")), answer.usage)
            await self._tell()
        await asyncio.sleep(reply.delay_s)
        return self._response(request, reply, answer, stream=body.get("stream") is True)

    async def _reply(self, number: int, body: dict[str, Any]) -> Reply:
        if not callable(self._rules):
            if number <= len(self._rules):
                return self._rules[number - 1]
            return Reply(status=400, text=f"the script has {len(self._rules)} replies and this is request {number}")
        try:
            reply = self._rules(Conversation(body))
            return await reply if inspect.isawaitable(reply) else reply
        except Exception as fault:
            # The rules are somebody else's code: errors that they raise are shown to the test and to the client.
            self.faults.append(fault)
            return Reply(status=400, text=f"the script failed: {fault!r}")

    def _response(self, request: Request, reply: Reply, answer: ScriptedCompletion, *, stream: bool) -> Response:
        if reply.then == "drop":
            return Silence(lambda: self._hang_up_on(request.client))
        if reply.then == "cut":
            half = partial(answer.stream, cut=True) if stream else None
            return Half(answer.whole(), lambda: self._hang_up_on(request.client), half)
        if reply.then == "hang":
            return Silence()
        if stream and reply.status < 400 and reply.body is None:
            return StreamingResponse(answer.stream(), reply.status, reply.headers, "text/event-stream")
        media_type = "application/json" if reply.body is None else "text/html"
        return Response(answer.whole(), reply.status, reply.headers, media_type)

    def _hang_up_on(self, client: tuple[str, int] | None) -> None:
        for connection in list(self._server.server_state.connections):
            if isinstance(connection, H11Protocol) and client in (None, connection.client):
                connection.transport.abort()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


class _Server(uvicorn.Server):
    """Leave signals to the program that runs us."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _shared(first: bytes, other: bytes) -> int:
    """Return how many leading bytes two requests share, as a provider's prompt cache would see it."""
    low, high = 0, min(len(first), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if first[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
