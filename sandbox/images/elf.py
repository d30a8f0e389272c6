"""Which libraries a binary needs: read from its bytes, so that nothing is started to find out."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from backstay.errors import ImageMissing


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
    interpreter = next((segment.get_interp_name() for segment in file.iter_segments("PT_INTERP")), None)
    tags = [(tag.entry.d_tag, tag) for segment in file.iter_segments("PT_DYNAMIC") for tag in segment.iter_tags()]
    needed = tuple(tag.needed for kind, tag in tags if kind == "DT_NEEDED")
    search = [getattr(tag, kind[3:].lower()) for kind, tag in tags if kind in ("DT_RPATH", "DT_RUNPATH")]
    folders = tuple(folder for folders in search for folder in folders.split(":") if folder)
    return Elf(str(file["e_machine"]), interpreter, needed, folders)


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
