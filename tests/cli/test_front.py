"""The embedded Temporal as a page on the internet meets it, whose name leads to this machine."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from gateways.terminal.local.embedded import start_temporal
from tests.ports import listening, own_port
from tests.requirements import promise

KEYS = {"OPENAI_API_KEY": "a-key-of-a-model", "BACKSTAY_APPROVER_KEY": "a-key-of-an-approver"}
START = b'{"workflowType": {"name": "RunTask"}, "taskQueue": {"name": "backstay"}}'
PATH = "/api/v1/namespaces/default/workflows/hostile"


@dataclass
class Running:
    server: object
    folder: object
    port: int
    ui_port: int

    @property
    def own(self):
        return f"127.0.0.1:{self.ui_port}"


@pytest_asyncio.fixture(scope="module")
async def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("front")
    (folder / "logs").mkdir()
    (folder / "logs" / "temporal.log").touch(mode=0o644)
    port, ui_port = own_port(), own_port()
    server = await start_temporal(
        port=port,
        ui_port=ui_port,
        database=folder / "temporal.db",
        log=folder / "logs" / "temporal.log",
        environment={"PATH": "/usr/bin:/bin", **KEYS},
    )
    yield Running(server, folder, port, ui_port)
    await server.stop(5)


def head(target, *headers, method="GET", body=b""):
    lines = [f"{method} {target} HTTP/1.1", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def answer(port, request):
    """Return everything that comes back, which ends with the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    said = b""
    try:
        writer.write(request)
        async with asyncio.timeout(150):
            while more := await reader.read(1 << 16):
                said += more
    except ConnectionResetError:
        pass  # a port that speaks something else ends the connection like this
    finally:
        writer.close()
    return said


async def read_as(running, host):
    return await answer(running.ui_port, head("/api/v1/namespaces", f"Host: {host}"))


async def workflows(running):
    client = await running.server.client()
    return [found.id async for found in client.list_workflows()]


@promise("operations:front")
async def test_the_web_ui_answers_to_its_own_page(running):
    page = await answer(running.ui_port, head("/namespaces/default/workflows", f"Host: {running.own}"))
    async with asyncio.timeout(150):
        # The Web UI needs a moment until it has found its server.
        while b"503 Service Unavailable" in (local := await read_as(running, f"localhost:{running.ui_port}")):
            await asyncio.sleep(0.2)
    own = (f"Host: {running.own}", f"Origin: http://{running.own}", "Content-Type: application/json")
    posted = await answer(running.ui_port, head(PATH, *own, method="POST", body=START))

    assert page.startswith(b"HTTP/1.1 200 OK")
    assert b"<html" in page
    assert b'"namespaces"' in local
    assert b"backstay: " not in posted


@promise("operations:front")
async def test_a_page_whose_name_leads_here_reads_nothing_and_starts_nothing(running):
    evil = f"evil.example:{running.ui_port}"
    attempts = {
        "rebinding": head("/api/v1/namespaces", f"Host: {evil}"),
        "another port": head("/api/v1/namespaces", "Host: 127.0.0.1:80"),
        "rebinding a start": head(PATH, f"Host: {evil}", f"Origin: http://{evil}", method="POST", body=START),
        "a form": head(PATH, f"Host: {running.own}", f"Origin: http://{evil}", method="POST", body=START),
        "no origin": head(PATH, f"Host: {running.own}", method="POST", body=START),
        "a null origin": head(PATH, f"Host: {running.own}", "Origin: null", method="POST", body=START),
        "a read across origins": head("/api/v1/namespaces", f"Host: {running.own}", "Origin: http://evil.example"),
        "two hosts": head("/api/v1/namespaces", f"Host: {running.own}", f"Host: {evil}"),
        "no host": head("/api/v1/namespaces"),
        "a host behind a bare line feed": head("/api/v1/namespaces", f"Host: {running.own}\nHost: {evil}"),
        "a folded header": head("/api/v1/namespaces", f"Host: {running.own}", " : folded"),
        "an absolute target": head(f"http://{evil}/api/v1/namespaces", f"Host: {running.own}"),
        "a tunnel": head(f"127.0.0.1:{running.port}", f"Host: {running.own}", method="CONNECT"),
        "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    }
    answers = {name: await answer(running.ui_port, request) for name, request in attempts.items()}

    assert {name for name, said in answers.items() if not said.startswith(b"HTTP/1.1 403 Forbidden")} == set()
    assert not any(b"namespaceInfo" in said for said in answers.values())
    assert await workflows(running) == []


@promise("operations:front")
async def test_nothing_follows_a_request_on_its_connection_that_was_not_looked_at(running):
    first = head("/api/v1/settings", f"Host: {running.own}", "Connection: keep-alive")
    second = head("/api/v1/namespaces", "Host: evil.example")
    said = await answer(running.ui_port, first + second)

    assert said.count(b"HTTP/1.1 ") == 1
    assert b"namespaceInfo" not in said


@promise("operations:front")
@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "evil.example", "*", ""])
async def test_no_port_of_temporal_obeys_plain_http(running, host):
    said = {}
    for address, port in await asyncio.to_thread(listening, running.server.child.process.pid):
        if address == "127.0.0.1":
            named = f"Host: {host.format(port=port)}"
            read = head("/api/v1/namespaces", named, "Connection: close")
            start = head(PATH, named, "Connection: close", method="POST", body=START)
            said[port] = [await answer(port, request) for request in (read, start)]

    assert len(said) >= 5
    assert not any(b"namespaceInfo" in answer or b"runId" in answer for answers in said.values() for answer in answers)
    if host not in {"", "*"}:
        assert any(all(b"Host not allowed" in answer for answer in answers) for answers in said.values())
    assert await workflows(running) == []


@promise("operations:front")
async def test_the_web_ui_itself_listens_where_no_page_can_guess(running):
    own = await asyncio.to_thread(listening, running.server.child.process.pid)
    (address,) = {address for address, _ in own if address != "127.0.0.1"}
    others = {address for address, port in await asyncio.to_thread(listening) if port == running.ui_port}

    assert address.startswith("127.")
    assert others == {"127.0.0.1"}


@promise("operations:private")
async def test_its_files_are_private_and_it_is_told_no_key(running):
    files = [file for file in running.folder.rglob("*") if file.is_file()]
    told = Path(f"/proc/{running.server.child.process.pid}/environ")
    environment = await asyncio.to_thread(told.read_bytes)

    assert {file.name for file in files} >= {"temporal.db", "temporal.log"}
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in files if file.stat().st_mode & 0o077} == {}
    assert b"PATH=" in environment
    assert not any(key.encode() in environment for key in KEYS.values())
