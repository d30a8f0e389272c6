"""Serve an ASGI application on a loopback port, in the process of the test."""

import asyncio
import socket
from contextlib import asynccontextmanager, contextmanager

import uvicorn


class _Server(uvicorn.Server):
    """Leave signals to the test runner."""

    @contextmanager
    def capture_signals(self):
        yield


@asynccontextmanager
async def served(app, config=None):
    """Serve until the block ends; yields the address, without a slash at its end.

    `config`: how uvicorn serves it, when the program under test has a mind of its own about that.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain = {"log_config": None, "access_log": False, "ws": "none", "timeout_graceful_shutdown": 1}
        config = config or uvicorn.Config(app, **plain)
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving
