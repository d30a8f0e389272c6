"""Serve an ASGI application on a loopback port, in the process of the test."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import asynccontextmanager, contextmanager, suppress

import uvicorn


class Server(uvicorn.Server):
    """Leave signals to the test runner, and end at once; uvicorn looks ten times a second whether it should."""

    def __init__(self, config: uvicorn.Config) -> None:
        self._over = asyncio.Event()
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), 1)

    async def end(self, serving: asyncio.Task[None]) -> None:
        """End, and wait until it has."""
        self.should_exit = True
        self._over.set()
        await serving


@asynccontextmanager
async def served(app, config=None):
    """Serve until the block ends; yields the address, without a slash at its end.

    `config`: how uvicorn serves it, when the program under test has a mind of its own about that.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain = {"log_config": None, "access_log": False, "ws": "none", "timeout_graceful_shutdown": 1}
        config = config or uvicorn.Config(app, **plain)
        server = Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            await server.end(serving)
