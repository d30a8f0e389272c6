"""Print the table of promises: each with its tests, or each test with its promise.

make promises                 every promise with its tests
make promises BY=test         every test with its promise
make promises WORD=undo       only what has this word in its name, its text or its tests
"""

import argparse
import sys
from collections.abc import Iterator, Sequence

from tests.requirements.manifest import Promise, areas, promised_by_test, promises, proofs


def _by_promise(word: str) -> Iterator[str]:
    found = proofs()
    for area in areas():
        entries = ["\n".join(_entry(each, found[each.name])) for each in area.promises]
        if chosen := [entry for entry in entries if word in entry]:
            yield f"\n# {area.about} ({', '.join(area.docs)})"
            yield from chosen


def _entry(promise: Promise, tests: list[str]) -> Iterator[str]:
    yield f"{promise.name}  {promise.text}"
    yield from (f"    {test}" for test in tests)
    if promise.by_hand:
        yield f"    by hand: {promise.by_hand}"
    if promise.deferred:
        yield f"    not proven yet, kept for {promise.deferred}"


def _by_test(word: str) -> Iterator[str]:
    known = promises()
    for test, names in promised_by_test().items():
        entry = "\n".join([test, *(f"    {name}  {known[name].text}" for name in names)])
        if word in entry:
            yield entry


def main(arguments: Sequence[str]) -> None:
    """Print what the arguments ask for."""
    parser = argparse.ArgumentParser(prog="make promises")
    parser.add_argument("--by", choices=("promise", "test"), default="promise")
    parser.add_argument("--word", default="")
    given = parser.parse_args(arguments)
    entries = _by_promise(given.word) if given.by == "promise" else _by_test(given.word)
    sys.stdout.writelines(f"{entry}\n" for entry in entries)


if __name__ == "__main__":
    main(sys.argv[1:])
