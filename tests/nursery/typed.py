"""`backstay` in the scripts of a shell, as a fork of what has imported it already; a start of its own takes a second.

The stand-in on the path hands arguments, folder and environment over a socket, and says what came back.
"""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cli.commands import forked
from tests.nursery.nursery import Nursery

STAND_IN = """#!{python} -IS
import json, os, socket, sys

order = {{"arguments": sys.argv[1:], "environment": dict(os.environ), "folder": os.getcwd()}}
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({address!r})
    asked.sendall(json.dumps(order).encode() + b"\\n")
    code, out, err = json.load(asked.makefile())
sys.stdout.write(out)
sys.stdout.flush()
sys.stderr.write(err)
sys.exit(code)
"""


@asynccontextmanager
async def forked_in_shells(nursery: Nursery, folder: Path) -> AsyncGenerator[str]:
    """Yield a folder that a path may begin with, so that `backstay` is a fork; `folder` must be short and empty."""
    folder.mkdir()  # noqa: ASYNC240 - nothing else waits
    address = str(folder / "orders")
    stand_in = folder / "backstay"
    stand_in.write_text(STAND_IN.format(python=sys.executable, address=address), encoding="utf-8")
    stand_in.chmod(0o755)

    async def obey(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        order = json.loads(await reader.readline())
        where = {"environment": order["environment"], "folder": Path(order["folder"])}
        done = await forked(nursery, *order["arguments"], **where)
        writer.write(json.dumps([done.code, done.out, done.err]).encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(obey, address, limit=1 << 20):
        yield str(folder)
