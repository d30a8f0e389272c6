"""The two commands of a newcomer, as make itself explains them; nothing is run."""

import ast
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parents[1]


def explained(folder: Path, target: str, *more: str) -> str:
    """Return what make would do."""
    command = ("make", "--no-print-directory", "--dry-run", *more, target)
    # Where make itself runs these tests, what was said to it, such as MATRIX=3.12, is not said to this one.
    told = {"MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES"}
    environment = {name: value for name, value in os.environ.items() if name not in told}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


@pytest.mark.parametrize(("target", "what"), [("demo", "-m examples.demo"), ("test", "-m pytest")])
def test_each_of_the_two_commands_first_makes_its_own_environment_from_the_lock(tmp_path, target, what):
    for name in ("Makefile", "requirements.lock", "pyproject.toml", "tests/node/package.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((HOUSE / name).read_bytes())
    (tmp_path / "tests/node/package-lock.json").write_bytes(b"{}")
    told = explained(tmp_path, target)

    steps = ["-m venv", "pip install --require-hashes -r requirements.lock", "-e .", what]
    places = [told.index(step) for step in steps]
    assert places == sorted(places)
    assert "sudo" not in told


def test_the_matrix_runs_the_same_tests_on_every_supported_python():
    least = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    told = explained(HOUSE, "test-matrix")
    (versions,) = re.findall(r"for version in ([^;]*); do", told)
    here = [line for line in explained(HOUSE, "test").splitlines() if " -m pytest " in line]
    there = [line for line in explained(HOUSE, "matrix-test", "VENV=.venv").splitlines() if " -m pytest " in line]

    assert versions.split() == ["3.11", "3.12", "3.13"]
    assert here == there
    assert len(here) == 1
    assert least == ">=3.11"


def test_no_test_is_skipped_or_expected_to_fail():
    skipping = {"skip", "skipif", "xfail", "importorskip"}
    found = [
        f"{path.relative_to(HOUSE)}:{node.lineno}"
        for path in (HOUSE / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in skipping and ast.unparse(node.value).startswith("pytest")
    ]

    # What a jail can show depends on the machine and the user: those tests name the reason; CI, as root, runs all.
    jails = ("tests/sandbox/", "tests/hostile/", "tests/workspace/", "tests/image/")
    found = [match for match in found if not match.startswith(jails)]
    assert found == []
