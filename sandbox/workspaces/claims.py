"""Record which run uses which workspace, one at a time, in files that outlive every process."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backstay.errors import WorkspaceBusy
from sandbox.workspaces.workspace import Workspace
from system.files import read_json, remove_durably, write_whole
from system.locks import file_lock


class Claims:
    """Let one run at a time use a workspace, including the folders inside it and around it."""

    def __init__(self, folder: Path) -> None:
        """Keep the claims in this folder."""
        self._folder = folder
        self._lock = folder / "lock"
        folder.mkdir(parents=True, exist_ok=True)

    def claim(self, workspace: Workspace, run: str, *, instead_of: str | None = None) -> None:
        """Claim the workspace for the run, or take it over from the run `instead_of`; repeating a claim is fine.

        Raises WorkspaceBusy, which names the holder.
        """
        with file_lock(self._lock):
            for path, claim in self._overlapping(workspace):
                if claim["run"] == run and claim["root"] == str(workspace.root):
                    return
                if claim["run"] not in (run, instead_of):
                    raise _busy(claim)
                if claim["run"] != run:
                    remove_durably(path)
            claim = {"workspace": workspace.name, "root": str(workspace.root), "run": run}
            write_whole(self._path(workspace), json.dumps(claim).encode())

    def release(self, workspace: Workspace, run: str) -> bool:
        """Release the run's claim; return whether there was one."""
        with file_lock(self._lock):
            claim = read_json(self._path(workspace))
            if claim is None or claim["run"] != run:
                return False
            remove_durably(self._path(workspace))
            return True

    def holder(self, workspace: Workspace) -> str | None:
        """Return the run that holds the workspace, a folder inside it or a folder around it."""
        with file_lock(self._lock):
            return next((claim["run"] for _, claim in self._overlapping(workspace)), None)

    def require_free(self, workspace: Workspace, run: str) -> None:
        """Raise WorkspaceBusy when another run holds the workspace."""
        with file_lock(self._lock):
            for _, claim in self._overlapping(workspace):
                if claim["run"] != run:
                    raise _busy(claim)

    def _overlapping(self, workspace: Workspace) -> Iterator[tuple[Path, dict[str, Any]]]:
        for path in sorted(self._folder.glob("*.json")):
            claim = read_json(path)
            if claim is None:
                continue
            root = Path(claim["root"])
            if root.is_relative_to(workspace.root) or workspace.root.is_relative_to(root):
                yield path, claim

    def _path(self, workspace: Workspace) -> Path:
        return self._folder / f"{workspace.key}.json"


def _busy(claim: dict[str, Any]) -> WorkspaceBusy:
    name, run = claim["workspace"], claim["run"]
    return WorkspaceBusy(f"workspace {name} is in use by run {run}; wait until it ends, or cancel it", holder=run)
