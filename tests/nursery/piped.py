"""A fork of the nursery that is spoken with over pipes, as one that `asyncio.create_subprocess_exec` has started."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mcp import StdioServerParameters

from tests.nursery.nursery import Child, Nursery

LONGEST_LINE = 8 * 1024 * 1024
# What a shell starts in the background reads from nowhere, unless it is told from where.
HAND_ON = 'exec 3<&0; cat <&3 >"$0" & exec cat "$1"'


@dataclass
class Piped:
    """Hold a process and its two pipes; the names are those of asyncio's own processes."""

    child: Child
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader

    @property
    def pid(self) -> int:
        return self.child.born.result()

    @property
    def returncode(self) -> int | None:
        return self.child.died.result() if self.child.died.done() else None

    def send_signal(self, sign: signal.Signals) -> None:
        self.child.kill(sign)

    def terminate(self) -> None:
        self.child.kill(signal.SIGTERM)

    def kill(self) -> None:
        self.child.kill()

    async def wait(self) -> int:
        return await asyncio.shield(self.child.died)


@asynccontextmanager
async def piped(
    nursery: Nursery, program: str, *arguments: str, environment: Mapping[str, str], folder: Path, log: Path
) -> AsyncGenerator[Piped]:
    """Start a program as a fork, connected by pipes; at the end it is killed."""
    with tempfile.TemporaryDirectory() as place:
        given, out = Path(place, "in"), Path(place, "out")
        os.mkfifo(given)
        os.mkfifo(out)
        child = await nursery.raised(
            program, *arguments, environment=environment, folder=folder, log=log, out=out, given=given
        )
        # The process opens the two in this order, and either side waits for the other.
        writing = await asyncio.to_thread(os.open, given, os.O_WRONLY)
        reading = await asyncio.to_thread(os.open, out, os.O_RDONLY)
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=LONGEST_LINE)
    source, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb"))
    sink, flow = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(writing, "wb")
    )
    try:
        yield Piped(child, asyncio.StreamWriter(sink, flow, None, loop), reader)
    finally:
        await child.end()
        sink.close()
        source.close()


async def spoken_with(nursery: Nursery, server: StdioServerParameters, folder: Path) -> StdioServerParameters:
    """Start a server of MCP, `python FILE ...`, as a fork; return what a client starts in its place to reach it."""
    place = Path(tempfile.mkdtemp(dir=folder))
    given, out = place / "in", place / "out"
    os.mkfifo(given)
    os.mkfifo(out)
    program, *arguments = server.args
    ways = {"log": place / "err", "out": out, "given": given}
    await nursery.raised(program, *arguments, environment=server.env or {}, folder=folder, **ways)
    return StdioServerParameters(command="sh", args=["-c", HAND_ON, str(given), str(out)])


__all__ = ["Piped", "piped", "spoken_with"]
