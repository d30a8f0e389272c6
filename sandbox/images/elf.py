"""Which libraries a binary needs: read from its bytes, so that nothing is started to find out."""

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_NEEDED, _STRINGS, _RPATH, _RUNPATH = 1, 5, 15, 29


@dataclass(frozen=True)
class Elf:
    """Tell what a 64-bit ELF file says about how it is loaded."""

    machine: int
    interpreter: str | None
    needed: tuple[str, ...]
    search: tuple[str, ...]
    """Folders named by the file itself, `$ORIGIN` not yet replaced."""


def is_elf(path: Path) -> bool:
    """Tell whether the file is an ELF binary rather than a script."""
    try:
        with path.open("rb") as opened:
            return opened.read(4) == b"\x7fELF"
    except OSError:
        return False


def read_elf(path: Path) -> Elf:
    """Read the dynamic section of a 64-bit little-endian ELF file.

    Raises ValueError when the file is none.
    """
    if not is_elf(path):
        raise ValueError(f"{path} is no ELF file")
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is no 64-bit little-endian ELF file")
        try:
            return _sections(data)
        except (struct.error, ValueError, StopIteration) as error:
            raise ValueError(f"{path} is a damaged ELF file: {error}") from None


def _sections(data: mmap.mmap) -> Elf:
    machine = struct.unpack_from("<H", data, 18)[0]
    table, _, _, _, size, count = struct.unpack_from("<QQIHHH", data, 32)
    loads: list[tuple[int, int, int]] = []
    dynamic: list[tuple[int, int]] = []
    interpreter = None
    for number in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, table + number * size)
        if kind == _LOAD:
            loads.append((address, offset, length))
        elif kind == _INTERPRETER:
            interpreter = data[offset : offset + length].rstrip(b"\0").decode()
        elif kind == _DYNAMIC:
            dynamic = [struct.unpack_from("<QQ", data, at) for at in range(offset, offset + length, 16)]
    strings = next((value for tag, value in dynamic if tag == _STRINGS), None)
    if strings is None:
        return Elf(machine, interpreter, (), ())
    start = next(
        strings - address + offset for address, offset, length in loads if address <= strings < address + length
    )

    def text(at: int) -> str:
        return data[start + at : data.find(b"\0", start + at)].decode()

    search = [text(value).split(":") for tag, value in dynamic if tag in (_RPATH, _RUNPATH)]
    return Elf(
        machine,
        interpreter,
        tuple(text(value) for tag, value in dynamic if tag == _NEEDED),
        tuple(folder for folders in search for folder in folders if folder),
    )


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
                found += [one for path in sorted(place.glob(pattern.lstrip("/"))) for one in _configured(path)]
        else:
            found += map(Path, line)
    return found


class Libraries:
    """Find the libraries that binaries need, and those that these need, for one machine type."""

    def __init__(self, machine: int, folders: tuple[Path, ...]) -> None:
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
