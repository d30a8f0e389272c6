"""Read the promises from `areas/*.yaml`, and from the tests which of them each one proves."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

HOUSE = Path(__file__).resolve().parents[2]
AREAS = Path(__file__).parent / "areas"
AREA_KEYS = {"about", "docs", "promises"}
PROMISE_KEYS = {"promise", "deferred", "by_hand"}


@dataclass(frozen=True)
class Promise:
    """One sentence that holds, and what is known of its proof.

    `deferred` says for which feature a promise without a test is kept. `by_hand` says what is run to see the part that
    the tests do not show.
    """

    name: str
    text: str
    deferred: str = ""
    by_hand: str = ""


@dataclass(frozen=True)
class Area:
    """The promises of one subject, and the pages of the documentation that give them."""

    name: str
    about: str
    docs: tuple[str, ...]
    promises: tuple[Promise, ...]


@cache
def areas() -> tuple[Area, ...]:
    """Return every area, by name. Raises ValueError for a key that an area or a promise does not have."""
    return tuple(_area(path) for path in sorted(AREAS.glob("*.yaml")))


def _area(path: Path) -> Area:
    # These are the longest files of YAML here, and the loader in C takes a tenth of the time.
    text = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    _check_keys(text, AREA_KEYS, path.name)
    promises = tuple(_promise(f"{path.stem}:{key}", value) for key, value in text["promises"].items())
    return Area(path.stem, text["about"], tuple(text["docs"]), promises)


def _promise(name: str, value: str | dict[str, Any]) -> Promise:
    if isinstance(value, str):
        return Promise(name, value)
    _check_keys(value, PROMISE_KEYS, name)
    return Promise(name, value["promise"], value.get("deferred", ""), value.get("by_hand", ""))


def _check_keys(found: dict[str, Any], known: set[str], where: str) -> None:
    if unknown := found.keys() - known:
        raise ValueError(f"{where}: unknown keys {sorted(unknown)}; known are {sorted(known)}")


def promises() -> dict[str, Promise]:
    """Return every promise by its name."""
    return {each.name: each for area in areas() for each in area.promises}


@cache
def promised_by_test() -> dict[str, tuple[str, ...]]:
    """Return the names of promises by test (`tests/folder/test_file.py::test_name`), the tests of `make soak` too."""
    return {name: tuple(_marks(test)) for name, test in _tests()}


@cache
def run_by_soak_only() -> dict[str, set[str]]:
    """Return the tests that `make test` leaves out, by the mark that says so."""
    found: dict[str, set[str]] = {"soak": set(), "thorough": set()}
    for name, test in _tests():
        for decorator in test.decorator_list:
            match decorator:
                case ast.Attribute(value=ast.Attribute(attr="mark"), attr=mark) if mark in found:
                    found[mark].add(name)
    return found


@cache
def _tests() -> tuple[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef], ...]:
    return tuple(
        (f"{path.relative_to(HOUSE).as_posix()}::{node.name}", node)
        for path in sorted((HOUSE / "tests").rglob("test_*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def _marks(test: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for decorator in test.decorator_list:
        match decorator:
            case ast.Call(func=ast.Name(id="promise"), args=[ast.Constant(value=str(name))]):
                yield name


def proofs() -> dict[str, list[str]]:
    """Return the tests by the promise that they prove."""
    found: dict[str, list[str]] = {name: [] for name in promises()}
    for test, names in promised_by_test().items():
        for name in names:
            found.setdefault(name, []).append(test)
    return found
