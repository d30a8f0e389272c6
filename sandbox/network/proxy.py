"""The proxy of one call: it connects to the hosts that the call names, and counts what goes there and comes back."""

import asyncio
import socket
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from backstay.policies.network import Site
from backstay.shown import one_line
from backstay.tools.execution import HostTraffic
from sandbox.network.heads import END, MOST_HEAD, HeadInvalid, ProxyRequest, read_head
from system.addresses import Address, Internet, Streams, is_never_reached

_CHUNK = 64 << 10
_PHRASES = {
    400: "Bad Request",
    403: "Forbidden",
    411: "Length Required",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    504: "Gateway Timeout",
}
_MOST_TOLD = 10
_MOST_TALLIES = 100


@dataclass(frozen=True, kw_only=True)
class NetworkBounds:
    """Limit what one call may do through its proxy."""

    at_once: int = 32
    """Connections; others wait."""
    connections: int = 1000
    """In all."""
    bytes: int = 512 << 20
    """In both directions, over all connections."""
    head_s: float = 10.0
    connect_s: float = 15.0
    idle_s: float = 60.0
    """Without a byte in either direction."""


@dataclass
class _Tally:
    connections: int = 0
    sent: int = 0
    received: int = 0


class _Refused(Exception):
    """Why nothing is reached; `status` is what HTTP calls it."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Proxy:
    """Answer the programs of one jail."""

    def __init__(
        self, sites: Sequence[Site], internet: Internet | None = None, bounds: NetworkBounds | None = None
    ) -> None:
        """Reach these sites and no other."""
        self._sites = tuple(sites)
        self._internet = internet or Internet()
        self._bounds = bounds or NetworkBounds()
        self._tallies: dict[tuple[str, int], _Tally] = {}
        self._carried = 0
        self._told: dict[str, None] = {}
        self.refused = 0
        """How often it refused something."""

    @property
    def reached(self) -> tuple[HostTraffic, ...]:
        """Return what was reached."""
        return tuple(
            HostTraffic(host=host, port=port, connections=seen.connections, sent=seen.sent, received=seen.received)
            for (host, port), seen in self._tallies.items()
        )

    @property
    def notes(self) -> list[str]:
        """Return what whoever made the call should know: what was refused, why, and what to write."""
        return [*self._told]

    async def serve(self, listening: socket.socket) -> None:
        """Answer what connects to the socket, until this is cancelled; then all connections are closed."""
        listening.setblocking(False)
        loop, free = asyncio.get_running_loop(), asyncio.Semaphore(self._bounds.at_once)
        try:
            async with asyncio.TaskGroup() as answering:
                for _ in range(self._bounds.connections):
                    await free.acquire()
                    client, _ = await loop.sock_accept(listening)
                    answering.create_task(self._answer(client)).add_done_callback(lambda _: free.release())
                self._note(f"it made {self._bounds.connections} connections, and may make no more")
                # Others who want to connect are told so at once.
                listening.close()
        finally:
            self._internet.close()

    async def _answer(self, client: socket.socket) -> None:
        try:
            streams = await asyncio.open_connection(sock=client, limit=MOST_HEAD)
        except OSError:
            client.close()
            return
        reader, writer = streams
        try:
            await self._serve(reader, writer)
        except (HeadInvalid, _Refused) as error:
            await self._refuse(writer, error.status, str(error))
        except asyncio.LimitOverrunError:
            await self._refuse(writer, 431, f"a request begins with more than {MOST_HEAD} bytes")
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            # A program that stops in the middle learns nothing from an answer.
            pass
        except Exception as error:
            # A fault of one connection must not end the others.
            traceback.print_exception(error)
        finally:
            await _close(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(self._bounds.head_s):
            asked = read_head(await reader.readuntil(END))
        tally, (inbound, outbound) = await self._connect(asked)
        try:
            if asked.head:
                outbound.write(asked.head)
                self._count(tally, sent=len(asked.head))
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            length = asked.length if asked.head else None
            await self._relay((reader, writer), (inbound, outbound), tally, length)
        finally:
            await _close(outbound)

    async def _connect(self, asked: ProxyRequest) -> tuple[_Tally, Streams]:
        """Connect to a site that the call names, at an address that may be reached."""
        host, port = asked.to.host, asked.to.port or 0
        self._require_named(host, port, tunnel=not asked.head)
        if self._carried >= self._bounds.bytes:
            raise self._over()
        try:
            async with asyncio.timeout(self._bounds.connect_s):
                found = await self._internet.addresses(host, port)
                self._require_far(host, found)
                streams = await self._first(found, port)
        except TimeoutError:
            raise _Refused(504, f"{host}:{port} did not answer within {self._bounds.connect_s:g} s") from None
        except (OSError, UnicodeError) as error:
            raise _Refused(502, f"{host}:{port}: {one_line(str(error), 100)}") from None
        tally = self._tallies.setdefault((host, port), _Tally())
        tally.connections += 1
        return tally, streams

    def _require_named(self, host: str, port: int, *, tunnel: bool) -> None:
        named = [each for each in self._sites if each.host == host]
        usual = 443 if tunnel else 80
        if any(each.port == port if each.port is not None else port == usual for each in named):
            return
        words = host if port in (80, 443) and port == usual else f"{host}:{port}"
        raise _Refused(403, f'{host}:{port} is not in `network` of this call; to ask for it, add "{words}" there')

    def _require_far(self, host: str, found: Sequence[Address]) -> None:
        """Refuse a name that stands for one address that is never reached, whatever else it stands for."""
        if not found:
            raise _Refused(502, f"{host} has no address")
        near = next((each for each in found if is_never_reached(each) or self._internet.is_own(each)), None)
        if near is not None:
            raise _Refused(403, f"{host} stands for {near}, an address that is private or reserved and never reached")

    async def _first(self, found: Sequence[Address], port: int) -> Streams:
        for address in found[:-1]:
            with suppress(OSError):
                return await self._internet.connect(address, port)
        return await self._internet.connect(found[-1], port)

    async def _relay(self, client: Streams, server: Streams, tally: _Tally, length: int | None) -> None:
        """Pass on bytes in both directions until the host ends, or the program where it has a tunnel."""
        last = _Clock()

        async def sending() -> None:
            left = length
            while left is None or left > 0:
                data = await client[0].read(_CHUNK if left is None else min(_CHUNK, left))
                if not data:
                    break
                left = None if left is None else left - len(data)
                self._count(tally, sent=len(data))
                last.tick()
                server[1].write(data)
                await server[1].drain()
            if length is None and server[1].can_write_eof():
                server[1].write_eof()

        async def receiving() -> None:
            while data := await server[0].read(_CHUNK):
                self._count(tally, received=len(data))
                last.tick()
                client[1].write(data)
                await client[1].drain()

        sends, receives = asyncio.ensure_future(sending()), asyncio.ensure_future(receiving())
        try:
            while not receives.done():
                left = self._bounds.idle_s - last.since()
                if left <= 0:
                    return
                waiting = {receives} if sends.done() else {receives, sends}
                await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if sends.done() and sends.exception() is not None:
                    return
        finally:
            for task in (sends, receives):
                task.cancel()
            await asyncio.gather(sends, receives, return_exceptions=True)

    def _count(self, tally: _Tally, *, sent: int = 0, received: int = 0) -> None:
        """Count bytes before they go on; raises when there are too many."""
        self._carried += sent + received
        if self._carried > self._bounds.bytes:
            raise self._over()
        tally.sent += sent
        tally.received += received

    def _over(self) -> _Refused:
        self._note(f"it sent and received {self._bounds.bytes >> 20} MB, and may send no more")
        return _Refused(403, f"more than {self._bounds.bytes} bytes were sent and received")

    async def _refuse(self, writer: asyncio.StreamWriter, status: int, why: str) -> None:
        self.refused += 1
        self._note(f"not reached: {why}")
        line = f"backstay: {one_line(why, 300)}".encode("ascii", "replace")
        head = f"HTTP/1.1 {status} {_PHRASES[status]}\r\nContent-Type: text/plain\r\n"
        head += f"Content-Length: {len(line) + 1}\r\nConnection: close\r\n\r\n"
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(self._bounds.head_s):
                writer.write(head.encode("ascii") + line + b"\n")
                await writer.drain()

    def _note(self, why: str) -> None:
        if len(self._told) < _MOST_TOLD:
            self._told[one_line(why, 300)] = None


class _Clock:
    """Tell how long nothing was heard."""

    def __init__(self) -> None:
        self.tick()

    def tick(self) -> None:
        self._last = asyncio.get_running_loop().time()

    def since(self) -> float:
        return asyncio.get_running_loop().time() - self._last


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()
