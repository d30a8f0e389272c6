"""Measure the ledger: how long verifying takes, and what a transaction costs with it and without, in turns.

python -m benchmarks.ledger [--runs 10000] [--rounds 20]
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from backstay.task.event import Event
from backstay.task.ledger.keys import PublicKeys, Signer
from benchmarks.page import RESULTS, publish
from store.ledger.noting import note, take_noted
from store.opening import open_store

_, SIGNER = Signer.make()
STEPS = 10
TARGET_S = 60
TARGET_PERCENT = 3
SAMPLE = 200
"""So many transactions are one sample."""
BODY: dict[str, Any] = {
    "task_id": "w",
    "user_id": "ana",
    "step_index": 1,
    "text": "mail.send_email -> sent",
    "data": {"effect": 1},
}
NAMES = ("model.asked", "effect.sent", "effect.applied", "action.called")
"""What the ledger says of a step that changes something."""


async def fill(home: Path, runs: int) -> int:
    """Record runs of ten steps, each with as many rows as a step that changes something has; return how many rows."""
    async with open_store(database_url=None, home=home, signer=SIGNER) as store:

        def record(connection: Any, run: str) -> None:
            names = ["run.opened", "run.started", *NAMES * STEPS, "run.ended", "run.closed"]
            for name in names:
                note(connection, run, name.partition(".")[0], name, BODY)

        for start in range(0, runs, 100):
            some = [f"w{number}/r" for number in range(start, min(start + 100, runs))]
            await store.write(lambda connection, some=some: [record(connection, run) for run in some])
        await store.roots.make_due()
    return runs * (len(NAMES) * STEPS + 4)


async def verify_s(home: Path) -> float:
    """Return how long it takes to verify all of a store."""
    async with open_store(database_url=None, home=home) as store:
        began = time.perf_counter()
        verdict = await store.auditing.verify(PublicKeys([SIGNER.verifier]))
        assert verdict.is_good, verdict.lines[:5]
        return time.perf_counter() - began


async def cost(rounds: int) -> dict[str, list[float]]:
    """Return the processor time of a transaction that tells of a step, with the ledger and without, in turns."""
    found: dict[str, list[float]] = {"with": [], "without": []}
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(database_url=None, home=Path(folder), signer=SIGNER) as store:
            writing: dict[str, Any] = {"with": store.ledger.write, "without": take_noted}
            number = 0
            for _ in range(rounds):
                for kind, write in writing.items():
                    store.ledger.database.before_commit = write
                    before = time.process_time()
                    for _ in range(SAMPLE):
                        number += 2
                        await store.events.append("w/r", [event(number), event(number + 1)])
                    found[kind].append(1e6 * (time.process_time() - before) / SAMPLE)
    return found


def event(draft: int) -> Event:
    return Event(n=-draft, name="action.called", at="", text=BODY["text"], data={**BODY["data"], "tool": "mail.send"})


async def measure(runs: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        rows = await fill(Path(folder), runs)
        size = (Path(folder) / "backstay.db").stat().st_size
        took = await verify_s(Path(folder))
    found = await cost(rounds)
    added = statistics.median(found["with"]) - statistics.median(found["without"])
    # Of a run of ten steps that read, each of which is told of in one transaction.
    step = json.loads((RESULTS / "steps.json").read_text(encoding="utf-8"))["rows"][0]["engine"]["cpu_worker_ms"]
    return {
        "runs": runs,
        "rows": rows,
        "verify_s": round(took, 1),
        "bytes_a_row": round(size / rows),
        "rounds": rounds,
        "transaction_us": {kind: round(statistics.median(some)) for kind, some in found.items()},
        "step_ms": round(step, 1),
        "percent": round(100 * added / (1000 * step), 1),
        "target_s": TARGET_S,
        "target_percent": TARGET_PERCENT,
    }


def render(result: dict[str, Any]) -> str:
    verified = f"verifying {result['runs']} runs of {STEPS} steps, {result['rows']} rows"
    times, target = result["transaction_us"], f"{result['target_percent']} %"
    share = f"the difference, of the {result['step_ms']} ms of a step that reads"
    return "\n".join(
        [
            "| what | measured | target |",
            "|---|---|---|",
            f"| {verified} | {result['verify_s']} s | {result['target_s']} s |",
            f"| processor time of a transaction with two rows | {times['with']} us | |",
            f"| the same without the ledger | {times['without']} us | |",
            f"| {share} | {result['percent']} % | {target} |",
            f"| bytes of the database for a row | {result['bytes_a_row']} | |",
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    measured = asyncio.run(measure(options.runs, options.rounds))
    print(json.dumps(measured))
    publish("ledger", measured, render(measured))
