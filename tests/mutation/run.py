"""Hold the tests of rooms to what they caught at another commit: `make mutants BASE=<commit>`.

The same one-line mutants are made in both commits, and each is put to its room's tests alone. Whatever the tests of the
base catch, the tests of this tree must catch too.
"""

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mutation.choosing import Code, Mutant, choose, place_of

HOUSE = Path(__file__).resolve().parents[2]
ROOMS = tomllib.loads(Path(__file__).with_name("rooms.toml").read_text(encoding="utf-8"))
MEMORY = 4 * 1024**3
LEAST_SECONDS = 60
"""A mutant that takes longer than this, and ten times as long as the tests without it, is caught."""


class Checkout:
    """One commit in a folder of its own, and how long its tests take."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.code: Code = {room: self._modules(row["code"]) for room, row in ROOMS.items()}
        self.seconds: dict[str, float] = {}

    def _modules(self, places: list[str]) -> dict[str, str]:
        found = [path for place in places for path in ((self.root / place).rglob("*.py"), [self.root / place])]
        files = sorted({path for paths in found for path in paths if path.is_file()})
        return {path.relative_to(self.root).as_posix(): path.read_text(encoding="utf-8") for path in files}

    def holds(self, room: str) -> bool:
        """Return whether the tests of a room pass as they are; how long they take is remembered."""
        begun = time.monotonic()
        status, said = self._test(room, 1800)
        self.seconds[room] = time.monotonic() - begun
        if status != "survived":
            print(f"{room}: its tests fail without any mutant\n{said[-2000:]}", file=sys.stderr)
        return status == "survived"

    def put(self, mutant: Mutant) -> str:
        """Return what becomes of a mutant."""
        path, mutated = place_of(mutant, self.code[mutant.room])
        try:
            (self.root / path).write_text(mutated, encoding="utf-8")
            return self._test(mutant.room, max(LEAST_SECONDS, 10 * self.seconds[mutant.room]))[0]
        finally:
            (self.root / path).write_text(self.code[mutant.room][path], encoding="utf-8")

    def _test(self, room: str, seconds: float) -> tuple[str, str]:
        tests = [name for name in ROOMS[room]["tests"] if (self.root / name).exists()]
        if not tests:
            raise SystemExit(f"{room}: none of the tests in tests/mutation/rooms.toml exists in {self.root}")
        # The parameters of the store's tests are databases; a server would need more memory than a mutant gets.
        options = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "not postgres")
        # A mutant may be as long as the line it replaces and written in the same second: compiled files would be stale.
        environment = os.environ | {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            (sys.executable, "-m", "pytest", *options, *tests),
            cwd=self.root, env=environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "caught by time", process.communicate()[0]
        return ("caught" if process.returncode else "survived"), said


@contextmanager
def checkouts(base: str) -> Iterator[tuple[Checkout, Checkout]]:
    """Check out the base, and this tree with what is not committed yet, beside it."""
    tree = _git("stash", "create") or "HEAD"
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as place,
        checked_out(Path(place, "base"), base) as before,
        checked_out(Path(place, "tree"), tree) as now,
    ):
        yield Checkout(before), Checkout(now)


@contextmanager
def checked_out(root: Path, commit: str) -> Iterator[Path]:
    """Check out a commit in a folder of its own."""
    try:
        _git("worktree", "add", "--detach", str(root), commit)
        yield root
    finally:
        subprocess.run(("git", "worktree", "remove", "--force", str(root)), cwd=HOUSE, check=False)


def _git(*arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=HOUSE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout.strip()


def main() -> int:
    """Print a row for each mutant; return 1 where one is no longer caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with checkouts(given.base) as (base, tree):
        mutants = choose(base.code, tree.code, count=given.count, seed=given.seed)
        rooms = sorted({mutant.room for mutant in mutants})
        if not all(side.holds(room) for room in rooms for side in (base, tree)):
            return 2
        results = [_compared(base, tree, mutant) for mutant in mutants]
    caught = [now for before, now in results if before != "survived"]
    lost = caught.count("survived")
    print(f"{len(results)} mutants: {len(caught)} caught at {given.base}, {lost} of them no longer")
    return 1 if lost else 0


def _compared(base: Checkout, tree: Checkout, mutant: Mutant) -> tuple[str, str]:
    before = base.put(mutant)
    # What the base does not catch, nobody needs to catch.
    now = tree.put(mutant) if before != "survived" else "-"
    mark = "LOST" if now == "survived" else ""
    print(f"{mutant.room:<11} {mutant.kind:<11} {before:<15} {now:<15} {mark}")
    print(f"    - {mutant.line}\n    + {mutant.mutated}", flush=True)
    return before, now


if __name__ == "__main__":
    raise SystemExit(main())
