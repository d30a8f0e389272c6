"""Workspaces: folders beneath one folder of the operator, each of which a run may be given."""

import hashlib
import os
import stat
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from backstay.errors import WorkspaceInvalid
from backstay.frozen import Frozen
from backstay.tools.tool import WorkspaceLimits

MOST_FRAME = 64 << 20
"""Bytes of one request or answer between a worker and the host of workspaces."""


class WorkspaceSettings(Frozen):
    """Hold where workspaces are and how much one call may write."""

    home: Path
    workspaces: Path
    nsjail: Path | None = None
    artifacts_mb: int = 200
    root: Path | None = None
    """The operator's own root file system, in which commands run."""


class WorkspaceCall(Frozen):
    """Describe one call: what to do, where, for which run, and within which limits."""

    workspace: str
    run: str
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    writable: bool = False
    effect: str | None = None
    """The id under which what it does is recorded; every call that may write has one."""
    rehearsal: str = ""
    """Names the copy of the workspace in which it is done instead; empty for the workspace itself."""
    seconds: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    """How long a command may take."""
    within: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """By when a command must have ended, in seconds from when the host is asked; None: whenever it began."""
    limits: WorkspaceLimits = WorkspaceLimits()


COPIES = ".rehearsals"
"""The folder, beside the workspaces, of the copies in which something is rehearsed; no run is given one."""
_LONGEST = 200
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Workspace(Frozen):
    """Name one folder that runs may work in."""

    name: str
    """Its path beneath the operator's folder, the same for every way to write it."""
    root: Path

    @classmethod
    def find(cls, folder: Path, asked: str) -> Self:
        """Return the workspace of this name or path, and make its folder when there is none.

        Raises WorkspaceInvalid for whatever is not plainly one folder beneath the operator's.
        """
        folder.mkdir(parents=True, exist_ok=True)
        whole = folder.resolve()
        name = _name(asked, folder, whole)
        fd = os.open(whole, _FOLDER)
        try:
            for part in name.split("/"):
                fd = _entered(fd, part, name)
        finally:
            os.close(fd)
        return cls(name=name, root=whole / name)

    @property
    def key(self) -> str:
        """The name of files about this workspace."""
        return hashlib.sha256(os.fsencode(self.root)).hexdigest()[:32]

    def require_apart(self, folder: Path) -> None:
        """Raise WorkspaceInvalid when one of these folders is inside the workspace or contains it."""
        if folder.is_relative_to(self.root) or self.root.is_relative_to(folder):
            raise WorkspaceInvalid(f"workspace {self.name!r} and {folder} are not apart; set BACKSTAY_WORKSPACES")


def _name(asked: str, folder: Path, whole: Path) -> str:
    """Return the path beneath the folder, without following anything."""
    path = Path(asked)
    if path.is_absolute():
        inside = next((path.relative_to(top) for top in (folder.absolute(), whole) if path.is_relative_to(top)), None)
        if inside is None:
            raise WorkspaceInvalid(f"workspace {asked[:_LONGEST]!r} is not beneath {whole}; name a folder there")
        path = inside
    if not path.parts:
        raise WorkspaceInvalid(f"workspace {asked[:_LONGEST]!r} names no folder beneath {whole}; name one")
    if path.parts[0] == COPIES:
        raise WorkspaceInvalid(f"workspace {asked[:_LONGEST]!r}: {COPIES} is the engine's own; name another folder")
    if ".." in path.parts or "\0" in asked or len(asked) > _LONGEST or not asked.isprintable():
        raise WorkspaceInvalid(f"workspace {asked[:_LONGEST]!r}: write a plain path, without '..' and control signs")
    return path.as_posix()


def _entered(fd: int, part: str, name: str) -> int:
    """Close a folder and return the next one on the way."""
    try:
        facts = os.stat(part, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        os.mkdir(part, 0o755, dir_fd=fd)
        facts = os.stat(part, dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        raise WorkspaceInvalid(f"workspace {name!r}: {part}: {error.strerror}") from None
    if not stat.S_ISDIR(facts.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(facts.st_mode) else "no folder"
        raise WorkspaceInvalid(f"workspace {name!r}: {part} is {what}; name the folder itself")
    inner = os.open(part, _FOLDER, dir_fd=fd)
    os.close(fd)
    return inner
