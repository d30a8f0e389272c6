"""Cgroups: caps on a whole jail, where the machine lets this worker set them."""

import atexit
import itertools
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from backstay.frozen import Frozen

_CONTROLLERS = ("memory", "pids", "cpu")
_TRIALS = {
    "memory": ("memory.limit_in_bytes", "16777216"),
    "pids": ("pids.max", "4"),
    "cpu": ("cpu.cfs_quota_us", "100000"),
}
_PREFIX = "backstay-"
_NUMBERS = itertools.count(1)


class Cgroups(Frozen):
    """Name the folders below which each jail gets a cgroup of its own; without any, jails work too."""

    version: Literal[0, 1, 2] = 0
    memory: Path | None = None
    pids: Path | None = None
    cpu: Path | None = None
    missing: tuple[str, ...] = ()
    """Which caps cannot be set, each with the reason."""

    @property
    def folder(self) -> Path | None:
        """Return the one folder of version 2."""
        return self.memory or self.pids or self.cpu

    @property
    def folders(self) -> set[Path]:
        """Return every folder there is."""
        return {folder for folder in (self.memory, self.pids, self.cpu) if folder}


def find_cgroups(*, proc: Path = Path("/proc/self")) -> Cgroups:
    """Make a folder for this worker in each hierarchy that it may use, within the worker's own cgroup.

    The folders that killed workers left there are removed. The folders are given back by `release_cgroups`, at the
    latest when the process ends.
    """
    name = f"{_PREFIX}{os.getpid()}.{next(_NUMBERS)}"
    mounts, own = _mounts(proc), _own(proc)
    found = _version_2(name, mounts.get("cgroup2"), own.get("")) or _version_1(name, mounts, own)
    for folder in found.folders:
        for left in folder.parent.glob(f"{_PREFIX}*"):
            if not Path("/proc", left.name.removeprefix(_PREFIX).partition(".")[0]).exists():
                _remove(left)
    if found.version:
        atexit.register(release_cgroups, found)
    return found


def release_cgroups(cgroups: Cgroups) -> None:
    """Remove the folders of this worker, once its jails have ended."""
    for folder in cgroups.folders:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder and what jails left in it that were killed with their nsjail; one that is in use stays."""
    for place in (*folder.glob("*/"), folder):
        with suppress(OSError):
            place.rmdir()


def _mounts(proc: Path) -> dict[str, Path]:
    """Return where each hierarchy is mounted: version 1 by controller, version 2 as `cgroup2`."""
    mounts: dict[str, Path] = {}
    with suppress(OSError):
        for line in (proc / "mounts").read_text(encoding="utf-8").splitlines():
            _, place, kind, options, *_ = line.split()
            names = {"cgroup": options.split(","), "cgroup2": ["cgroup2"]}.get(kind, [])
            mounts = dict.fromkeys(names, Path(place)) | mounts
    return mounts


def _own(proc: Path) -> dict[str, str]:
    """Return the worker's own path in each hierarchy; that of version 2 has no name."""
    paths: dict[str, str] = {}
    with suppress(OSError):
        for line in (proc / "cgroup").read_text(encoding="utf-8").splitlines():
            _, names, path = line.split(":", 2)
            paths |= dict.fromkeys(names.split(","), path)
    return paths


def _version_2(name: str, mount: Path | None, own: str | None) -> Cgroups | None:
    if mount is None or own is None:
        return None
    for folder in _delegated(mount, mount / own.lstrip("/")):
        with suppress(OSError):
            _enable(folder)
            (folder / name).mkdir(exist_ok=True)
            _enable(folder / name)
            ready = (folder / name / "cgroup.subtree_control").read_text(encoding="ascii").split()
            if set(_CONTROLLERS) <= set(ready):
                return Cgroups(version=2, **dict.fromkeys(_CONTROLLERS, folder / name))
    return None


def _delegated(mount: Path, own: Path) -> Iterator[Path]:
    """Yield folders that may hold the jails' cgroups: those without processes that are the worker's to divide."""
    if own == mount:
        yield own
    elif own.parent.name.endswith((".service", ".scope")):
        # The service manager put the worker into a subgroup, so that the rest of its unit is free.
        yield own.parent


def _enable(folder: Path) -> None:
    control = folder / "cgroup.subtree_control"
    ready = control.read_text(encoding="ascii").split()
    for controller in _CONTROLLERS:
        if controller not in ready:
            control.write_text(f"+{controller}", encoding="ascii")


def _version_1(name: str, mounts: dict[str, Path], own: dict[str, str]) -> Cgroups:
    folders: dict[str, Path] = {}
    missing: list[str] = []
    for controller in _CONTROLLERS:
        mount = mounts.get(controller)
        if mount is None:
            missing.append(f"{controller}: no cgroup hierarchy with this controller is the worker's to divide")
            continue
        mine = mount / own.get(controller, "/").lstrip("/")
        folder = (mine if mine.is_dir() else mount) / name
        try:
            folder.mkdir(exist_ok=True)
            _try_cap(folder, controller)
        except OSError as error:
            missing.append(f"{controller}: {folder}: {error.strerror}")
        else:
            folders[controller] = folder
    if not folders:
        return Cgroups(missing=tuple(missing))
    return Cgroups(version=1, missing=tuple(missing), **folders)


def _try_cap(folder: Path, controller: str) -> None:
    """Prove that a cap can be set below the folder, since a jail that cannot set one does not start."""
    trial = folder / f"trial.{time.monotonic_ns()}"
    trial.mkdir()
    try:
        cap, value = _TRIALS[controller]
        (trial / cap).write_text(value, encoding="ascii")
    finally:
        trial.rmdir()
