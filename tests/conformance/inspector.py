"""The command line of MCP's own inspector, as a client that is not ours: it starts a server, asks once, and ends."""

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.conformance.scenarios import INSPECTOR, NODE

WITHIN_S = 150


class Inspector:
    """Ask one server, which is entered in a file as clients have it."""

    def __init__(self, folder: Path, name: str, entry: Mapping[str, Any]) -> None:
        self._name = name
        self._file = folder / "servers.json"
        self._file.write_text(json.dumps({"mcpServers": {name: entry}}), encoding="utf-8")
        self._folder = folder

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return what a call of a tool is answered with."""
        given = [part for name, value in arguments.items() for part in ("--tool-arg", f"{name}={value}")]
        place = ["--config", str(self._file), "--server", self._name]
        command = [str(NODE), str(INSPECTOR), "--cli", *place, "--method", "tools/call", "--tool-name", tool, *given]
        # It starts its own second half as `node`.
        path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self._folder,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        async with asyncio.timeout(WITHIN_S):
            said, faults = await process.communicate()
        assert process.returncode == 0, (said + faults).decode()
        return json.loads(said)
