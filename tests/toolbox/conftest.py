import asyncio
import importlib.util
import json
import os
import socket
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn

from sandbox.isolation.command_jail import CommandJail
from tests.engine import ROOT
from tests.nursery.nursery import plain_environment
from toolbox.toolbox import open_toolbox

SERVERS = Path(__file__).parent / "servers"


@pytest.fixture(scope="session")
def servers():
    return SERVERS


@pytest.fixture(scope="session")
def opened():
    """Open a toolbox from a configuration written into a folder."""
    jail = CommandJail(nsjail=None, home=ROOT / "build/sandbox", image="python")

    @asynccontextmanager
    async def open_in(folder, configuration, confinement=jail, **environment):
        file = folder / "toolbox.json"
        file.write_text(json.dumps(configuration), encoding="utf-8")
        variables = {"PATH": os.defpath, **environment}
        async with open_toolbox(file, environment=variables, home=folder / "home", confinement=confinement) as toolbox:
            yield toolbox

    return open_in


@pytest.fixture
def raw(tmp_path):
    """Write a script for the raw server and return its entry for mcpServers."""

    def write(name="raw", **script):
        path = tmp_path / f"{name}.script.json"
        path.write_text(json.dumps(script), encoding="utf-8")
        return {"command": "python", "args": [str(SERVERS / "raw.py"), str(path)]}

    return write


@pytest.fixture
def eventually():
    """Wait until a condition holds, for at most ten seconds."""

    async def wait(condition):
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.02)

    return wait


@asynccontextmanager
async def listening(nursery, folder, *arguments):
    """Start the office on a free port, as a fork of what has imported its parts, and yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    given = {"environment": plain_environment(), "folder": folder, "log": folder / f"office-{port}.log"}
    process = await nursery.raised(str(SERVERS / "office.py"), str(port), *arguments, **given)
    try:
        async with asyncio.timeout(150):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    assert not process.died.done(), process.said()
                    await asyncio.sleep(0.05)
                else:
                    writer.close()
                    break
        yield f"http://127.0.0.1:{port}"
    finally:
        await process.end()


@pytest.fixture(scope="session")
async def office(tmp_path_factory, nursery, opened):
    """One server on all transports: providers `office` (stdio), `remote` (streamable HTTP) and `events` (SSE)."""
    folder = tmp_path_factory.mktemp("office")
    async with listening(nursery, folder) as address, listening(nursery, folder, "sse") as events:
        configuration = {
            "mcpServers": {
                "office": {
                    "command": "python",
                    "args": [str(SERVERS / "office.py"), "stdio"],
                    "env": {"KEY": "${KEY}"},
                },
                "remote": {"url": f"{address}/mcp"},
                "events": {"url": f"{events}/sse"},
            },
            "providers": {"office": {"trusted": True, "tools": {"show_meta": {"idempotency_argument": "token"}}}},
        }
        async with opened(folder, configuration, KEY="k" * 12) as toolbox:
            yield toolbox


@pytest.fixture(scope="session")
async def web():
    """Serve the endpoint that answers with any status; yields its module with its `url`."""
    spec = importlib.util.spec_from_file_location("toolbox_web_server", SERVERS / "web.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = uvicorn.Server(uvicorn.Config(module.app, host="127.0.0.1", port=0, log_level="critical", ws="none"))
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(150):
        while not server.started:
            await asyncio.sleep(0.02)
    module.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    yield module
    server.should_exit = True
    await serving
