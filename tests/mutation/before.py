"""Run the tests that a commit lacks against its code: `python -m tests.mutation.before <commit>`.

A test that passes there too proves nothing about what was changed since. Its whole folder of tests is that of this
tree, so a test may fail there for a name that it imports; the last line of each failure says so.
"""

import argparse
import ast
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.mutation.run import HOUSE, checked_out

PYTEST = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
MARKERS = "markers=" + "\n".join(PYTEST["markers"])
"""The marks of this tree's tests; an older commit may not know them, and pytest refuses marks that nobody declared."""


def tests_in(root: Path) -> Iterator[tuple[str, str]]:
    """Return file and name of each test function of a tree."""
    for path in sorted((root / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield path.relative_to(root).as_posix(), node.name


def new_tests(tree: Path, base: Path) -> dict[str, list[str]]:
    """Return by file the tests of a tree whose name no test of the base has; a test may have moved."""
    known = {name for _, name in tests_in(base)}
    found: dict[str, list[str]] = {}
    for path, name in tests_in(tree):
        if name not in known:
            found.setdefault(path, []).append(name)
    return found


def outcomes(root: Path, path: str, names: list[str], seconds: float) -> dict[str, str]:
    """Return how each test of a file ends there: "passed", or the last line of why it failed."""
    report = root / "report.xml"
    report.unlink(missing_ok=True)
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", MARKERS, f"--junitxml={report}")
    ids = [f"{path}::{name}" for name in names]
    try:
        subprocess.run(
            (sys.executable, "-m", "pytest", *options, *ids),
            cwd=root, capture_output=True, timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return dict.fromkeys(names, "took too long")
    if not report.exists():
        return dict.fromkeys(names, "was not run")
    found = dict.fromkeys(names, "was not collected")
    for case in ET.parse(report).iter("testcase"):
        name = case.get("name", "").partition("[")[0]
        faults = [each for each in case if each.tag in {"failure", "error"}]
        if name in found and found[name] in {"passed", "was not collected"}:
            found[name] = _last_line(faults[0]) if faults else "passed"
    return found


def _last_line(fault: ET.Element) -> str:
    said = fault.get("message") or fault.text or "failed"
    return said.strip().splitlines()[0][:160]


def main() -> int:
    """Print a row for each new test; return 1 where one passes at the commit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", help="the commit without the change")
    parser.add_argument("--only", default="", help="a part of the paths of the tests to run")
    parser.add_argument("--seconds", type=float, default=600, help="how long the tests of one file may take")
    given = parser.parse_args()
    passed = 0
    with tempfile.TemporaryDirectory(prefix="before-") as place, checked_out(Path(place, "base"), given.base) as base:
        found = new_tests(HOUSE, base)
        subprocess.run(("rm", "-r", str(base / "tests")), check=True)
        subprocess.run(("cp", "-r", str(HOUSE / "tests"), str(base / "tests")), check=True)
        (base / "build").symlink_to(HOUSE / "build")
        for path, names in found.items():
            if given.only not in path:
                continue
            for name, outcome in outcomes(base, path, names, given.seconds).items():
                passed += outcome == "passed"
                print(f"{path}::{name}\n    {outcome}", flush=True)
    return 1 if passed else 0


if __name__ == "__main__":
    raise SystemExit(main())
