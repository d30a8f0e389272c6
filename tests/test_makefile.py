"""The commands of a newcomer, as make itself explains them, or with stand-ins for what they run."""

import ast
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.requirements import promise

HOUSE = Path(__file__).resolve().parents[1]


def explained(folder: Path, target: str, *more: str) -> str:
    """Return what make would do."""
    command = ("make", "--no-print-directory", "--dry-run", *more, target)
    # Where make itself runs these tests, what was said to it, such as MATRIX=3.12, is not said to this one.
    told = {"MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES"}
    environment = {name: value for name, value in os.environ.items() if name not in told}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=150)
    return done.stdout


@promise("testing:two-commands")
@pytest.mark.parametrize(("target", "what"), [("demo", "-m examples.demo"), ("test", "-m pytest")])
def test_each_of_the_two_commands_first_makes_its_own_environment_from_the_lock(tmp_path, target, what):
    for name in ("Makefile", "requirements.lock", "pyproject.toml", "tests/node/package.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((HOUSE / name).read_bytes())
    (tmp_path / "tests/node/package-lock.json").write_bytes(b"{}")
    told = explained(tmp_path, target)

    steps = ["-m venv", "pip install --require-hashes -r", "-e .", what]
    places = [told.index(step) for step in steps]
    assert places == sorted(places)
    assert "sudo" not in told


STAND_IN = """#!/bin/bash
case "$0 $*" in
*{failing}*) echo "{failing} found a fault"; exit 3;;
*pytest*) until [ -s build/lint.log ]; do sleep 0.05; done; echo "the tests are over";;
*) echo "checked $*";;
esac
"""
"""Its tests end only when something was checked beside them."""


@promise("testing:checks-beside")
@pytest.mark.parametrize("failing", ["pyright", "lint-imports", "pytest", "nothing"])
def test_checks_run_beside_the_tests_and_either_fails_the_whole_and_says_so(tmp_path, failing):
    (tmp_path / "Makefile").write_bytes((HOUSE / "Makefile").read_bytes())
    inputs = ("requirements.lock", "pyproject.toml", "tests/node/package.json", "tests/node/package-lock.json")
    made = (".venv/installed", *(f"build/{name}/installed" for name in ("node", "typescript", "browser", "prometheus")))
    for name in (*inputs, *made):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in ("python", "lint-imports"):
        program = tmp_path / ".venv/bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(STAND_IN.format(failing=failing), encoding="utf-8")
        program.chmod(0o755)
    clean = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        ("make", "test"), cwd=tmp_path, env=clean, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode == 0) is (failing == "nothing"), done.stdout + done.stderr
    # What was checked is said last, where nobody overlooks it.
    said = done.stdout.rpartition("make lint:\n")[2]
    assert "checked -m ruff check ." in said
    assert (f"{failing} found a fault" in said) is (failing in {"pyright", "lint-imports"})
    assert ("the tests are over" in done.stdout) is (failing != "pytest")


@promise("testing:matrix")
def test_the_matrix_runs_the_same_tests_on_every_supported_python():
    least = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    told = explained(HOUSE, "test-matrix")
    (versions,) = re.findall(r"for version in ([^;]*); do", told)
    here = [line for line in explained(HOUSE, "test").splitlines() if " -m pytest " in line]
    there = [line for line in explained(HOUSE, "matrix-one", "VERSION=3.12").splitlines() if " -m pytest " in line]

    assert versions.split() == ["3.11", "3.12", "3.13"]
    assert here == [line.replace("build/matrix/3.12", ".venv") for line in there]
    assert ["--collect-only" in line for line in here] == [True, False]
    assert least == ">=3.11"


@promise("testing:test-time")
def test_no_test_is_skipped_or_expected_to_fail():
    skipping = {"skip", "skipif", "xfail", "importorskip"}
    texts = {path: path.read_text(encoding="utf-8") for path in (HOUSE / "tests").rglob("*.py")}
    found = [
        f"{path.relative_to(HOUSE)}:{node.lineno}"
        for path, text in texts.items()
        # To parse all of them takes seconds.
        if any(word in text for word in skipping)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in skipping and ast.unparse(node.value).startswith("pytest")
    ]

    # What a jail can show depends on the machine and the user: those tests name the reason; CI, as root, runs all.
    jails = ("tests/sandbox/", "tests/hostile/", "tests/workspace/", "tests/image/")
    found = [match for match in found if not match.startswith(jails)]
    assert found == []
