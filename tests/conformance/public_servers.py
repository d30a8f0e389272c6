"""Public MCP servers from npm and PyPI: what a toolbox offers and answers is what the client of the SDK is given."""

import asyncio
import base64
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult

from tests.conformance.scenarios import NODE, ROOT
from tests.ports import own_port
from toolbox.providers.answer import Answer
from toolbox.toolbox import open_toolbox

SERVERS = Path(__file__).parent / "servers" / "servers.yaml"
INSTALLED = ROOT / "build" / "servers"
DEADLINE_S = 60


@dataclass(frozen=True)
class Server:
    """Hold what starts a server and what to call."""

    name: str
    package: str
    version: str
    index: str
    start: str
    calls: list[dict[str, Any]]
    options: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    path: str | None = None
    """Where it answers over HTTP; None for stdio."""
    greeting: str = "auto"
    """How the client of the SDK begins, where it gets no answers by itself."""
    varies: bool = False
    """Whether structured answers hold times or chance, so that only their form is compared."""

    def command(self) -> list[str]:
        """Return what starts it, with its options still to be filled in."""
        if self.index == "npm":
            return [str(NODE), str(INSTALLED / "node_modules" / self.start), *self.options]
        environment, _, name = self.start.partition("/")
        return [str(INSTALLED / environment / "bin" / name), *self.options]


def servers() -> list[Server]:
    """Return the servers that are tried."""
    read = yaml.safe_load(SERVERS.read_text(encoding="utf-8"))
    return [Server(name, **rest) for name, rest in read.items()]


def filled(value: Any, folder: Path, port: int) -> Any:
    """Return a value with the folder and the port in its texts."""
    match value:
        case str():
            return value.replace("{folder}", str(folder)).replace("{port}", str(port))
        case list():
            return [filled(each, folder, port) for each in value]
        case dict():
            return {key: filled(each, folder, port) for key, each in value.items()}
        case _:
            return value


@contextmanager
def prepared(server: Server, folder: Path) -> Generator[tuple[dict[str, Any], int]]:
    """Start a server that speaks HTTP, in an empty folder; yield its entry of toolbox.json, and its port."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    port = own_port()
    command, env = filled(server.command(), folder, port), filled(server.env, folder, port)
    if server.path is None:
        yield {"command": command[0], "args": command[1:], "env": env}, port
        return
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, **env}, **quiet)
    try:
        _wait_for(process, port)
        yield {"url": f"http://127.0.0.1:{port}{server.path}"}, port
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


def _wait_for(process: "subprocess.Popen[bytes]", port: int) -> None:
    for _ in range(DEADLINE_S * 10):
        if process.poll() is not None:
            raise RuntimeError(f"it ended with {process.returncode} before it listened")
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError("it does not listen")


@dataclass
class Seen:
    """Hold what one client was offered and answered."""

    tools: set[str]
    answers: list[Any]


async def by_the_sdk(server: Server, entry: dict[str, Any], folder: Path, port: int) -> Seen:
    """List and call with the client of the SDK."""
    target: Any = entry.get("url")
    if target is None:
        parameters = StdioServerParameters(command=entry["command"], args=entry["args"], env=entry["env"], cwd=folder)
        target = stdio_client(parameters, errlog=(folder / "stderr").open("w", encoding="utf-8"))
    async with Client(target, cache=None, mode=server.greeting) as client:
        listed = await client.list_tools()
        answers = [
            await client.call_tool(call["tool"], filled(call["arguments"], folder, port)) for call in server.calls
        ]
        return Seen({tool.name for tool in listed.tools}, answers)


async def by_a_toolbox(server: Server, entry: dict[str, Any], folder: Path, port: int) -> Seen:
    """List and call as a run does, with a toolbox.json as a user writes it."""
    file = folder / "toolbox.json"
    file.write_text(json.dumps({"mcpServers": {server.name: entry}}), encoding="utf-8")
    async with open_toolbox(file, environment=dict(os.environ), home=folder / "home") as toolbox:
        catalog = await toolbox.catalog("ana", patience_s=DEADLINE_S)
        for name, reason in catalog.unavailable.items():
            raise RuntimeError(f"{name} is not available: {reason}")
        answers: list[Any] = []
        for call in server.calls:
            definition = catalog.definitions[f"{server.name}.{call['tool']}"]
            arguments = filled(call["arguments"], folder, port)
            try:
                answers.append(await toolbox.call(definition, arguments, deadline_s=DEADLINE_S))
            except Exception as error:  # compared with what the client of the SDK was given
                answers.append(error)
        return Seen({name.partition(".")[2] for name in catalog.definitions}, answers)


def difference(sent: CallToolResult, got: Any, *, varies: bool = False) -> str | None:
    """Return what an answer lacks of what the server sent, or None."""
    if not isinstance(got, Answer):
        return f"the call raised {got!r}"
    texts = [part.text for part in sent.content if part.type == "text"]
    if sent.is_error:
        said = got.reason or got.error or ""
        lost = [text for text in texts if not _tells(said, text)]
        return "its error is none here" if got.success else _lost(lost)
    if not got.success:
        return f"it failed here: {got.error}"
    if sent.structured_content is not None:
        as_compared = _form if varies else _itself
        holds = _holds(as_compared(got.data), as_compared(sent.structured_content))
        return None if holds else "its structured content is another"
    files = [part.data for part in sent.content if part.type in ("image", "audio")]
    names = [hashlib.sha256(base64.b64decode(data)).hexdigest() for data in files]
    parts = got.data if files else [got.data]
    whole = ["\n".join(texts)] if texts and not files else texts
    return _lost([text for text in whole if not any(part == _read(text) for part in parts)]) or _lost(
        [f"the bytes {name}" for name in names if name not in got.files]
    )


def _tells(said: str, text: str) -> bool:
    """Return whether a reason holds a text line by line; what invisible signs become is compared elsewhere."""
    lines = [line.rstrip() for line in text.expandtabs(4).splitlines() if line.strip()]
    return all(line in said for line in lines) and said.count("\n") >= len(lines) - 1


def _itself(value: Any) -> Any:
    return value


def _form(value: Any) -> Any:
    """Return the names and kinds that a value has, without what stands there."""
    match value:
        case dict():
            return {name: _form(item) for name, item in value.items()}
        case list():
            return [_form(item) for item in value]
        case int() | float() if not isinstance(value, bool):
            return "number"
        case _:
            return type(value).__name__


def _holds(data: Any, structured: Any) -> bool:
    """Return whether data is structured content, or holds it beside other parts."""
    if data == structured:
        return True
    if isinstance(data, dict) and isinstance(structured, dict):
        return structured.items() <= data.items()
    return isinstance(data, dict) and data.get("value") == structured


def _read(text: str) -> Any:
    """Return the object or list that a text is, else the text."""
    if text.lstrip()[:1] in {"{", "["}:
        with suppress(ValueError):
            return json.loads(text)
    return text


def _lost(texts: Iterable[str]) -> str | None:
    lost = [text[:200] for text in texts]
    return f"lost: {lost}" if lost else None


def tried(server: Server) -> list[str]:
    """Return what differs between the two clients; nothing if the server works here as it does there."""
    with tempfile.TemporaryDirectory() as outer:
        folder = Path(outer) / "here"
        with prepared(server, folder) as (entry, port):
            theirs = asyncio.run(by_the_sdk(server, entry, folder, port))
        with prepared(server, folder) as (entry, port):
            ours = asyncio.run(by_a_toolbox(server, entry, folder, port))
    faults = [f"{name} is not offered" for name in sorted(theirs.tools - ours.tools)]
    for call, sent, got in zip(server.calls, theirs.answers, ours.answers, strict=True):
        if found := difference(sent, got, varies=server.varies):
            faults.append(f"{call['tool']}: {found}")
    return faults
