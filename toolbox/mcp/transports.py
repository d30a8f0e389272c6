"""The transports to an MCP server: stdio, streamable HTTP, and server-sent events."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError, JSONRPCMessage

from backstay.errors import ToolUnavailable
from backstay.redaction.redactor import Redactor
from system.children import end_group
from system.files import close_to_others, make_private_directory
from toolbox.configuration.configuration import ServerEntry
from toolbox.mcp.http_transport import CAP, PIECE_S, ObservedTransport
from toolbox.mcp.wire import MALFORMED, TOO_LARGE, cut_off, id_at_the_edge, messages_of
from toolbox.processes.runner import clean_environment, find_command

Transport = Callable[[asyncio.Event], AbstractAsyncContextManager[Any]]
"""Opens the two streams of a server; sets the event when no answer can come any more."""
NOT_SPOKEN_HERE = frozenset({400, 404, 405, 406, 415})
"""The status of an address that supports another transport only."""
_SILENCE_S = 3600.0
_EDGE = 4096
_ENDLESS = 4
"""A line that is this many times too long will not end: nothing can be answered behind it."""


@dataclass(frozen=True, slots=True)
class Overlong:
    """Replaces a line that was dropped because it was too long."""

    head: bytes
    tail: bytes


class LineBuffer:
    """Collect chunks until a line is whole; the cost stays linear however long the line is."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    @property
    def unfinished(self) -> int:
        """Return how many bytes of the line have come that is not whole yet."""
        return self._size

    def feed(self, chunk: bytes) -> list[bytes | Overlong]:
        """Return the lines that this chunk completes."""
        *ends, rest = chunk.split(b"\n")
        found: list[bytes | Overlong] = []
        for end in ends:
            self._add(end)
            found.append(self._take())
        if rest:
            self._add(rest)
        return found

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._cap:
            self._parts.append(part)
            return
        if self._parts:
            self._head = b"".join(self._parts[:2])[:_EDGE]
            self._tail = self._parts[-1][-_EDGE:]
            self._parts = []
        self._head = self._head or part[:_EDGE]
        self._tail = (self._tail + part[-_EDGE:])[-_EDGE:]

    def _take(self) -> bytes | Overlong:
        line = b"".join(self._parts) if self._size <= self._cap else Overlong(self._head, self._tail)
        self._parts, self._size, self._head, self._tail = [], 0, b"", b""
        return line


_LOG_CAP = 1024 * 1024
_LINE_CAP = 64 * 1024
_CHUNK = 256 * 1024
_KEY = re.compile(rb"-BEGIN [A-Za-z0-9 ]{0,40}(?:PRIVATE|SECRET|static) KEY", re.IGNORECASE)
_KEY_END = b"-END "


@asynccontextmanager
async def open_stdio(
    server: ServerEntry,
    *,
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    redactor: Redactor,
    ended: asyncio.Event,
) -> AsyncGenerator[Any]:
    """Start the server and yield its streams; `ended` is set when it stops talking.

    Raises ToolUnavailable when the command cannot be started.
    """
    process = await _start(server, environment, folder)
    async with create_client_server_memory_streams() as (ours, (from_client, to_client)):
        stderr = _Log(log, redactor)
        pumps = [
            asyncio.create_task(_read(process, to_client, stderr, ended)),
            asyncio.create_task(_write(process, from_client, ended)),
            asyncio.create_task(_keep(process, stderr)),
        ]
        try:
            yield ours
        finally:
            if process.stdin is not None:
                process.stdin.close()
            # No server outlives its client by more than 5 s.
            await end_group(process, quiet_s=2.0, ask_s=1.5)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            stderr.end()


async def _start(server: ServerEntry, environment: Mapping[str, str], folder: Path) -> asyncio.subprocess.Process:
    place = folder / (server.cwd or ".")
    if not place.is_dir():
        raise ToolUnavailable(f"the server's directory {server.cwd!r} does not exist; correct `cwd`")
    clean = clean_environment(environment, server.env)
    command = find_command(str(server.command), folder=place, environment=clean)
    try:
        return await asyncio.create_subprocess_exec(
            command,
            *server.args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=place,
            env=clean,
            start_new_session=True,
            limit=_CHUNK,
        )
    except (OSError, ValueError) as error:
        raise ToolUnavailable(f"the command {command!r} cannot be started: {type(error).__name__}") from None


async def _read(process: asyncio.subprocess.Process, to_client: Any, stderr: "_Log", ended: asyncio.Event) -> None:
    lines = LineBuffer(CAP)
    ends: float | None = None
    assert process.stdout is not None  # noqa: S101 - opened with pipes
    try:
        while True:
            async with asyncio.timeout_at(ends):
                chunk = await process.stdout.read(_CHUNK)
            if not chunk:
                return
            found = lines.feed(chunk)
            if lines.unfinished > _ENDLESS * CAP:
                stderr.write(b"a line on stdout has no end\n")
                return
            if not lines.unfinished:
                ends = None
            elif found or ends is None:
                ends = asyncio.get_running_loop().time() + PIECE_S
            for line in found:
                messages = _parse(line)
                for message in messages:
                    await to_client.send(SessionMessage(message))
                if not messages and isinstance(line, bytes) and line.strip():
                    stderr.write(b"not JSON-RPC on stdout: " + line[:500] + b"\n")
    except TimeoutError:
        stderr.write(b"a line on stdout did not end in time\n")
    finally:
        ended.set()
        await to_client.aclose()


def _parse(line: bytes | Overlong) -> list[JSONRPCMessage]:
    if isinstance(line, Overlong):
        return _error(id_at_the_edge(line.head, line.tail), TOO_LARGE, "the answer is too large")
    return messages_of(line) or _error(cut_off(line), MALFORMED, "the answer is malformed")


def _error(asked: int | None, code: int, message: str) -> list[JSONRPCMessage]:
    if asked is None:
        return []
    return [JSONRPCError(jsonrpc="2.0", id=asked, error=ErrorData(code=code, message=message))]


async def _write(process: asyncio.subprocess.Process, from_client: Any, ended: asyncio.Event) -> None:
    assert process.stdin is not None  # noqa: S101 - opened with pipes
    try:
        async for item in from_client:
            if isinstance(item, SessionMessage):
                process.stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()
    except (ConnectionError, OSError):
        # The reader says that it is over; a request in flight must learn that from a closed stream.
        ended.set()


async def _keep(process: asyncio.subprocess.Process, stderr: "_Log") -> None:
    assert process.stderr is not None  # noqa: S101 - opened with pipes
    while chunk := await process.stderr.read(64 * 1024):
        stderr.write(chunk)


class _Log:
    """Keep the last part of what a server prints, without secrets and for this user only, at most twice the cap."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._path = path
        self._redactor = redactor
        self._begun = b""
        make_private_directory(path.parent)
        for known in (path, self._older):
            close_to_others(known, 0o600)

    @property
    def _older(self) -> Path:
        return self._path.with_suffix(".stderr.old")

    def write(self, chunk: bytes) -> None:
        """Keep the lines that are whole by now: a secret may stand across two pieces, and a key across many lines."""
        whole, _, self._begun = (self._begun + chunk)[-_LOG_CAP:].rpartition(b"\n")
        if (begin := _key_begun(whole)) is not None:
            whole, self._begun = whole[:begin], whole[begin:] + b"\n" + self._begun
        if len(self._begun) > _LINE_CAP:
            whole, self._begun = whole + b"\n" + self._begun, b""
        if whole.strip():
            self._keep(whole)

    def end(self) -> None:
        """Keep a last line that has no end."""
        if self._begun:
            self._keep(self._begun)

    def _keep(self, lines: bytes) -> None:
        text = self._redactor.text(lines.decode("utf-8", "replace"))
        with suppress(OSError):
            if self._path.exists() and self._path.stat().st_size > _LOG_CAP:
                self._path.replace(self._older)
            opened = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(opened, "wb") as file:
                file.write(text.encode("utf-8", "replace") + b"\n")


def _key_begun(lines: bytes) -> int | None:
    """Return where the line begins in which a private key begins that does not end."""
    last = max((found.start() for found in _KEY.finditer(lines)), default=None)
    return None if last is None or _KEY_END in lines[last:] else lines.rfind(b"\n", 0, last) + 1


def stdio_transport(
    server: ServerEntry, *, environment: Mapping[str, str], folder: Path, log: Path, redactor: Redactor
) -> Transport:
    """Return the transport that starts the server as a command; `redactor` knows what its log must not hold."""
    options: Any = {"environment": environment, "folder": folder, "log": log, "redactor": redactor}
    return lambda ended: open_stdio(server, **options, ended=ended)


def http_transports(
    server: ServerEntry, auth: httpx2.Auth | None = None, inner: Callable[[], httpx2.AsyncBaseTransport] | None = None
) -> tuple[Transport, ...]:
    """Return the transports to try for an address, in order; without a `type` it may be either.

    `auth` adds to each request what lets it in; `inner` makes what sends them, where not every address may be reached.
    """
    if server.type == "sse":
        return (_sse(server, auth, inner),)
    both = (_streamable(server, auth, inner), _sse(server, auth, inner))
    return both if server.type is None else both[:1]


_Inner = Callable[[], httpx2.AsyncBaseTransport] | None


def _streamable(server: ServerEntry, auth: httpx2.Auth | None, inner: _Inner) -> Transport:
    @asynccontextmanager
    async def open_http(ended: asyncio.Event) -> AsyncGenerator[Any]:
        transport = ObservedTransport(inner and inner(), gone=ended.set, renews=auth is not None)
        async with (
            _http(server, transport, auth) as http,
            streamable_http_client(str(server.url), http_client=http, max_sse_event_size=CAP) as streams,
        ):
            yield streams

    return open_http


def _sse(server: ServerEntry, auth: httpx2.Auth | None, inner: _Inner) -> Transport:
    @asynccontextmanager
    async def open_sse(ended: asyncio.Event) -> AsyncGenerator[Any]:
        transport = ObservedTransport(inner and inner(), answers_apart=True)
        opened = sse_client(
            str(server.url),
            sse_read_timeout=_SILENCE_S,
            httpx_client_factory=lambda **_: _http(server, transport, auth, ended.set),  # type: ignore[arg-type]  # its keywords are ours
        )
        async with opened as streams:
            yield streams

    return open_sse


class _Client(httpx2.AsyncClient):
    """Tell of each message that was refused in the end, also with a renewed token.

    The MCP client sends nothing more after one over the older transport, and reports nothing.
    """

    def __init__(self, refused: Callable[[], None] | None, **options: Any) -> None:
        super().__init__(**options)
        self._refused = refused

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request."""
        accepted = False
        try:
            response = await super().send(request, **options)
            accepted = response.status_code < 400
        finally:
            if self._refused is not None and request.method == "POST" and not accepted:
                self._refused()
        return response


def _http(
    server: ServerEntry,
    transport: ObservedTransport,
    auth: httpx2.Auth | None,
    refused: Callable[[], None] | None = None,
) -> httpx2.AsyncClient:
    return _Client(
        refused,
        transport=transport,
        headers=server.headers,
        auth=auth,
        timeout=httpx2.Timeout(None, connect=10, pool=10),
        trust_env=False,  # a proxy from the environment would go around the observing transport
    )
