"""Look at code without running it: ruff for style, mypy for types."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

WORKSPACE = Path("/workspace")
SOURCES = WORKSPACE / "src"
_MOST_LINES = 50
_LONGEST_LINE = 300
_MOST_LINKS = 1000
_LONGEST_READ = 1 << 16
_TAIL = 4000
_CHUNK = 1 << 16
_LEFT_OUT = frozenset({".git", ".hg", ".venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache"})
_RUFF = ("/usr/bin/ruff", "check", "--no-cache", "--quiet")
_MYPY = (
    *("-P", "-B", "-m", "mypy", "--output=json", "--no-error-summary", "--cache-dir=/tmp/mypy"),
    *("--explicit-package-bases", "--disable-error-code=import-not-found", "--disable-error-code=import-untyped"),
)


# A jail has room for few threads, however many processors there are.
_ENVIRONMENT = {"HOME": "/tmp", "PATH": "/usr/bin", "LC_ALL": "C.UTF-8", "RAYON_NUM_THREADS": "4"}  # noqa: S108 - the jail's own


class CannotRun(Exception):
    """The check could not be made; the text says why."""


@dataclass
class Found:
    """Count what was looked at, and what was wrong with it."""

    counted: int = 0
    failed: int = 0
    lines: list[str] = field(default_factory=list)
    """What is wrong, as far as there is room."""
    printed: str = ""
    """The end of what was printed meanwhile."""

    def add(self, line: str) -> None:
        """Count a fault."""
        self.failed += 1
        if len(self.lines) < _MOST_LINES:
            self.lines.append(plain_line(line))

    def plain(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


def lint(paths: Sequence[str]) -> Found:
    """Count what ruff finds, by the rules of the workspace's own configuration."""
    found, places = Found(), require(paths)

    def count(line: str) -> None:
        found.counted += line.endswith((".py", ".pyi", ".ipynb"))

    def take(line: str) -> None:
        fault = _object(line)
        place = fault.get("location")
        row = place.get("row") if isinstance(place, dict) else 0
        where = str(fault.get("filename")).removeprefix(f"{WORKSPACE}/")
        found.add(f"{where}:{row}: {fault.get('code')} {fault.get('message')}")

    _run((*_RUFF, "--show-files", "--", *places), count)
    if found.counted == 0:
        raise CannotRun(f"there is no Python file in {', '.join(paths)}")
    _run((*_RUFF, "--output-format=json-lines", "--", *places), take)
    return found


def types(paths: Sequence[str]) -> Found:
    """Count the errors of mypy, by the workspace's own configuration; missing libraries are no errors."""
    found = Found(counted=1)

    def take(line: str) -> None:
        fault = _object(line)
        if fault.get("severity") == "error":
            found.add(f"{fault.get('file')}:{fault.get('line')}: {fault.get('message')} [{fault.get('code')}]")

    places = require(paths)
    command = (sys.executable, *_MYPY, *[f"--exclude=^{re.escape(name)}/$" for name in _endless_links()])
    # mypy ends with 2 when an error keeps it from going on, be it one of the code or one of its own.
    _run((*command, "--", *places), take, ended=lambda code: code < 2 or found.failed > 0)
    return found


def walk() -> Iterator[tuple[Path, list[str]]]:
    """Yield each folder of the workspace with the names in it, except histories and what others can make again."""
    for folder, folders, files in os.walk(WORKSPACE):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        yield Path(folder), [*files, *folders]


def is_endless(path: Path) -> bool:
    """Return whether a path is a link to a folder that holds it, so that a search below it comes back to it."""
    return path.is_symlink() and path.parent.is_relative_to(os.path.realpath(path))


def _endless_links() -> list[str]:
    paths = (folder / name for folder, names in walk() for name in names)
    return [str(path.relative_to(WORKSPACE)) for path in paths if is_endless(path)][:_MOST_LINKS]


def require(paths: Sequence[str]) -> list[str]:
    """Return the paths so that none is taken for an option; raises CannotRun for one that is not there."""
    for path in paths:
        if not (WORKSPACE / path).exists():
            raise CannotRun(f"{path}: there is no such file or folder in the workspace")
    return [f"./{path}" for path in paths]


def plain_line(text: str) -> str:
    """Return the beginning of a text as one line."""
    return " ".join(text.split())[:_LONGEST_LINE]


def _object(line: str) -> dict[str, Any]:
    try:
        read = json.loads(line)
    except ValueError:
        read = None
    return read if isinstance(read, dict) else {"message": line}


def _run(
    command: Sequence[str], take: Callable[[str], None], ended: Callable[[int], bool] = lambda code: code < 2
) -> None:
    """Run a tool in the workspace and take each line of its output; raises CannotRun with what it complained of."""
    environment = _ENVIRONMENT | ({"MYPYPATH": "src"} if SOURCES.is_dir() else {})
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=WORKSPACE, env=environment, stdout=pipe, stderr=pipe)  # noqa: S603 - the image's
    assert process.stdout is not None  # noqa: S101 - made with pipes
    assert process.stderr is not None  # noqa: S101 - the same
    complained = Tail(process.stderr.fileno())
    last = ""
    while line := process.stdout.readline(_LONGEST_READ):
        if text := line.decode("utf-8", "replace").strip():
            last = text
            take(text)
    code = process.wait()
    complained.join()
    if not ended(code):
        name = "mypy" if "mypy" in command else Path(command[0]).name
        raise CannotRun(f"{name} ended with {code}: {plain_line((complained.text or last)[-_LONGEST_LINE:])}")


class Tail(threading.Thread):
    """Read a pipe to its end, however much comes, and keep the end of it."""

    def __init__(self, fd: int) -> None:
        """Begin to read."""
        super().__init__(daemon=True)
        self._fd = fd
        self._kept = b""
        self.start()

    def run(self) -> None:
        """Read until nobody writes any more."""
        while came := os.read(self._fd, _CHUNK):
            self._kept = (self._kept + came)[-_TAIL:]

    @property
    def text(self) -> str:
        """Return what was kept."""
        return self._kept.decode("utf-8", "replace")
