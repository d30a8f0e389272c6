"""Cgroups: caps on a whole jail, where the machine lets this worker set them."""

from pathlib import Path
from typing import Literal

from backstay.noun import Noun


class Cgroups(Noun):
    """Name the folders below which each jail gets a cgroup of its own; none is the case that always works."""

    version: Literal[0, 1, 2] = 0
    memory: Path | None = None
    pids: Path | None = None
    cpu: Path | None = None
    missing: tuple[str, ...] = ()
    """Why a cap is not set, one line each."""

    @property
    def folder(self) -> Path | None:
        """The one folder of version 2."""
        return self.memory or self.pids or self.cpu
