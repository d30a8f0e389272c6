"""The manifest of promises, held to both ways: no row without a test or a reason, no test outside of its one row."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

from tests.requirements import REQUIREMENTS

HOUSE = Path(__file__).resolve().parents[1]
NORMAL_LENGTH = 120


@cache
def every_test() -> frozenset[str]:
    """Every test of the project as `tests/folder/test_file.py::test_name`, those of `make soak` included."""
    return frozenset(
        f"{path.relative_to(HOUSE).as_posix()}::{node.name}"
        for path in (HOUSE / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


@cache
def rows_of() -> dict[str, list[str]]:
    """The rows that name a test, by test."""
    rows: dict[str, list[str]] = {}
    for requirement in REQUIREMENTS:
        for test in requirement.tests:
            rows.setdefault(test, []).append(requirement.id)
    return rows


def test_every_row_has_a_name_of_its_own_a_source_and_a_behaviour():
    twice = [name for name, count in Counter(requirement.id for requirement in REQUIREMENTS).items() if count > 1]
    nameless = [
        requirement.id for requirement in REQUIREMENTS if not re.fullmatch(r"[a-z0-9]+:[a-z0-9-]+", requirement.id)
    ]

    assert (twice, nameless) == ([], [])
    assert [
        requirement.id for requirement in REQUIREMENTS if not requirement.behaviour or not all(requirement.sources)
    ] == []


def test_every_row_has_a_test_or_a_reason_and_not_both():
    wrong = [requirement.id for requirement in REQUIREMENTS if bool(requirement.tests) == bool(requirement.deferred)]

    assert wrong == []


def test_every_test_that_a_row_names_exists():
    lost = [f"{test} of {', '.join(rows)}" for test, rows in rows_of().items() if test not in every_test()]

    assert not lost, "\n".join(lost)


def test_every_test_stands_in_exactly_one_row():
    stray = [f"{test} in no row" for test in sorted(every_test() - rows_of().keys())]
    shared = [f"{test} in {', '.join(rows)}" for test, rows in rows_of().items() if len(rows) > 1]

    assert not stray + shared, "\n".join(stray + shared)


def test_the_files_of_rows_have_lines_of_normal_length():
    long = [
        f"{path.name}:{number}"
        for path in sorted((HOUSE / "tests/requirements").glob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > NORMAL_LENGTH
    ]

    assert long == []


def test_a_reason_names_a_feature_and_no_number():
    reasons = {requirement.id: requirement.deferred for requirement in REQUIREMENTS if requirement.deferred}

    assert {name: reason for name, reason in reasons.items() if re.search(r"#|\bissue\b|\d", reason)} == {}


def test_nothing_that_is_in_scope_is_deferred():
    deferred = [requirement for requirement in REQUIREMENTS if requirement.deferred]

    assert [row.id for row in deferred if any(source.startswith("issue") for source in row.sources)] == []


def test_every_source_is_covered():
    sources = {source for requirement in REQUIREMENTS for source in requirement.sources}
    seeds = {source.split()[1] for source in sources if source.startswith("seed")}
    sections = {source.split()[1].partition(".")[0] for source in sources if source.startswith("design")}
    done = {source.split()[2] for source in sources if source.startswith("issue Done")}

    assert seeds == {"000", "001", "002", "003", "004"}
    assert {"1", "2", "3", "4", "6", "7", "8", "9", "16", "17", "18", "22"} <= sections
    assert {str(number) for number in range(1, 13)} <= done
