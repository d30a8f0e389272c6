"""Receivers of webhooks on loopback."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, RedirectResponse, StreamingResponse
from starlette.routing import Route

from tests.serving import served


@asynccontextmanager
async def receiver():
    """Listen on a loopback port: /take takes, /fail answers 500, /hang says nothing until it is closed.

    /endless takes, and its answer never ends; /elsewhere sends one to /take.
    """
    taken, closing = asyncio.Queue(), asyncio.Event()

    async def endless():
        while not closing.is_set():
            yield b"x" * 65_536
            await asyncio.sleep(0)

    async def answer(request):
        body = await request.body()
        taken.put_nowait((request.url.path, dict(request.headers), body))
        if request.url.path == "/hang":
            await closing.wait()
        if request.url.path == "/endless":
            return StreamingResponse(endless())
        if request.url.path == "/elsewhere":
            return RedirectResponse("/take", 307)
        return PlainTextResponse("", 500 if request.url.path == "/fail" else 200)

    async with served(Starlette(routes=[Route("/{path}", answer, methods=["POST"])])) as address:
        try:
            yield address, taken
        finally:
            closing.set()


@dataclass
class Troubled:
    """Take notices while it is not `down`, and answer."""

    address: str = ""
    down: bool = False
    losing: set[int] = field(default_factory=set)
    """Sequences of notices that it takes, and then drops the connection, once for each."""
    taken: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """By the id in the header, what it took."""
    refused: int = 0

    async def answer(self, reader, writer):
        """Serve one connection, as far as a client without pipelining needs it."""
        try:
            while status := self._take(*await _post(reader)):
                line = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-length: 0\r\n\r\n"
                writer.write(line.encode())
                await writer.drain()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    def _take(self, name, notice):
        if self.down:
            self.refused += 1
            return HTTPStatus.SERVICE_UNAVAILABLE
        self.taken.append((name, notice))
        if notice["sequence"] in self.losing:
            self.losing.remove(notice["sequence"])
            return None
        return HTTPStatus.OK


async def _post(reader):
    """Read one request; return the notice's id, as its header has it, and the notice."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    return headers["backstay-id"], json.loads(await reader.readexactly(int(headers["content-length"])))


@asynccontextmanager
async def troubled_receiver():
    """Listen on a loopback port, with the troubles that a test makes."""
    site = Troubled()
    server = await asyncio.start_server(site.answer, "127.0.0.1", 0)
    site.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/told"
    async with server:
        yield site
