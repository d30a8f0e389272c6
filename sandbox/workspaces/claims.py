"""Which run works in which workspace: one at a time, told by files that outlive every process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backstay.errors import WorkspaceBusy
from sandbox.workspaces.durable_file import held, read_json, remove_durably, write_durably
from sandbox.workspaces.workspace import Workspace


class Claims:
    """Let one run at a time have a workspace, its inner and its outer folders included."""

    def __init__(self, folder: Path) -> None:
        """Keep the claims in this folder."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def claim(self, workspace: Workspace, run: str, *, instead_of: str | None = None) -> None:
        """Let the run have the workspace; it may have it already, or take it over from a run that is named.

        Raises WorkspaceBusy naming the holder.
        """
        with held(self._folder / "lock"):
            for place, said in self._overlapping(workspace):
                if said["run"] == run and said["root"] == str(workspace.root):
                    return
                if said["run"] not in (run, instead_of):
                    raise busy(said)
                if said["run"] != run:
                    remove_durably(place)
            write_durably(self._place(workspace), _said(workspace, run))

    def release(self, workspace: Workspace, run: str) -> bool:
        """Take the workspace from the run; return whether it had it."""
        with held(self._folder / "lock"):
            said = read_json(self._place(workspace))
            if said is None or said["run"] != run:
                return False
            remove_durably(self._place(workspace))
            return True

    def holder(self, workspace: Workspace) -> str | None:
        """Return the run that has the workspace, or a part of it, or one that it is part of."""
        with held(self._folder / "lock"):
            return next((said["run"] for _, said in self._overlapping(workspace)), None)

    def demand_free(self, workspace: Workspace, run: str) -> None:
        """Raise WorkspaceBusy when another run has the workspace."""
        with held(self._folder / "lock"):
            for _, said in self._overlapping(workspace):
                if said["run"] != run:
                    raise busy(said)

    def _overlapping(self, workspace: Workspace) -> Iterator[tuple[Path, dict[str, Any]]]:
        for place in sorted(self._folder.glob("*.json")):
            said = read_json(place)
            if said is None:
                continue
            other = Path(said["root"])
            if other.is_relative_to(workspace.root) or workspace.root.is_relative_to(other):
                yield place, said

    def _place(self, workspace: Workspace) -> Path:
        return self._folder / f"{workspace.key}.json"


def busy(said: dict[str, Any]) -> WorkspaceBusy:
    """Return the error that names who holds what."""
    name, run = said["workspace"], said["run"]
    return WorkspaceBusy(f"workspace {name} is in use by run {run}; wait until it ends, or cancel it", holder=run)


def _said(workspace: Workspace, run: str) -> dict[str, str]:
    return {"workspace": workspace.name, "root": str(workspace.root), "run": run}
