"""The manifest of promises, held to both ways: no promise without a proof, no proof without a test."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

from tests.requirements import OPEN, REQUIREMENTS

HOUSE = Path(__file__).resolve().parents[1]
KNOWN = {one.id for one in REQUIREMENTS}


@cache
def functions_of(path: Path) -> frozenset[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def test_every_row_has_a_name_of_its_own_and_says_what_should_be():
    twice = [name for name, count in Counter(one.id for one in REQUIREMENTS).items() if count > 1]
    nameless = [one.id for one in REQUIREMENTS if not re.fullmatch(r"[a-z0-9]+:[a-z0-9-]+", one.id)]

    assert (twice, nameless) == ([], [])
    assert [one.id for one in REQUIREMENTS if not one.behaviour or not one.source] == []


def test_every_row_has_a_proof_or_a_reason_or_stands_in_the_list_of_open_ones():
    bare = [one.id for one in REQUIREMENTS if not one.proven_by and not one.deferred]

    assert sorted(bare) == sorted(OPEN)
    assert [one.id for one in REQUIREMENTS if one.proven_by and one.deferred] == []


def test_nothing_is_open():
    assert OPEN == (), f"{len(OPEN)} promises have no test"


def test_every_proof_that_a_row_names_exists():
    lost = [
        f"{one.id}: {proof}"
        for one in REQUIREMENTS
        for proof in one.proven_by
        if not (HOUSE / proof.partition("::")[0]).is_file()
        or proof.partition("::")[2] not in functions_of(HOUSE / proof.partition("::")[0])
    ]

    assert not lost, "\n".join(lost)


def test_a_reason_names_a_feature_and_no_number_of_a_ticket():
    reasons = {one.id: one.deferred for one in REQUIREMENTS if one.deferred}

    assert {name: reason for name, reason in reasons.items() if re.search(r"#|\bissue\b|\d", reason)} == {}


def test_nothing_that_is_in_scope_is_deferred():
    assert [one.id for one in REQUIREMENTS if one.deferred and one.source.startswith("issue")] == []


def test_every_promise_that_a_test_is_marked_with_is_a_row():
    marked = {
        (path.name, argument.value)
        for path in (HOUSE / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.promise"
        for argument in node.args
        if isinstance(argument, ast.Constant)
    }

    assert {(place, name) for place, name in marked if name not in KNOWN} == set()


def test_every_source_is_covered():
    seeds = Counter(one.source.split()[1] for one in REQUIREMENTS if one.source.startswith("seed"))
    sections = {one.source.split()[1].partition(".")[0] for one in REQUIREMENTS if one.source.startswith("design")}
    done = {one.source.split()[2] for one in REQUIREMENTS if one.source.startswith("issue Done")}

    assert sorted(seeds) == ["000", "001", "002", "003", "004"]
    assert {"1", "2", "3", "4", "6", "7", "8", "9", "16", "17", "18", "22"} <= sections
    assert {str(number) for number in range(1, 13)} <= done
