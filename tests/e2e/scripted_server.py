"""Write scripts for tests/e2e/servers/scripted.py, and read what arrived there."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SERVER = Path(__file__).parent / "servers" / "scripted.py"
ANYTHING: dict[str, Any] = {"type": "object"}


def reads(name: str, schema: dict[str, Any] | None = None, description: str = "") -> dict[str, Any]:
    """Return a tool that only reads."""
    shape = {"name": name, "inputSchema": schema or ANYTHING, "description": description or f"Read {name}."}
    return shape | {"annotations": {"readOnlyHint": True}}


def writes(name: str, schema: dict[str, Any] | None = None, description: str = "") -> dict[str, Any]:
    """Return a tool that changes the world."""
    return {"name": name, "inputSchema": schema or ANYTHING, "description": description or f"Do {name}."}


@dataclass
class ScriptedServer:
    """One server and its script."""

    path: Path
    tools: list[dict[str, Any]]
    answers: dict[str, Any] = field(default_factory=dict)
    declared: dict[str, Any] = field(default_factory=dict)
    """What toolbox.json says of the tools."""
    later: list[dict[str, Any]] = field(default_factory=list)
    """Tools that are listed too once a call was made."""
    starts: str = ""
    """The file beside the script that ends its start."""

    instructions: str = ""

    def write(self) -> None:
        script = {"tools": self.tools, "answers": self.answers, "later": self.later}
        script |= {"starts": self.starts} if self.starts else {}
        script |= {"instructions": self.instructions} if self.instructions else {}
        self.path.write_text(json.dumps(script), encoding="utf-8")

    def calls(self, tool: str | None = None) -> list[dict[str, Any]]:
        log = self.path.with_suffix(".calls")
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [call for line in lines if (call := json.loads(line)) and tool in (None, call["tool"])]


def toolbox_of_servers(folder: Path, **servers: ScriptedServer) -> Path:
    """Write a toolbox file over scripted servers."""
    for server in servers.values():
        server.write()
    data = {
        "mcpServers": {
            name: {"command": "python", "args": [str(SERVER), str(server.path)]} for name, server in servers.items()
        },
        "providers": {name: {"trusted": True, "tools": server.declared} for name, server in servers.items()},
    }
    path = folder / "servers.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path
