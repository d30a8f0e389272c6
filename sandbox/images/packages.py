"""Packages of the running environment that go into an image: what they ship, and the libraries that they need."""

import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from backstay.errors import ImageMissing
from sandbox.images.elf import Libraries, is_elf
from sandbox.images.tools import Plan

FOLDERS_OUT = frozenset({"__pycache__", "site-packages", "dist-packages", "lib-dynload", "test", "tests", "idle_test"})
ENDINGS_OUT = frozenset({".a", ".c", ".cpp", ".h", ".o", ".pxd", ".pxi", ".pyc", ".pyi", ".pyx"})
_DATA = ("numpy", "pandas", "python-dateutil")
_REVIEW = (
    *("ruff", "mypy", "mypy-extensions", "typing-extensions", "pathspec", "librt", "ast-serialize"),
    *("pytest", "pluggy", "iniconfig", "packaging", "pygments"),
)
_NOT_RUN = frozenset({"distutils", "f2py", "_pyinstaller"})
_RUFF = "bin/ruff"


def plan_data(place: str, libraries: Libraries) -> Plan:
    """List what programs may import beside the standard library. Raises ImageMissing when it is not installed."""
    return _planned(_DATA, "data", place, libraries, lambda file: len(file.parts) > 1 and _is_library(file))


def plan_review(place: str, libraries: Libraries) -> Plan:
    """List ruff, mypy and pytest, with what they need. Raises ImageMissing when it is not installed."""
    site = f"{place}/site-packages"
    plan = _planned(_REVIEW, "review", site, libraries, lambda file: _is_library(file) or _is_stub(file))
    for name in [name for name in plan if name.endswith(_RUFF)]:
        plan[f"usr/{_RUFF}"] = plan.pop(name)
    # Interpreters of some systems look for packages elsewhere.
    start = f"import sys\nif '/{site}' not in sys.path:\n    sys.path.append('/{site}')\n"
    return plan | {f"{place}/sitecustomize.py": start.encode()}


def _planned(names: Sequence[str], extra: str, place: str, libraries: Libraries, ships: Callable[[Path], bool]) -> Plan:
    return {f"{place}/{file}": path for name in names for file, path in _package(name, extra, libraries, ships)}


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


def _is_stub(file: Path) -> bool:
    """Return whether mypy reads the file to know what the standard library and packages hold."""
    return file.suffix == ".pyi" and ".." not in file.parts
