"""Look at the workspace's code with ruff and mypy, import its modules, and run its tests on a copy.

What is run is a child of its own, and may lie about itself: its word counts as much as the code that is reviewed.
"""

import contextlib
import importlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_COPY = Path("/tmp/workspace")  # noqa: S108 - the jail's own
_TOLD = Path("/tmp/told.json")  # noqa: S108 - the jail's own
_MOST_TOLD = 1 << 20
_MOST_MODULES = 200
_IMPORT_S = 30.0
_OFTEN_S = 0.02
_DRAIN_S = 1.0
_NOT_IMPORTED = frozenset({"conftest", "setup", "noxfile", "tests", "test"})
_MOST_NAMED = 50
_USAGE = 4
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
class ReviewCounts:
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


def lint(paths: Sequence[str]) -> ReviewCounts:
    """Count what ruff finds, by the rules of the workspace's own configuration."""
    found, places = ReviewCounts(), require(paths)

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


def types(paths: Sequence[str]) -> ReviewCounts:
    """Count the errors of mypy, by the workspace's own configuration; missing libraries are not errors."""
    found = ReviewCounts(counted=1)

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
    """Return the beginning of a string as one line."""
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


def imports(modules: Sequence[str], seconds: float) -> ReviewCounts:
    """Import each module in a process of its own; without names, those at the top of the workspace."""
    found = ReviewCounts()
    for name in modules or _modules():
        found.counted += 1
        told, printed = _child(WORKSPACE, lambda name=name: _imported(name), min(seconds, _IMPORT_S))
        if "error" in told:
            found.add(f"{name}: {told['error']}")
            found.printed = printed or found.printed
    if found.counted == 0:
        raise CannotRun("there is no module at the top of the workspace or of src; name some in `modules`")
    return found


def tests(paths: Sequence[str], seconds: float) -> ReviewCounts:
    """Run pytest, and count the tests that ran and those that failed; skipped ones do not count."""
    places = require(paths)
    _copy()
    told, printed = _child(_COPY, lambda: _tested(places, ()), seconds)
    if told.get("code") == _USAGE:
        # Options of the workspace may be those of plugins that are not here.
        told, printed = _child(_COPY, lambda: _tested(places, ("-o", "addopts=")), seconds)
    if "error" in told:
        raise CannotRun(f"pytest did not end as it should: {told['error']}. {plain_line(printed[-200:])}".rstrip())
    passed, failed = _whole(told.get("passed")), _whole(told.get("failed"))
    if not passed and not failed:
        raise CannotRun(f"no test ran: {plain_line(printed[-200:])}")
    return ReviewCounts(passed + failed, failed, [plain_line(line) for line in _lines(told.get("names"))], printed)


def _imported(name: str) -> dict[str, Any]:
    importlib.import_module(name)
    return {}


def _modules() -> list[str]:
    """Return the modules and packages at the top, in order."""
    folder = SOURCES if SOURCES.is_dir() else WORKSPACE
    names = [
        entry.stem
        for entry in sorted(folder.iterdir())
        if (entry.suffix == ".py" and entry.is_file()) or (entry / "__init__.py").is_file()
    ]
    wanted = (name for name in names if name.isidentifier() and name not in _NOT_IMPORTED)
    return [name for name in wanted if not name.startswith("test_")][:_MOST_MODULES]


def _tested(places: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
    pytest = importlib.import_module("pytest")
    seen = _PassedTests()
    code = pytest.main(["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", *options, *places], [seen])
    failed = [name for name, passed in seen.by_name.items() if not passed]
    return {
        "code": int(code),
        "passed": len(seen.by_name) - len(failed),
        "failed": len(failed),
        "names": failed[:_MOST_NAMED],
    }


@dataclass
class _PassedTests:
    """Listen to pytest: which tests passed in all of their parts."""

    by_name: dict[str, bool] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Hear of one part of a test."""
        if report.failed:
            self.by_name[f"{report.nodeid} ({report.when})"] = False
            self.by_name.pop(report.nodeid, None)
        elif report.passed and report.when == "call":
            self.by_name[report.nodeid] = True

    def pytest_collectreport(self, report: Any) -> None:
        """Hear of a file or folder in which tests were looked for."""
        if report.failed:
            self.by_name[f"{report.nodeid} (cannot be collected)"] = False


def _copy() -> None:
    """Copy the plain files and folders of the workspace; links are copied as links, and all else stays behind.

    So do links in which pytest would go round until the kernel ends it, at a depth that is not always the same.
    """
    try:
        for folder, names in walk():
            place = _COPY / folder.relative_to(WORKSPACE)
            place.mkdir()
            for source in (folder / name for name in names):
                mode = source.lstat().st_mode
                if (stat.S_ISLNK(mode) and not is_endless(source)) or stat.S_ISREG(mode):
                    shutil.copy(source, place / source.name, follow_symlinks=False)
    except OSError as error:
        raise CannotRun(f"the workspace cannot be copied for its tests: {error.strerror or error}") from None


def _child(folder: Path, work: Callable[[], dict[str, Any]], seconds: float) -> tuple[dict[str, Any], str]:
    """Do work in a process of its own; return what it told, or `error`, and the end of what it printed."""
    _TOLD.unlink(missing_ok=True)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(folder, work, writing)
    os.close(writing)
    printed = Tail(reading)
    fault = _end_of(child, seconds)
    # A process that the child left running may still hold the pipe.
    printed.join(_DRAIN_S)
    told = _told() if fault is None else None
    return ({"error": fault or "it ended without a word"} if told is None else told), printed.text


def _work(folder: Path, work: Callable[[], dict[str, Any]], printed: int) -> None:
    """Do the work, leave what is to be told, and end this process."""
    os.setsid()
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    # Nothing of this is the workspace's, least of all the way on which the answer goes.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir(folder)
    sys.path[:0] = [str(place) for place in (folder, folder / "src") if place.is_dir()]
    try:
        told = work()
    except BaseException as error:
        told = {"error": plain_line(f"{type(error).__name__}: {error}")}
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    _TOLD.write_text(json.dumps(told), encoding="utf-8")
    os._exit(0)


def _end_of(child: int, seconds: float) -> str | None:
    """Wait for a child; return why it did not end by itself, or None."""
    ends = time.monotonic() + seconds
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return f"a signal ended it ({-code})" if (code := os.waitstatus_to_exitcode(status)) < 0 else None
        if time.monotonic() > ends:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"it took longer than {seconds:g} s"
        time.sleep(_OFTEN_S)


def _told() -> dict[str, Any] | None:
    """Return what a child left, unless that is something else than one small JSON object."""
    try:
        opened = os.open(_TOLD, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(opened, "rb") as file:  # noqa: PTH123 - it is open already
            told = json.loads(file.read(_MOST_TOLD))
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) else None


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _lines(value: Any) -> list[str]:
    return [line for line in value[:_MOST_NAMED] if isinstance(line, str)] if isinstance(value, list) else []
