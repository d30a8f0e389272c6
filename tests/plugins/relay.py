"""A way to a Temporal server that can be held up, as a slow or broken network holds it up."""

import asyncio
import contextlib
from contextlib import asynccontextmanager

PREFACE = 24
HEADER = 9
HEADERS = 1


class Relay:
    """Hand on what a client and the server say to each other, until told to hold it up."""

    def __init__(self, target):
        self._target = target
        self.port = 0
        self.opened = 0
        """How many connections were made."""
        self.asked = 0
        """How many requests went to the server."""
        self._hold_from = None
        self._answers, self._requests = asyncio.Event(), asyncio.Event()
        self.release()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def hold_at(self, number):
        """Let as many requests through, from now on, and hold up the answers to the last one and to all later ones.

        Hold up everything where that is none. Returns what tells whether it has come to that.
        """
        opened, last = self.opened, self.asked + number
        if number:
            self._hold_from = last
        else:
            self._answers.clear()
            self._requests.clear()
        return lambda: self.asked >= last if number else self.opened > opened

    def release(self):
        """Hold up nothing."""
        self._hold_from = None
        self._answers.set()
        self._requests.set()

    async def serve(self, reader, writer):
        self.opened += 1
        there, out = await asyncio.open_connection(*self._target.split(":"))
        try:
            await asyncio.gather(self._up(reader, out), self._down(there, writer))
        finally:
            for open_writer in (writer, out):
                open_writer.close()

    async def _up(self, reader, out):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            out.write(await reader.readexactly(PREFACE))
            while True:
                head = await reader.readexactly(HEADER)
                rest = await reader.readexactly(int.from_bytes(head[:3]))
                await self._requests.wait()
                if head[3] == HEADERS:
                    self.asked += 1
                    if self._hold_from is not None and self.asked >= self._hold_from:
                        self._answers.clear()
                out.write(head + rest)
                await out.drain()
        out.close()

    async def _down(self, there, writer):
        with contextlib.suppress(ConnectionError):
            while chunk := await there.read(65536):
                await self._answers.wait()
                writer.write(chunk)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def relay(client):
    """Open a way to the server of a client."""
    way = Relay(client.service_client.config.target_host)
    server = await asyncio.start_server(way.serve, "127.0.0.1", 0)
    way.port = server.sockets[0].getsockname()[1]
    try:
        yield way
    finally:
        way.release()
        server.close()
