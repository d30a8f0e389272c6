"""Run Python programs of a folder in jails: they cannot change the folder, and there is no network."""

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from backstay.errors import IsolationUnavailable
from sandbox.images.host_python import host_root
from sandbox.images.image import Image, ImageKind, build_image
from sandbox.isolation.cgroups import Cgroups, find_cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import JailProfile, outside_uid
from sandbox.isolation.self_test import run_self_test
from sandbox.isolation.way import can_open_ways
from sandbox.limits import shell_limits

_SOURCES = ("-B", "-X", "pycache_prefix=/nowhere")
"""Bytecode in the folder of a program need not be that of its sources."""
_PYTHON = ("/usr/bin/python3", "-s", *_SOURCES, "-X", "utf8")
_MOST_COPIED = 2000
_MOST_COPIED_BYTES = 32 << 20


class CommandJail:
    """Confine commands; the self-test of jails runs before the first one."""

    def __init__(self, *, nsjail: Path | None, home: Path, image: ImageKind) -> None:
        self._nsjail = nsjail
        self._home = home.absolute()
        self._image: ImageKind = image
        self._tested_profile: JailProfile | None = None
        self._testing = asyncio.Lock()

    async def confine(self, words: Sequence[str], *, folder: Path, variables: Iterable[str]) -> Sequence[str]:
        """Return the command that runs the image's interpreter with these words, in a jail, in this folder.

        The jail gets the named variables from the environment of whoever starts the command, and no others.
        Raises IsolationUnavailable, and ImageMissing when there is no image.
        """
        profile = replace(await self._profile(), workspace=await asyncio.to_thread(_reachable, folder))
        return await asyncio.to_thread(_command, profile, self._home / "jails", (*_PYTHON, *words), tuple(variables))

    @asynccontextmanager
    async def try_out(
        self, words: Sequence[str], *, python: Path, folder: Path, variables: Iterable[str]
    ) -> AsyncGenerator[Sequence[str]]:
        """Yield the command that runs an interpreter of this machine in a jail, in a copy of the folder.

        The interpreter has its own packages, and what it writes is gone afterwards. A folder that is too large to be
        copied is read-only. Variables and errors are those of `confine`.
        """
        profile = replace(await self._profile(), root=await asyncio.to_thread(host_root, python))
        with TemporaryDirectory(prefix="backstay-try-", ignore_cleanup_errors=True) as place:
            copied = await asyncio.to_thread(_copied, folder, Path(place), profile)
            workspace = copied or await asyncio.to_thread(_reachable, folder)
            profile = replace(profile, workspace=workspace, writable=copied is not None)
            command = (str(python), *_SOURCES, *words)
            yield await asyncio.to_thread(_command, profile, Path(place), command, tuple(variables))

    async def _profile(self) -> JailProfile:
        async with self._testing:
            if self._tested_profile is None:
                self._tested_profile = await self._tested()
        return self._tested_profile

    async def _tested(self) -> JailProfile:
        nsjail, image, cgroups = await asyncio.to_thread(self._find)
        result = await run_self_test(nsjail, image, self._home / "jails", cgroups=cgroups)
        result.require_isolation()
        # Nothing watches what a command holds here, and only address space counts all memory of a process.
        limits = shell_limits().model_copy(update={"address_mb": None})
        return JailProfile(nsjail, image, kind="shell", limits=limits, outside_uid=outside_uid(), cgroups=cgroups)

    def _find(self) -> tuple[Nsjail, Image, Cgroups]:
        nsjail = Nsjail.find(None if self._nsjail is None else str(self._nsjail))
        return nsjail, build_image(self._image, self._home / "images"), find_cgroups()


def _command(profile: JailProfile, kept: Path, words: Sequence[str], variables: Sequence[str]) -> Sequence[str]:
    """Return the command line of a jail whose configuration is kept in a folder."""
    # Pass names only and let nsjail fill in the values: every user can read a command line.
    named = [part for name in variables for part in ("--env", name)]
    return (*profile.start(kept, *named), "--", *words)


def _copied(folder: Path, place: Path, profile: JailProfile) -> Path | None:
    """Copy a folder into a place for the jail's user; return where, or None for one that is too large."""
    found, size = 0, 0
    for root, folders, files in os.walk(folder):
        found += len(folders) + len(files)
        size += sum(Path(root, name).lstat().st_size for name in files)
        if found > _MOST_COPIED or size > _MOST_COPIED_BYTES:
            return None
    copied = place / "folder"
    shutil.copytree(folder, copied, symlinks=True, ignore=_special, copy_function=_copy)
    if os.geteuid() == 0:
        for path in (copied, *copied.rglob("*")):
            os.chown(path, profile.outside_uid, profile.gid, follow_symlinks=False)
    # Nobody else sees the copy of what may lie in a closed folder.
    copied.chmod(0o700)
    place.chmod(0o711)
    return copied


def _copy(source: str, target: str) -> None:
    """Copy a file; one that the worker may not read is left out."""
    with suppress(PermissionError):
        shutil.copy2(source, target)


def _special(folder: str, names: list[str]) -> list[str]:
    """Return what is neither file, folder nor link, such as a pipe, whose copy would wait for ever."""
    kinds = {name: stat.S_IFMT(Path(folder, name).lstat().st_mode) for name in names}
    return [name for name, kind in kinds.items() if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)]


def _reachable(folder: Path) -> Path:
    """Return the folder; raises IsolationUnavailable if the jail's user cannot read it."""
    folder = folder.resolve()
    _check_reachable(folder, outside_uid())
    return folder


def _check_reachable(folder: Path, uid: int) -> None:
    """Raise IsolationUnavailable if the jail's user cannot read its folder."""
    if uid == os.geteuid():
        return
    above = () if can_open_ways() else folder.parents
    for place, needed in ((folder, 0o005), *((outer, 0o001) for outer in above)):
        if place.stat().st_mode & needed != needed:
            raise IsolationUnavailable(
                cause=f"{place} is closed to user id {uid}, which jails run as",
                fix=f"open it with chmod o+rx, or move {folder.name} to where everyone can read",
            )
