"""The part of the page that a chat reads: what a model is saying, out of a real store, over a real socket."""

import asyncio
import json
import socket
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from temporalio.client import Client
from temporalio.service import RPCError

import worker
from backstay.settings import Settings


@dataclass
class Page:
    """Say where the page is, and which runs were read along."""

    address: str = ""
    read: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))


@asynccontextmanager
async def words_page(settings: Settings, client: Client) -> AsyncGenerator[Page]:
    """Serve it on a free port."""
    page = Page()
    async with worker.open_store(settings) as store:

        async def events(request: Request) -> Response:
            name = request.path_params["workflow_id"]
            try:
                described = await client.get_workflow_handle(name).describe()
            except RPCError:
                return PlainTextResponse("no such run", 404)
            run = f"{name}/{described.raw_description.workflow_execution_info.first_run_id}"

            async def stream() -> AsyncGenerator[str]:
                yield ": here\n\n"
                await store.deltas.watch(run, "the page")
                page.read[name].set()
                async with aclosing(store.deltas.after(run)) as deltas:
                    async for delta in deltas:
                        yield f"event: model.delta\ndata: {json.dumps(delta.event(run))}\n\n"

            return StreamingResponse(stream(), media_type="text/event-stream")

        listener = socket.create_server(("127.0.0.1", 0))
        app = Starlette(routes=[Route("/runs/{workflow_id}/events", events)])
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
        server.install_signal_handlers = lambda: None
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            page.address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            yield page
        finally:
            server.should_exit = server.force_exit = True
            await asyncio.wait({serving}, timeout=10)
