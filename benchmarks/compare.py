"""Measure this checkout and another one in turns, with the benchmarks of this one, and print the ratios.

python -m benchmarks.compare OTHER [--rounds 5] [steps calls ...]
"""

import argparse
import asyncio
import importlib
import inspect
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import processes

ROUNDS: dict[str, dict[str, Any]] = {
    "steps": {"rounds": 1, "parked": 50},
    "calls": {"rounds": 1},
    "programs": {"samples": 30, "paused": 50},
    "forms": {},
    "tokens": {},
    "payloads": {},
    "snapshots": {"rounds": 5},
    "search": {},
}
"""What one round of each benchmark measures."""
HERE = Path(__file__).resolve().parent
# Code is imported from the working directory, except for the benchmarks themselves.
_START = (
    "import sys, benchmarks; benchmarks.__path__ = [sys.argv[1]]; "
    "from benchmarks.compare import report; report(sys.argv[2], sys.argv[3])"
)


def report(name: str, given: str) -> None:
    """Measure the code in the working directory once, and print the result as one line of JSON."""
    processes.ROOT = Path.cwd()
    result = importlib.import_module(f"benchmarks.{name}").measure(**json.loads(given))
    print(json.dumps(asyncio.run(result) if inspect.iscoroutine(result) else result), flush=True)
    # Temporal's own threads sometimes crash a process that ends while they are at work.
    os._exit(0)


def measured(checkout: Path, name: str, **given: Any) -> dict[str, float]:
    """Measure a checkout once, by its own Python; return every figure by its name."""
    python = sys.executable if checkout == HERE.parent else str(checkout / ".venv/bin/python")
    command = [python, "-c", _START, str(HERE), name, json.dumps(given)]
    before = _cpu_s()
    ended = subprocess.run(command, cwd=checkout, check=True, stdout=subprocess.PIPE, text=True)
    return {"all processes, cpu_s": _cpu_s() - before, **dict(figures(json.loads(ended.stdout.splitlines()[-1])))}


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def figures(result: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number in a result, named by the words of its row and by its keys."""
    match result:
        case dict():
            words = [str(value) for value in result.values() if isinstance(value, str)]
            named = " ".join([*([name] if name else []), *words])
            for key, value in result.items():
                yield from figures(value, f"{named} {key}".strip())
        case list():
            for place, value in enumerate(result):
                yield from figures(value, f"{name} {place}")
        case bool() | str() | None:
            pass
        case _:
            yield name, float(result)


def table(pairs: list[tuple[dict[str, float], dict[str, float]]]) -> str:
    """Return the ratio of the medians for each figure, and the least and the greatest ratio of one round."""
    lines = ["| figure | there | here | ratio | least | greatest |", "|---|---|---|---|---|---|"]
    for name in pairs[0][0]:
        rounds = [(there[name], here[name]) for there, here in pairs if there.get(name) and name in here]
        if rounds:
            there, here = (statistics.median(side) for side in zip(*rounds, strict=True))
            ratios = [after / before for before, after in rounds]
            numbers = f"{here / there:.3f} | {min(ratios):.3f} | {max(ratios):.3f}"
            lines.append(f"| {name} | {there:.4g} | {here:.4g} | {numbers} |")
    return "\n".join(lines)


def compare(other: Path, name: str, rounds: int) -> str:
    """Measure both checkouts in turns, each one first in every other round."""
    pairs: list[tuple[dict[str, float], dict[str, float]]] = []
    for number in range(rounds):
        order = (other, HERE.parent) if number % 2 == 0 else (HERE.parent, other)
        found = {checkout: measured(checkout, name, **ROUNDS[name]) for checkout in order}
        pairs.append((found[other], found[HERE.parent]))
    return table(pairs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="a checkout with a .venv of its own")
    parser.add_argument("names", nargs="*", default=list(ROUNDS), help="the benchmarks to run")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_intermixed_args()
    for chosen in options.names:
        print(f"{chosen}, {options.rounds} rounds:\n\n{compare(options.other.resolve(), chosen, options.rounds)}\n")
