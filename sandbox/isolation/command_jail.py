"""Run a folder's Python programs in jails of their own: the folder read-only, no network, and nothing kept."""

import asyncio
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from backstay.errors import IsolationUnavailable
from sandbox.images.image import Image, ImageKind, build_image
from sandbox.isolation.cgroups import Cgroups, find_cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import Profile, outside_uid
from sandbox.isolation.proof import prove
from sandbox.isolation.way import can_open_ways

_PYTHON = ("/usr/bin/python3", "-s", "-B", "-X", "utf8")


@dataclass(frozen=True, slots=True)
class _Parts:
    nsjail: Nsjail
    image: Image
    cgroups: Cgroups


class CommandJail:
    """Confine commands; that jails confine here is proven when the first one is needed."""

    def __init__(self, *, nsjail: Path | None, home: Path, image: ImageKind) -> None:
        self._nsjail = nsjail
        self._home = home.absolute()
        self._image: ImageKind = image
        self._parts: _Parts | None = None
        self._proving = asyncio.Lock()

    async def confine(self, words: Sequence[str], *, folder: Path, variables: Iterable[str]) -> Sequence[str]:
        """Return the command that gives these words to the image's interpreter, in a jail that stands in the folder.

        The variables named are taken from the environment of whoever starts it; there are no others in the jail.
        Raises IsolationUnavailable, and ImageMissing when there is nothing to run in.
        """
        async with self._proving:
            if self._parts is None:
                self._parts = await self._proven()
        return await asyncio.to_thread(self._command, self._parts, words, folder, tuple(variables))

    async def _proven(self) -> _Parts:
        parts = await asyncio.to_thread(self._find)
        proof = await prove(parts.nsjail, parts.image, self._home / "jails", cgroups=parts.cgroups)
        proof.demand()
        return parts

    def _find(self) -> _Parts:
        nsjail = Nsjail.find(None if self._nsjail is None else str(self._nsjail))
        return _Parts(nsjail, build_image(self._image, self._home / "images"), find_cgroups())

    def _command(self, parts: _Parts, words: Sequence[str], folder: Path, variables: Sequence[str]) -> Sequence[str]:
        folder, uid = folder.resolve(), outside_uid()
        _check_reachable(folder, uid)
        profile = Profile(
            parts.nsjail,
            parts.image,
            kind="shell",
            outside_uid=uid,
            cgroups=parts.cgroups,
            workspace=folder,
        )
        # A name without a value is filled in by nsjail: values on a command line are for everyone to read.
        named = [part for name in variables for part in ("--env", name)]
        return (*profile.start(self._home / "jails", *named), "--", *_PYTHON, *words)


def _check_reachable(folder: Path, uid: int) -> None:
    """Find out before a jail does that it may not read its folder. Raises IsolationUnavailable."""
    if uid == os.geteuid():
        return
    above = () if can_open_ways() else folder.parents
    for place, needed in ((folder, 0o005), *((outer, 0o001) for outer in above)):
        if place.stat().st_mode & needed != needed:
            raise IsolationUnavailable(
                cause=f"{place} is closed to the user id {uid}, which a jail has outside",
                fix=f"open it with chmod o+rx, or move {folder.name} to where everyone can read",
            )
