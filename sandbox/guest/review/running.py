"""Run the workspace's code: import its modules, and run its tests on a copy that is thrown away.

What is run is a child of its own, and may lie about itself: its word counts as much as the code that is reviewed.
"""

import contextlib
import importlib
import json
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.guest.review.tools import SOURCES, WORKSPACE, CannotRun, Found, Tail, is_endless, plain_line, require, walk

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


def imports(modules: Sequence[str], seconds: float) -> Found:
    """Import each module in a process of its own; without names, those at the top of the workspace."""
    found = Found()
    for name in modules or _modules():
        found.counted += 1
        told, printed = _child(WORKSPACE, lambda name=name: _imported(name), min(seconds, _IMPORT_S))
        if "error" in told:
            found.add(f"{name}: {told['error']}")
            found.printed = printed or found.printed
    if found.counted == 0:
        raise CannotRun("there is no module at the top of the workspace or of src; name some in `modules`")
    return found


def tests(paths: Sequence[str], seconds: float) -> Found:
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
    return Found(passed + failed, failed, [plain_line(line) for line in _lines(told.get("names"))], printed)


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
    seen = _Seen()
    code = pytest.main(["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", *options, *places], [seen])
    failed = [name for name, passed in seen.by_name.items() if not passed]
    return {
        "code": int(code),
        "passed": len(seen.by_name) - len(failed),
        "failed": len(failed),
        "names": failed[:_MOST_NAMED],
    }


@dataclass
class _Seen:
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
    # What the child left running may still hold the pipe.
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
