"""Listen on one address for people and other programs, with bounds for what strangers may hold open."""

import asyncio
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from backstay.errors import SettingsInvalid

HEAD_S = 10.0
"""How long a connection may take to say what it wants."""
BODY_S = 10.0
"""How long its body may take."""
_MOST_HEAD = 32 * 1024
_DRAIN_S = 3


def config_of(app: Starlette, most_connections: int) -> uvicorn.Config:
    """Return how routes are served: with bounds for heads and connections, and without a word about the server."""
    return uvicorn.Config(
        app,
        http=Patient,
        ws="none",
        log_config=None,
        log_level="warning",
        # An address may hold the token of a link.
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_MOST_HEAD,
        limit_concurrency=most_connections,
        timeout_graceful_shutdown=_DRAIN_S,
    )


def address_of(host: str, port: int) -> str:
    """Return the URL of an address."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises SettingsInvalid."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise SettingsInvalid(f"--port: {host}:{port} cannot be listened on ({error}); choose another") from None
    # Its connections inherit this; without it, each answer waits 40 ms for the browser to confirm its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


class TooLong(Exception):
    """A body has more bytes than are read of it."""


async def read_body(request: Request, most: int, within_s: float = BODY_S) -> bytes:
    """Return the body of a request that anybody may have sent; raises TooLong, or TimeoutError for one that is slow."""
    body = bytearray()
    async with asyncio.timeout(within_s):
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise TooLong
    return bytes(body)


class PageServer(uvicorn.Server):
    """Say when it can be reached, and stop in good order at SIGTERM and Ctrl-C."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], Any]) -> None:
        """`ready` is called once it can be reached."""
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stop at a signal, and do not raise it again afterwards, as the library would."""
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self._stop)
        yield

    def _stop(self) -> None:
        self.should_exit = True


class Patient(H11Protocol):
    """Close a connection that does not say within seconds what it wants."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the head of a request."""
        super().connection_made(transport)
        self._waiting = self.loop.call_later(HEAD_S, transport.close)

    def data_received(self, data: bytes) -> None:
        """Wait on while only a part of a head has come."""
        super().data_received(data)
        cycle: Any = self.cycle  # the library leaves out that there may be none
        under_way = cycle is not None and not cycle.response_complete
        if under_way and self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        elif not under_way and self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_S, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)
