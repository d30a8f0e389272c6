"""Which libraries a binary needs: read from its bytes, so that nothing is started to find out."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from backstay.errors import ImageMissing

_LOAD, _DYNAMIC, _INTERP = 1, 2, 3
_END, _NEEDED, _STRTAB, _RPATH, _RUNPATH = 0, 1, 5, 15, 29
"""Kinds of segments and of dynamic tags: https://refspecs.linuxfoundation.org/elf/gabi4+/ch5.dynamic.html."""
_SEGMENT = struct.Struct("<IIQQQQ")
_TAG = struct.Struct("<qQ")
_LONGEST = 4097
"""The longest path on Linux, with its end."""


class _Segment(NamedTuple):
    kind: int
    offset: int
    address: int
    length: int


@dataclass(frozen=True)
class Elf:
    """Tell what a 64-bit ELF file says about how it is loaded."""

    machine: str
    interpreter: str | None
    needed: tuple[str, ...]
    search: tuple[str, ...]
    """Folders named by the file itself, `$ORIGIN` not yet replaced."""


def is_elf(path: Path) -> bool:
    """Return whether the file is an ELF binary rather than a script."""
    try:
        with path.open("rb") as opened:
            return opened.read(4) == b"\x7fELF"
    except OSError:
        return False


def read_elf(path: Path) -> Elf:
    """Read how a 64-bit little-endian ELF file is loaded.

    Raises ValueError for any other file, and ImageMissing when the library that reads such files is not installed.
    """
    try:
        from elftools.elf.elffile import ELFFile  # noqa: PLC0415 - it comes with an extra
    except ModuleNotFoundError as error:
        raise ImageMissing(
            f"the image cannot be built: {error.name} is not installed; install backstay[sandbox]"
        ) from None
    if not is_elf(path):
        raise ValueError(f"{path} is not an ELF file")
    facts = path.stat()
    return _read(ELFFile, path, (facts.st_size, facts.st_mtime_ns, facts.st_ino))


@cache
def _read(reader: Any, path: Path, _state: tuple[int, ...]) -> Elf:
    """Read a file once while it stays as it is: many binaries need the same libraries, in images of several kinds."""
    with path.open("rb") as opened:
        try:
            file: Any = reader(opened)
            if file.elfclass == 64 and file.little_endian:
                return _loading(file)
        except Exception as error:  # the library raises many kinds for damaged bytes
            raise ValueError(f"{path} is a damaged ELF file: {error}") from None
    raise ValueError(f"{path} is not a 64-bit little-endian ELF file")


def _loading(file: Any) -> Elf:
    """Read the segments themselves: the library would also read every section, which takes five times as long."""
    segments = [*_segments(file)]
    loaded = [segment for segment in segments if segment.kind == _LOAD]
    interpreter = next((_text(file.stream, segment.offset) for segment in segments if segment.kind == _INTERP), None)
    tags = [tag for segment in segments if segment.kind == _DYNAMIC for tag in _tags(file.stream, segment)]
    names = next((_offset(loaded, value) for kind, value in tags if kind == _STRTAB), 0)
    needed = tuple(_text(file.stream, names + value) for kind, value in tags if kind == _NEEDED)
    search = [_text(file.stream, names + value) for kind, value in tags if kind in (_RPATH, _RUNPATH)]
    folders = tuple(folder for folders in search for folder in folders.split(":") if folder)
    return Elf(str(file["e_machine"]), interpreter, needed, folders)


def _segments(file: Any) -> Iterator[_Segment]:
    size = file["e_phentsize"]
    file.stream.seek(file["e_phoff"])
    table = file.stream.read(size * file.num_segments())
    for at in range(0, len(table), size):
        kind, _, offset, address, _, length = _SEGMENT.unpack_from(table, at)
        yield _Segment(kind, offset, address, length)


def _tags(stream: BinaryIO, segment: _Segment) -> Iterator[tuple[int, int]]:
    stream.seek(segment.offset)
    for kind, value in _TAG.iter_unpack(stream.read(segment.length)):
        if kind == _END:
            return
        yield kind, value


def _offset(loaded: list[_Segment], address: int) -> int:
    """Return where in the file that stands which is loaded at an address; raises StopIteration where nothing is."""
    found = next(segment for segment in loaded if segment.address <= address < segment.address + segment.length)
    return address - found.address + found.offset


def _text(stream: BinaryIO, offset: int) -> str:
    stream.seek(offset)
    text, ended, _ = stream.read(_LONGEST).partition(b"\0")
    if not ended:
        raise ValueError("a name has no end")
    return text.decode("utf-8")


def system_folders(configuration: Path = Path("/etc/ld.so.conf")) -> tuple[Path, ...]:
    """Return where the system's loader looks, in its order."""
    defaults = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
    return tuple(dict.fromkeys([*_configured(configuration), *map(Path, defaults)]))


def _configured(configuration: Path) -> list[Path]:
    try:
        lines = configuration.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found: list[Path] = []
    for line in (raw.partition("#")[0].split() for raw in lines):
        if line[:1] == ["include"]:
            for pattern in line[1:]:
                place = Path("/") if pattern.startswith("/") else configuration.parent
                found += [folder for path in sorted(place.glob(pattern.lstrip("/"))) for folder in _configured(path)]
        else:
            found += map(Path, line)
    return found


class Libraries:
    """Find the libraries that binaries need, and those that these need, for one machine type."""

    def __init__(self, machine: str, folders: tuple[Path, ...]) -> None:
        self.found: dict[str, Path] = {}
        self._read: set[Path] = set()
        self._machine = machine
        self._folders = folders

    def add(self, path: Path, *, inside: tuple[Path, ...] = ()) -> str | None:
        """Find all that the binary needs; return the name of a library that is nowhere, and then add nothing.

        Libraries below a folder of `inside` travel with it and are not listed.
        """
        added: dict[str, Path] = {}
        read: set[Path] = set()
        waiting = [path]
        while waiting:
            asking = waiting.pop()
            read.add(asking)
            elf = read_elf(asking)
            for name in elf.needed:
                place = self.found.get(name) or added.get(name) or self._locate(name, asking, elf)
                if place is None:
                    return name
                if place not in read | self._read:
                    waiting.append(place)
                if not any(place.is_relative_to(folder) for folder in inside):
                    added[name] = place
        self.found |= added
        self._read |= read
        return None

    def _locate(self, name: str, asking: Path, elf: Elf) -> Path | None:
        origin = str(asking.parent)
        own = [Path(folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)) for folder in elf.search]
        for folder in (*own, *self._folders):
            place = folder / name
            if is_elf(place) and self._fits(place):
                return place.resolve() if folder in own else place
        return None

    def _fits(self, place: Path) -> bool:
        try:
            return read_elf(place).machine == self._machine
        except ValueError:
            return False
