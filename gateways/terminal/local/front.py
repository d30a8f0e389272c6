"""The front of the Web UI: it lets requests through that were meant for it, and none that a strange page sends.

The Web UI itself asks for no password and looks neither at `Host` nor at `Origin`. So a page on the internet could have
its own name lead to this machine, and then read, start and approve runs as if it were the Web UI.
"""

import asyncio
from collections.abc import Collection
from contextlib import suppress

_READS = frozenset({b"GET", b"HEAD", b"OPTIONS"})
_HOP = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"upgrade"})
_HEAD_BYTES = 64 << 10
_HEAD_S = 30.0
_CHUNK = 64 << 10


async def open_front(port: int, web_ui: tuple[str, int]) -> asyncio.Server:
    """Listen on a loopback port, and pass on to the Web UI what may go there. Raises OSError for a taken port."""
    hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await _answer(reader, writer, hosts, web_ui)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    return await asyncio.start_server(serve, "127.0.0.1", port, limit=_HEAD_BYTES)


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hosts: Collection[str], web_ui: tuple[str, int]
) -> None:
    """Answer one request; the connection ends with it, so nothing can follow that was not looked at."""
    try:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_S)
    except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return
    passed = head_for(head, hosts)
    if isinstance(passed, str):
        await _say(writer, "403 Forbidden", passed)
        return
    try:
        from_ui, to_ui = await asyncio.open_connection(*web_ui)
    except OSError:
        await _say(writer, "502 Bad Gateway", "the Web UI does not answer")
        return
    sending = asyncio.create_task(_pipe(reader, to_ui))
    try:
        to_ui.write(passed)
        await _pipe(from_ui, writer)
    finally:
        sending.cancel()
        to_ui.close()


def head_for(head: bytes, hosts: Collection[str]) -> bytes | str:
    """Return the head of a request as it goes to the Web UI, or why it does not go there."""
    first, *lines = head[:-4].split(b"\r\n")
    fields = [line.partition(b":") for line in lines]
    method, _, rest = first.partition(b" ")
    if any(sign in line for line in (first, *lines) for sign in (b"\r", b"\n", b"\0")) or not rest.startswith(b"/"):
        return "this is not a plain request for a page"
    if not all(colon and name and name == name.strip() for name, colon, _ in fields):
        return "a header of the request is malformed"
    named = [(name.lower(), value.strip().decode("latin-1").lower()) for name, _, value in fields]
    if [value in hosts for name, value in named if name == b"host"] != [True]:
        return f"Host: this page answers to {' and '.join(sorted(hosts))} only"
    origins = [value for name, value in named if name == b"origin"]
    if any(origin not in {f"http://{host}" for host in hosts} for origin in origins):
        return "Origin: another page may not use this one"
    if method not in _READS and not origins:
        return "Origin: a request that changes something must say which page it comes from"
    kept = [line for line, (name, _) in zip(lines, named, strict=True) if name not in _HOP]
    return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()


async def _say(writer: asyncio.StreamWriter, status: str, why: str) -> None:
    body = f"backstay: {why}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
