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
async def served(app):
    """Serve until the block ends; yields the address, without a slash at its end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        config = uvicorn.Config(app, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=1)
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


def free_port():
    """Return a port that nobody listens on now, for a program that cannot say which one it took."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
