"""Images: the read-only root of a jail, made from the running interpreter and named by its content."""

import hashlib
import os
import platform
import secrets
import shutil
import stat
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from backstay.errors import ImageMissing
from backstay.frozen import Frozen
from sandbox.images.files import MISSING_MODULES, ImageKind, Plan, importable, interpreter, loaded_folders, plan_image
from system.files import write_whole

__all__ = ["MISSING_MODULES", "Image", "ImageKind", "build_image", "content_hash", "find_image", "importable"]

_FOLDERS = ("dev", "proc", "tmp", "usr/bin", "usr/lib", "workspace")
_LINKS = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib", "usr/lib64": "lib"}
_GUEST = Path(__file__).parents[1] / "guest" / "programs"
_COMPILER = Path(__file__).with_name("compile.py")
# A fixed number, not that of this machine's processors: the bytes that a compiler writes depend on what it sees.
_COMPILERS = 4
_STAMP = 315532800
_ABANDONED_S = 3600.0


class Image(Frozen):
    """Name the root of a jail: what is in it, by content, and where it lies."""

    kind: ImageKind
    hash: str
    path: Path
    """The root folder; nothing may be written to it."""
    python: str
    """The interpreter's version, such as 3.11.7."""


def build_image(kind: ImageKind, images: Path) -> Image:
    """Return the image of this kind for the running interpreter, building it unless it is there already.

    The same interpreter and packages give the same bytes and the same hash in any folder. Raises ImageMissing when a
    needed part is not on this machine.
    """
    plan = plan_image(kind)
    images = images.resolve()
    recipe = images / "recipes" / _recipe(kind, plan)
    with suppress(OSError):
        known = find_image(recipe.read_text(encoding="ascii"), images)
        if known:
            return known
    if not images.exists():
        images.mkdir(parents=True)
        # The user that a jail has outside must be able to reach it.
        images.chmod(0o755)
    _sweep(images)
    building = images / f".building-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        _fill(building / "root", plan)
        image = _publish(kind, building, images)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    recipe.parent.mkdir(exist_ok=True)
    write_whole(recipe, image.hash.encode(), mode=0o644)
    return image


def find_image(hash: str, images: Path) -> Image | None:  # noqa: A002 - the word of the record it is looked up for
    """Return the image of this hash, or None when it is not in the folder."""
    if not hash.isalnum():
        return None
    images = images.resolve()
    try:
        said = Image.model_validate_json((images / hash / "image.json").read_bytes())
    except (OSError, ValidationError):
        return None
    root = images / hash / "root"
    return said.model_copy(update={"path": root}) if said.hash == hash and root.is_dir() else None


def content_hash(root: Path) -> str:
    """Hash every path below the root with its mode and content; times and owners do not count."""
    total, below = hashlib.sha256(), len(f"{root}/")
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted([*folders, *files]):
            # There are thousands of them, and each start of a worker looks at all.
            path = f"{folder}/{name}"
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                content = f"link {Path(path).readlink()}"
            elif stat.S_ISDIR(mode):
                content = "folder"
            else:
                with Path(path).open("rb", buffering=0) as opened:
                    content = hashlib.file_digest(opened, "sha256").hexdigest()
            total.update(f"{path[below:]}\0{stat.S_IMODE(mode):o}\0{content}\n".encode())
    return total.hexdigest()


def _recipe(kind: ImageKind, plan: Plan) -> str:
    """Name what the image would be made of, without reading it: a changed input has another size or time."""
    lines = [kind, platform.python_version(), platform.machine()]
    builder = sorted(Path(__file__).parent.glob("*.py"))
    lines += [hashlib.sha256(path.read_bytes()).hexdigest() for path in (*builder, *sorted(_GUEST.glob("*.py")))]
    for name, source in sorted(plan.items()):
        if isinstance(source, bytes):
            lines.append(f"{name} {hashlib.sha256(source).hexdigest()}")
        else:
            facts = source.stat()
            lines.append(f"{name} {source} {facts.st_size} {facts.st_mtime_ns}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _fill(root: Path, plan: Plan) -> None:
    for folder in _FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name, target in _LINKS.items():
        (root / name).symlink_to(target)
    for name, source in plan.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(source, bytes):
            place.write_bytes(source)
        else:
            shutil.copyfile(source, place)
    _compile(root)
    for folder, _, files in os.walk(root, topdown=False):
        for name in files:
            place = Path(folder, name)
            place.chmod(0o755 if place.parent.name == "bin" or name.startswith("ld-") else 0o644)
            os.utime(place, (_STAMP, _STAMP))
        Path(folder).chmod(0o755)
        os.utime(folder, (_STAMP, _STAMP))


def _compile(root: Path) -> None:
    sources = sorted(path.relative_to(root).as_posix() for path in (root / "usr/lib").rglob("*.py"))
    environment = {"PYTHONHASHSEED": "0", "LD_LIBRARY_PATH": ":".join(loaded_folders("libpython"))}
    command = (str(interpreter()), "-s", "-S", "-P", "-B", "-X", "utf8", str(_COMPILER), str(root))

    def run(shard: int) -> None:
        done = subprocess.run(  # noqa: S603 - the running interpreter and a file of this package
            command,
            input="\n".join(sources[shard::_COMPILERS]),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ImageMissing(f"the image cannot be built: compiling failed: {done.stderr.strip()[-400:]}")

    with ThreadPoolExecutor(min(_COMPILERS, os.cpu_count() or 1)) as pool:
        list(pool.map(run, range(_COMPILERS)))


def _publish(kind: ImageKind, building: Path, images: Path) -> Image:
    digest = content_hash(building / "root")
    image = Image(kind=kind, hash=digest, path=images / digest / "root", python=platform.python_version())
    # The folder that it is found in says where it lies.
    (building / "image.json").write_text(
        image.model_copy(update={"path": Path("root")}).model_dump_json(), encoding="utf-8"
    )
    building.chmod(0o755)
    try:
        building.rename(images / digest)
    except OSError:
        # Another process was faster, with the same bytes.
        if find_image(digest, images) is None:
            raise
    return image


def _sweep(images: Path) -> None:
    """Remove what builds left behind that were ended half way."""
    for left in images.glob(".building-*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(left, ignore_errors=True)
