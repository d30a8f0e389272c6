"""The transports to an MCP server: stdio, streamable HTTP, and server-sent events."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from toolbox.configuration.configuration import ServerEntry
from toolbox.mcp.http_transport import CAP, ObservedTransport
from toolbox.mcp.stdio import open_stdio

Transport = Callable[[asyncio.Event], AbstractAsyncContextManager[Any]]
"""Opens the two streams of a server; sets the event when no answer can come any more."""
NOT_SPOKEN_HERE = frozenset({400, 404, 405, 406, 415})
"""The status of an address that supports another transport only."""
_SILENCE_S = 3600.0


def stdio_transport(server: ServerEntry, *, environment: Mapping[str, str], folder: Path, log: Path) -> Transport:
    """Return the transport that starts the server as a command."""
    return lambda ended: open_stdio(server, environment=environment, folder=folder, log=log, ended=ended)


def http_transports(server: ServerEntry) -> tuple[Transport, ...]:
    """Return the transports to try for an address, in order; without a `type` it may be either."""
    if server.type == "sse":
        return (_sse(server),)
    return (_streamable(server), _sse(server)) if server.type is None else (_streamable(server),)


def _streamable(server: ServerEntry) -> Transport:
    @asynccontextmanager
    async def open_http(_: asyncio.Event) -> AsyncGenerator[Any]:
        async with (
            _http(server, ObservedTransport()) as http,
            streamable_http_client(str(server.url), http_client=http, max_sse_event_size=CAP) as streams,
        ):
            yield streams

    return open_http


def _sse(server: ServerEntry) -> Transport:
    @asynccontextmanager
    async def open_sse(ended: asyncio.Event) -> AsyncGenerator[Any]:
        # The MCP client sends nothing more after a refused request, and reports nothing.
        transport = ObservedTransport(refused=ended.set)
        opened = sse_client(
            str(server.url),
            sse_read_timeout=_SILENCE_S,
            httpx_client_factory=lambda **_: _http(server, transport),  # type: ignore[arg-type]  # its keywords are ours
        )
        async with opened as streams:
            yield streams

    return open_sse


def _http(server: ServerEntry, transport: ObservedTransport) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=transport,
        headers=server.headers,
        timeout=httpx2.Timeout(None, connect=10, pool=10),
        trust_env=False,  # a proxy from the environment would go around the observing transport
    )
