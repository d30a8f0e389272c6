"""The part of this machine that a Python interpreter needs, as the root of a jail: for programs made for it alone."""

import hashlib
import json
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from backstay.errors import IsolationUnavailable
from sandbox.images.own_root import Entry, OwnRoot
from system.folders import outermost

_SYSTEM = ("usr", "bin", "lib", "lib32", "lib64", "sbin")
_FILES = ("etc/ld.so.cache",)
_FOLDERS = ("etc/alternatives",)
_PLACES = "import json, sys; print(json.dumps([sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path]))"
_TOO_WIDE = frozenset(map(Path, ("/", "/home", "/root", "/var", "/etc", "/proc", "/sys", "/dev", "/run", "/tmp")))  # noqa: S108 - never shown whole
_ANSWER_S = 20


def host_root(python: Path) -> OwnRoot:
    """Return the root that holds the system's programs and libraries, this interpreter and what it imports.

    Nothing else of this machine is in it: no settings, no homes, and of `/etc` only where libraries are.
    Raises IsolationUnavailable when the interpreter does not say where its packages are, or others can write there.
    """
    folders = outermost([*map(Path("/").joinpath, (*_SYSTEM, *_FOLDERS)), *_places_of(python)])
    _check_mounts(folders)
    entries = tuple(_entries(folders))
    digest = hashlib.sha256("\n".join(entry.model_dump_json() for entry in entries).encode()).hexdigest()
    return OwnRoot(path=Path("/"), digest=digest, shell=(), entries=entries)


def _entries(folders: Iterable[Path]) -> Iterator[Entry]:
    for folder in folders:
        name = str(folder.relative_to("/"))
        if folder.is_symlink():
            yield Entry(name=name, target=str(folder.readlink()))
        elif folder.is_dir():
            yield Entry(name=name)
    for name in _FILES:
        if Path("/", name).is_file():
            yield Entry(name=name, is_file=True)


def _places_of(python: Path) -> list[Path]:
    """Return the folders that an interpreter needs, under each name by which it looks for them."""
    try:
        ended = subprocess.run(  # noqa: S603 - the interpreter that the operator names, without any code of a plugin
            [str(python), "-I", "-c", _PLACES], cwd="/", capture_output=True, timeout=_ANSWER_S, check=True, env={}
        )
        said = [Path(place) for place in json.loads(ended.stdout) if place]
    except (OSError, subprocess.SubprocessError, ValueError, TypeError):
        raise IsolationUnavailable(
            cause=f"{python} does not say where its packages are", fix="let `python` name a working interpreter"
        ) from None
    found = [python.parent, python.resolve().parent, *said, *(place.resolve() for place in said)]
    return [place for place in found if place.is_absolute() and place not in _TOO_WIDE and place.is_dir()]


def _check_mounts(folders: Iterable[Path]) -> None:
    """Raise IsolationUnavailable where something writable is mounted inside: it would stay writable in the jail."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split()
        place, options = Path(fields[4]), fields[5].split(",")
        outer = next((folder for folder in folders if place != folder and place.is_relative_to(folder)), None)
        if outer is not None and "rw" in options:
            raise IsolationUnavailable(
                cause=f"{place} is mounted in {outer}, and can be written",
                fix="mount it read-only, or elsewhere",
            )
