"""Open the way to what a jail needs where a folder above it is closed to the jail's user.

A jail of root's worker is another user outside, and the kernel asks that user for the way to what is mounted into the
jail; neither an open directory nor a working directory spares it that. So the jail starts in a mount namespace in which
the closed folders are covered and only what it needs is there, at the same paths.
"""

import os
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from system.files import close_to_others
from system.folders import outermost

_SCRIPT = Path(__file__).with_name("open_way.sh")
_UNSHARE = tuple(Path(folder, "unshare") for folder in ("/usr/bin", "/bin"))
_STAGES = tuple(Path(folder) for folder in ("/mnt", "/media", "/srv", "/opt"))
_TRIAL_S = 10


def way_to(needed: Iterable[Path], uid: int) -> list[str]:
    """Return what must be before a command so that a user can reach these folders; nothing when it can already.

    Nothing, too, where the worker may not open a way; the jail then says what is closed.
    """
    if uid == os.geteuid():
        return []
    paths = outermost({path.resolve() for path in needed})
    closed = outermost({folder for path in paths for folder in closed_above(path, uid)})
    stage = next((place for place in _STAGES if _is_free(place, (*paths, *closed))), None)
    if not closed or stage is None or not can_open_ways():
        return []
    covered = [path for path in paths if any(path.is_relative_to(folder) for folder in closed)]
    return [*_opener(stage), *map(str, covered), "--", *map(str, closed), "--"]


def make_home(home: Path) -> list[str]:
    """Make the home of a worker, or close one that is there to other users, with the folders that it holds.

    Return the folders that others could read until now.
    Jails of root's worker are other users. Where no way can be opened for them, they must pass through the home.
    """
    mode = 0o711 if os.geteuid() == 0 and not can_open_ways() else 0o700
    home.mkdir(mode=mode, parents=True, exist_ok=True)
    inside = (home / name for name in ("blobs", "logs", "snapshots", "workspace-state", "temporal"))
    return [str(place) for place in (home, *inside) if close_to_others(place, mode if place == home else 0o700)]


def closed_above(path: Path, uid: int) -> list[Path]:
    """Return the folders above a path that a user cannot enter."""
    found: list[Path] = []
    for folder in path.parents:
        facts = folder.stat()
        if not facts.st_mode & (0o100 if facts.st_uid == uid else 0o001):
            found.append(folder)
    return found


@cache
def can_open_ways() -> bool:
    """Return whether this worker may make mount namespaces, which takes the rights of an administrator."""
    stage = next((place for place in _STAGES if _is_free(place, ())), None)
    if os.geteuid() != 0 or stage is None:
        return False
    trial = [*_opener(stage), "/usr", "--", "--", "/bin/true"]
    try:
        ended = subprocess.run(trial, check=False, capture_output=True, timeout=_TRIAL_S)  # noqa: S603  # all our own words
    except (OSError, subprocess.SubprocessError):
        return False
    return ended.returncode == 0


def unshare() -> str:
    """Return the program that starts another one in namespaces of its own."""
    return str(next((path for path in _UNSHARE if path.exists()), _UNSHARE[0]))


def _opener(stage: Path) -> list[str]:
    return [unshare(), "--mount", "--propagation", "private", "/bin/sh", str(_SCRIPT), str(stage)]


def _is_free(stage: Path, used: Iterable[Path]) -> bool:
    """Return whether a folder can be covered while the way is made, since nothing that is used lies in it."""
    return stage.is_dir() and not any(path.is_relative_to(stage) for path in used)
