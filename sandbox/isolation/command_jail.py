"""Run Python programs of a folder in jails: the folder is read-only, and there is no network."""

import asyncio
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from backstay.errors import IsolationUnavailable
from sandbox.images.host_python import host_root
from sandbox.images.image import Image, ImageKind, build_image
from sandbox.isolation.cgroups import Cgroups, find_cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import JailProfile, outside_uid
from sandbox.isolation.self_test import run_self_test
from sandbox.isolation.way import can_open_ways

_PYTHON = ("/usr/bin/python3", "-s", "-B", "-X", "utf8")


@dataclass(frozen=True, slots=True)
class _Parts:
    nsjail: Nsjail
    image: Image
    cgroups: Cgroups


class CommandJail:
    """Confine commands; the self-test of jails runs before the first one."""

    def __init__(self, *, nsjail: Path | None, home: Path, image: ImageKind) -> None:
        self._nsjail = nsjail
        self._home = home.absolute()
        self._image: ImageKind = image
        self._parts: _Parts | None = None
        self._testing = asyncio.Lock()

    async def confine(
        self, words: Sequence[str], *, folder: Path, variables: Iterable[str], python: Path | None = None
    ) -> Sequence[str]:
        """Return the command that runs an interpreter with these words, in a jail, in this folder.

        `python`: an interpreter of this machine, which then has its own packages; None is the one of the image.
        The jail gets the named variables from the environment of whoever starts the command, and no others.
        Raises IsolationUnavailable, and ImageMissing when there is no image.
        """
        async with self._testing:
            if self._parts is None:
                self._parts = await self._tested()
        return await asyncio.to_thread(self._command, self._parts, words, folder, tuple(variables), python)

    async def _tested(self) -> _Parts:
        parts = await asyncio.to_thread(self._find)
        result = await run_self_test(parts.nsjail, parts.image, self._home / "jails", cgroups=parts.cgroups)
        result.require_isolation()
        return parts

    def _find(self) -> _Parts:
        nsjail = Nsjail.find(None if self._nsjail is None else str(self._nsjail))
        return _Parts(nsjail, build_image(self._image, self._home / "images"), find_cgroups())

    def _command(
        self, parts: _Parts, words: Sequence[str], folder: Path, variables: Sequence[str], python: Path | None
    ) -> Sequence[str]:
        folder, uid = folder.resolve(), outside_uid()
        _check_reachable(folder, uid)
        profile = JailProfile(
            parts.nsjail,
            parts.image,
            kind="shell",
            outside_uid=uid,
            cgroups=parts.cgroups,
            workspace=folder,
            root=None if python is None else host_root(python),
        )
        # Pass names only and let nsjail fill in the values: every user can read a command line.
        named = [part for name in variables for part in ("--env", name)]
        interpreter = _PYTHON if python is None else (str(python), "-B")
        return (*profile.start(self._home / "jails", *named), "--", *interpreter, *words)


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
