"""One run at work in one workspace."""

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.workspaces.workspace import WorkspaceCall
from sandbox.workspaces.workspaces import Workspaces

WROTE_MUCH = r"it wrote (more than 1 MB|[0-9]+ bytes, more than 1048576); nothing of it was kept"
"""What is said of a call that writes more than a megabyte: it is seen while it writes, or at its end."""


@dataclass
class Desk:
    workspaces: Workspaces
    name: str
    root: Path
    run: str = "run-1"
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    async def ask(self, tool: str, *, writable: bool = True, effect: str | None = None, **arguments: Any) -> Any:
        """Do one thing; return its data, or the line that says why not."""
        said = await self.workspaces.call(self.call(tool, writable=writable, effect=effect, **arguments))
        return said["ok"] if "ok" in said else said["error"]

    async def diff(self, tool: str, **arguments: Any) -> str:
        said = await self.workspaces.show(self.call(tool, writable=False, **arguments))
        return said["ok"]["diff"] if "ok" in said else said["error"]

    def call(self, tool: str, *, writable: bool = True, effect: str | None = None, **arguments: Any) -> WorkspaceCall:
        if tool in ("restore", "outcome") and effect is not None:
            arguments["effect"] = effect
        return WorkspaceCall(
            workspace=self.name,
            run=self.run,
            tool=tool,
            arguments=arguments,
            writable=writable,
            effect=effect or f"{self.run}/{next(self.numbers)}",
            seconds=30,
        )

    def held(self) -> dict[str, str]:
        """What every path holds: content and mode of files, targets of links, modes of folders."""
        found: dict[str, str] = {}
        for path in sorted(self.root.rglob("*")):
            mode = f"{path.lstat().st_mode:o}"
            if path.is_symlink():
                found[str(path.relative_to(self.root))] = f"-> {path.readlink()}"
            elif path.is_file():
                found[str(path.relative_to(self.root))] = f"{mode} {path.read_bytes()!r}"
            else:
                found[str(path.relative_to(self.root))] = mode
        return found
