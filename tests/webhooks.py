"""A receiver of webhooks on loopback."""

import asyncio
from contextlib import asynccontextmanager

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
