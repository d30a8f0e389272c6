"""What goes into an image, and what stays out: the standard library without what a jail cannot do, and packages."""

import importlib.machinery
import importlib.metadata
import importlib.util
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from backstay.data_files import data_beside
from backstay.errors import ImageMissing
from sandbox.images.elf import Libraries, is_elf, read_elf, system_folders
from sandbox.images.tools import Plan, plan_tools

ImageKind = Literal["python", "data", "shell", "review"]
"""`python` is the interpreter and its library; `data` adds numpy and pandas, `shell` a shell and ordinary tools.

`review` has all of the standard library, ordinary tools, ruff, mypy and pytest.
"""

_LISTS = data_beside(__file__)
MISSING_MODULES: Mapping[str, str] = MappingProxyType(
    {name: reason for reason, names in _LISTS["reasons"].items() for name in names.split()}
)
"""Modules of the standard library that a program cannot import, each with the reason."""

_NEEDED_BY_OTHERS = frozenset[str](_LISTS["needed_by_others"].split())
_PRIVATE = frozenset[str](_LISTS["private"].split())
_NEVER = frozenset[str](_LISTS["never"].split())
_SYSTEM_ZONES = Path("/usr/share/zoneinfo")
_GUEST = Path(__file__).parents[1] / "guest"
FOLDERS_OUT = frozenset[str](_LISTS["folders_out"].split())
ENDINGS_OUT = frozenset[str](_LISTS["endings_out"].split())
_PACKAGES: Mapping[str, str] = _LISTS["packages"]
_NOT_RUN = frozenset[str](_LISTS["not_run"].split())
_RUFF = "bin/ruff"


def plan_data(place: str, libraries: Libraries) -> Plan:
    """List what programs may import beside the standard library. Raises ImageMissing when it is not installed."""
    return _planned("data", place, libraries, lambda file: _is_library(file) and _is_imported(file))


def plan_review(place: str, libraries: Libraries) -> Plan:
    """List ruff, mypy and pytest, with what they need. Raises ImageMissing when it is not installed."""
    site = f"{place}/site-packages"
    plan = _planned("review", site, libraries, lambda file: _is_library(file) or _is_stub(file))
    for name in [name for name in plan if name.endswith(_RUFF)]:
        plan[f"usr/{_RUFF}"] = plan.pop(name)
    # Interpreters of some systems look for packages elsewhere.
    start = f"import sys\nif '/{site}' not in sys.path:\n    sys.path.append('/{site}')\n"
    return plan | {f"{place}/sitecustomize.py": start.encode()}


def _planned(extra: str, place: str, libraries: Libraries, ships: Callable[[Path], bool]) -> Plan:
    return {
        f"{place}/{file}": path
        for name in _with_needed(_PACKAGES[extra].split())
        for file, path in _package(name, extra, libraries, ships)
    }


def _with_needed(names: Iterable[str]) -> list[str]:
    """Return packages, and what their installed versions need besides: older ones may need more than newer ones."""
    found = list(names)
    for name in found:
        with suppress(importlib.metadata.PackageNotFoundError):
            # Files that are needed only on some systems, or for an extra, are left out.
            for line in importlib.metadata.requires(name) or ():
                needed = re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", line.strip(), maxsplit=1)[0]).lower()
                if ";" not in line and needed not in found:
                    found.append(needed)
    return found


def _package(name: str, extra: str, libraries: Libraries, ships: Callable[[Path], bool]) -> Iterator[tuple[str, Path]]:
    try:
        files = importlib.metadata.files(name) or []
    except importlib.metadata.PackageNotFoundError:
        raise ImageMissing(f"the image cannot be built: {name} is not installed; install backstay[{extra}]") from None
    shipped = [file for file in files if ships(Path(str(file)))]
    kept = sorted({str(file): Path(str(file.locate())).resolve() for file in shipped}.items())
    inside = tuple({path.parents[len(Path(relative).parts) - 2] for relative, path in kept if "/" in relative})
    for relative, path in kept:
        if is_elf(path) and (missing := libraries.add(path, inside=inside)):
            raise ImageMissing(f"the image cannot be built: {name} needs {missing}, which is nowhere; install it")
        yield relative, path


def _is_library(file: Path) -> bool:
    if file.as_posix().endswith(f"../{_RUFF}"):
        return True
    if file.is_absolute() or ".." in file.parts:
        return False
    if file.parts[0].endswith(".dist-info"):
        return file.name == "METADATA"
    return file.suffix not in ENDINGS_OUT and not set(file.parts) & (FOLDERS_OUT | _NOT_RUN)


def _is_imported(file: Path) -> bool:
    """Return whether a file is a module, or lies in a package."""
    return len(file.parts) > 1 or file.suffix == ".py"


def _is_stub(file: Path) -> bool:
    """Return whether mypy reads the file to know what the standard library and packages hold."""
    return file.suffix == ".pyi" and ".." not in file.parts


def interpreter() -> Path:
    """Return the interpreter behind the running one, also from inside a virtual environment."""
    return Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()


@cache
def importable(kind: ImageKind) -> frozenset[str]:
    """Return the top-level modules a program may import in an image of this kind."""
    standard = {name for name in sys.stdlib_module_names if _wanted(name) and name not in MISSING_MODULES}
    present = {name for name in standard if name in sys.builtin_module_names or _is_here(name)}
    return frozenset(present | {"numpy", "pandas", "dateutil"} if kind == "data" else present)


def plan_image(kind: ImageKind) -> Plan:
    """List every file of an image of this kind, from the running interpreter and its libraries.

    Raises ImageMissing when a needed part is not on this machine.
    """
    python = interpreter()
    place = f"usr/lib/python{sys.version_info.major}.{sys.version_info.minor}"
    elf = read_elf(python)
    libraries = Libraries(elf.machine, (*system_folders(), *map(Path, loaded_folders())))
    plan: Plan = {"usr/bin/python3": python}
    if missing := libraries.add(python):
        raise ImageMissing(f"the image cannot be built: {python} needs {missing}, which is nowhere; install it")
    if elf.interpreter:
        plan[re.sub(r"^/(usr/)?lib(64)?/", "usr/lib/", elf.interpreter).lstrip("/")] = Path(elf.interpreter)
    wanted = _reviewed if kind == "review" else _wanted
    plan |= {f"{place}/{name}": path for name, path in _standard_library(wanted)}
    plan |= {f"{place}/lib-dynload/{path.name}": path for path in _extensions(libraries, wanted)}
    plan |= {f"{place}/{path.name}": _configuration() for path in Path(os.__file__).parent.glob("_sysconfigdata*.py")}
    if kind == "data":
        plan[f"{place}/ctypes.py"] = _GUEST / "no_ctypes.py"
        plan |= plan_data(place, libraries)
    if kind == "review":
        plan |= plan_review(place, libraries)
    if kind in ("shell", "review"):
        plan |= plan_tools(libraries)
    plan |= {f"usr/lib/{name}": path for name, path in libraries.found.items()}
    plan |= {f"usr/share/zoneinfo/{name}": path for name, path in _zones()}
    return plan | {f"usr/lib/backstay/{path.name}": path for path in sorted((_GUEST / "programs").glob("*.py"))}


def _wanted(name: str) -> bool:
    kept = name in _NEEDED_BY_OTHERS or name not in MISSING_MODULES
    return kept and name not in _PRIVATE and not name.startswith(("_test", "_xxtest"))


def _reviewed(name: str) -> bool:
    return name not in _NEVER and not name.startswith(("_test", "_xxtest", "xxlimited"))


def _is_here(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def loaded_folders(part: str = ".so") -> list[str]:
    """Return where the running interpreter's own libraries come from, for installations the loader does not know."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    paths = {fields[5] for fields in (line.split(maxsplit=5) for line in lines) if len(fields) == 6}
    return sorted({str(Path(path).parent) for path in paths if path.startswith("/") and part in path})


def _standard_library(wanted: Callable[[str], bool]) -> Iterator[tuple[str, Path]]:
    folder = Path(os.__file__).parent
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and wanted(entry.name) and entry.name not in FOLDERS_OUT and "-" not in entry.name:
            yield from ((f"{entry.name}/{name}", path) for name, path in _tree(entry) if path.suffix == ".py")
        elif (
            entry.suffix == ".py" and wanted(entry.stem) and not entry.stem.startswith(("_sysconfigdata", "sitecustom"))
        ):
            yield entry.name, entry


def _tree(folder: Path) -> Iterator[tuple[str, Path]]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - FOLDERS_OUT)
        for name in sorted(files):
            path = Path(root, name)
            if path.suffix not in ENDINGS_OUT:
                yield path.relative_to(folder).as_posix(), path


def _extensions(libraries: Libraries, wanted: Callable[[str], bool]) -> Iterator[Path]:
    """Yield the extension modules to keep; one whose own library is not on this machine stays out, as it does here."""
    hashes = {"_md5", "_sha1", "_sha2", "_sha256"} & (set(sys.builtin_module_names) | _dynamic().keys())
    for name, path in _dynamic().items():
        # Interpreters built without hashes of their own need OpenSSL for them.
        needed = wanted(name) or (name == "_hashlib" and len(hashes) < 3)
        if needed and libraries.add(path) is None:
            yield path


@cache
def _dynamic() -> Mapping[str, Path]:
    folder = Path(sysconfig.get_path("platstdlib")) / "lib-dynload"
    folder = folder if folder.is_dir() else Path(os.__file__).parent / "lib-dynload"
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    return {path.name.partition(".")[0]: path for path in sorted(folder.iterdir()) if path.name.endswith(suffixes)}


def _configuration() -> bytes:
    """Return what sysconfig reads, without the paths of this machine."""
    kept = {
        key: sysconfig.get_config_var(key)
        for key in ("EXT_SUFFIX", "MULTIARCH", "SOABI", "Py_DEBUG", "Py_GIL_DISABLED")
    }
    return f"build_time_vars = {kept | {'TZPATH': str(_SYSTEM_ZONES)}!r}\n".encode()


def _zones() -> Iterator[tuple[str, Path]]:
    """Yield the time zones: of the tzdata package, else of the system, without what only this machine says."""
    spec = importlib.util.find_spec("tzdata")
    own = Path(spec.origin).parent / "zoneinfo" if spec and spec.origin else _SYSTEM_ZONES
    found = [(name, path) for name, path in _tree(own) if path.suffix != ".py"]
    out = {"localtime", "posixrules", "leap-seconds.list"}
    kept = [(name, path) for name, path in found if not name.startswith(("posix/", "right/")) and name not in out]
    if not kept:
        raise ImageMissing("the image cannot be built: no time zones on this machine; install the tzdata package")
    yield from kept
