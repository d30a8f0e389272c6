"""Measure snapshots of workspaces: taken for the first time, unchanged, with a few changes, and restored.

python -m benchmarks.snapshots [--rounds 15]
"""

import argparse
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.page import publish
from sandbox.snapshots.snapshots import Snapshots

SIZES = (2000, 10_000)
BYTES_PER_FILE = 9_900
CHANGED = 10
TARGETS = {"unchanged": 60, "10 changed": 120}


def plant(root: Path, files: int) -> list[Path]:
    dice = random.Random(1)
    planted: list[Path] = []
    for number in range(files):
        folder = root / f"package{number // 100:03}" / f"part{number // 20 % 5}"
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / f"module{number}.py"
        place.write_bytes(dice.randbytes(BYTES_PER_FILE // 2).hex().encode())
        planted.append(place)
    return planted


class Bench:
    """Do the same to one workspace round after round."""

    def __init__(self, place: Path, files: int) -> None:
        self.root = place / "workspace"
        self.planted = plant(self.root, files)
        self.snapshots = Snapshots(place / "kept")
        self.took: dict[str, list[float]] = defaultdict(list)

    def timed(self, what: str, work: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        found = work()
        self.took[what].append(1000 * (time.perf_counter() - began))
        return found

    def round(self, number: int, first: str) -> None:
        self.timed("unchanged", lambda: self.snapshots.take(self.root))
        for place in random.Random(number).sample(self.planted, CHANGED):
            place.write_text(f"{place} {number}", encoding="utf-8")
        after = self.timed("10 changed", lambda: self.snapshots.take(self.root))
        self.timed("changes", lambda: self.snapshots.changes(first, after.id))
        restored = self.timed("10 restored", lambda: self.snapshots.restore(self.root, first, expect=after.id))
        assert len(restored.paths) == CHANGED
        # What was just restored is read once more, which is no part of "unchanged".
        assert self.snapshots.take(self.root).id == first
        time.sleep(0.05)
        self.snapshots.take(self.root)


def measure(rounds: int) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for files in SIZES:
        with tempfile.TemporaryDirectory(prefix="backstay-bench-") as place:
            bench = Bench(Path(place), files)
            first = bench.timed("first", lambda bench=bench: bench.snapshots.take(bench.root))
            time.sleep(0.05)
            bench.snapshots.take(bench.root)
            for number in range(rounds):
                bench.round(number, first.id)
            size = next((Path(place) / "kept" / "manifests").iterdir()).stat().st_size
        facts = {"files": files, "mib": first.size / 2**20, "manifest_kb": size / 1000}
        rows += [
            facts | {"what": what, "samples": len(took), "least": min(took), "median": statistics.median(took)}
            for what, took in bench.took.items()
        ]
    return {"rows": rows, "rounds": rounds}


def render(result: dict[str, Any]) -> str:
    lines = ["| files | MiB | what | samples | least, ms | median, ms | target |", "|---|---|---|---|---|---|---|"]
    for row in result["rows"]:
        target = TARGETS.get(row["what"], "") if row["files"] == SIZES[0] else ""
        numbers = f"{row['samples']} | {row['least']:.1f} | {row['median']:.1f}"
        lines.append(f"| {row['files']:,} | {row['mib']:.0f} | {row['what']} | {numbers} | {target} |")
    sizes = {row["files"]: row["manifest_kb"] for row in result["rows"]}
    said = ", ".join(f"{kb:.0f} kB for {files:,} files" for files, kb in sizes.items())
    return "\n".join([*lines, "", f"A manifest takes {said}."])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    measured = measure(parser.parse_args().rounds)
    publish("snapshots", measured, render(measured))
