"""Roots of one's own: a folder of the operator's, such as an unpacked container image, that commands run in."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from backstay.errors import ImageMissing
from backstay.frozen import Frozen
from backstay.shown import one_line

ROOT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where commands are looked for in such a root, as container images expect it."""
_SHELLS = (
    ("/usr/bin/bash", ("--noprofile", "--norc")),
    ("/bin/bash", ("--noprofile", "--norc")),
    ("/usr/bin/sh", ()),
    ("/bin/sh", ()),
)
_OURS = frozenset({"dev", "proc", "sys", "tmp", "workspace"})
"""What the jail has of its own, or not at all; the folder's own entries there are left out."""
_MOST_ENTRIES = 500_000
_MOST_LINKS = 40


class Entry(Frozen):
    """Name one folder, link or file of a root, and where it is in it."""

    name: str
    target: str = ""
    """Of a link."""
    is_file: bool = False


class OwnRoot(Frozen):
    """Name a root: where it lies, what is at its top, and which shell it has."""

    path: Path
    digest: str
    """Over the names, kinds, modes, sizes and times of all that is in it."""
    shell: tuple[str, ...]
    """The command line that a command is added to."""
    entries: tuple[Entry, ...]

    @property
    def folders(self) -> list[Path]:
        """Return what is mounted of it."""
        return [self.path / entry.name for entry in self.entries if not entry.target]

    @property
    def name(self) -> str:
        """Return how it is named to people."""
        return f"{one_line(self.path.name, 80)} {self.digest[:12]}"


def find_root(folder: Path, *, apart_from: Iterable[Path]) -> OwnRoot:
    """Return the root in a folder; raises ImageMissing, which says what is wrong with it and the fix.

    It must be apart from folders that runs, or the engine itself, write to.
    """
    if not folder.is_absolute():
        raise _wrong(folder, "is not an absolute path", "write the whole path")
    if not folder.is_dir():
        raise _wrong(folder, "is not a folder", "unpack an image there, or leave the setting out")
    root = folder.resolve()
    if root == Path("/"):
        raise _wrong(folder, "is the root of this machine", "unpack an image into a folder")
    for other in map(Path.resolve, apart_from):
        if root.is_relative_to(other) or other.is_relative_to(root):
            raise _wrong(folder, f"is not apart from {other}, where runs write", "keep it elsewhere")
    try:
        digest = _digest(root)
        entries = tuple(_entries(root))
    except OSError as error:
        raise _wrong(folder, f"cannot be read: {error}", "let the worker's user read it") from None
    shell = next(((place, *options, "-c") for place, options in _SHELLS if _is_program(root, place)), None)
    if shell is None:
        raise _wrong(folder, "has neither /bin/bash nor /bin/sh", "take an image that has a shell")
    return OwnRoot(path=root, digest=digest, shell=shell, entries=entries)


def _wrong(folder: Path, why: str, fix: str) -> ImageMissing:
    return ImageMissing(f"BACKSTAY_SHELL_ROOT: {folder} {why}; {fix}")


def _entries(root: Path) -> Iterator[Entry]:
    """Yield what is at the top; single files there, such as marks of container engines, are left out."""
    for found in sorted(os.scandir(root), key=lambda each: each.name):
        if found.name in _OURS:
            continue
        if found.is_symlink():
            yield Entry(name=found.name, target=str(Path(found.path).readlink()))
        elif found.is_dir(follow_symlinks=False):
            yield Entry(name=found.name)


def _digest(root: Path) -> str:
    """Return the digest of all that commands see; raises ImageMissing for what is neither file, folder nor link."""
    total, device = hashlib.sha256(), root.stat().st_dev
    for count, (path, facts) in enumerate(_walk(root)):
        if count > _MOST_ENTRIES:
            raise _wrong(root, f"holds more than {_MOST_ENTRIES} files", "take a smaller image")
        shown = path.relative_to(root)
        kind = stat.S_IFMT(facts.st_mode)
        if kind == stat.S_IFDIR and facts.st_dev != device:
            # A mount below a folder does not become read-only with it.
            raise _wrong(root, f"has something mounted at {one_line(str(shown), 200)!a}", "unmount it")
        if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            # A pipe would join jails, also where nothing can be written.
            raise _wrong(root, f"holds {one_line(str(shown), 200)!a}, a device, pipe or socket", "remove it")
        more = os.fsencode(path.readlink()) if kind == stat.S_IFLNK else b""
        size, changed = (0, 0) if kind == stat.S_IFDIR else (facts.st_size, facts.st_mtime_ns)
        line = f"{facts.st_mode:o} {facts.st_uid} {facts.st_gid} {size} {changed}".encode()
        total.update(b"\0".join((os.fsencode(shown), line, more)) + b"\n")
    return total.hexdigest()


def _walk(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        for path in sorted(folder.iterdir()):
            if folder == root and path.name in _OURS:
                continue
            facts = path.lstat()
            yield path, facts
            if stat.S_ISDIR(facts.st_mode):
                waiting.append(path)


def _is_program(root: Path, place: str) -> bool:
    """Return whether a path leads to a program, as it is followed in the jail: links never lead out of the root."""
    left, inside, links = list(PurePosixPath(place).parts[1:]), list[str](), 0
    while left:
        part = left.pop(0)
        if part == "..":
            inside = inside[:-1]
            continue
        found = root.joinpath(*inside, part)
        if not found.is_symlink():
            inside.append(part)
            continue
        links += 1
        target = PurePosixPath(found.readlink())
        if links > _MOST_LINKS or "\0" in str(target):
            return False
        inside = [] if target.is_absolute() else inside
        left = [*(part for part in target.parts if part != "/"), *left]
    found = root.joinpath(*inside)
    return found.is_file() and bool(found.stat().st_mode & 0o111)
